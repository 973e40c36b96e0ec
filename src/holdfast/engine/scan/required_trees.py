"""Trees whose paths a scan must not leave out, looked into only where it left something out.

A restore needs them: what it is about to write has to be saved first, and what HEAD has must be
seen to be able to go, whatever the rules in force now say. With the target's own `rules`, whatever
these would capture is required as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.domain.ids import Digest
from holdfast.domain.paths import join
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.domain.trees.tree import Tree

if TYPE_CHECKING:
    from holdfast.engine.scan.target_rules import TargetRules


class RequiredTree:
    """One directory of them; loaded when first asked, with the ones above it."""

    __slots__ = ("_load", "_name", "_names", "_parent", "_path", "_roots", "_trees", "rules")

    def __init__(
        self,
        load: Callable[[Digest], Tree],
        roots: tuple[Digest, ...],
        parent: RequiredTree | None = None,
        name: bytes = b"",
        rules: TargetRules | None = None,
    ) -> None:
        self._load = load
        self._roots = roots
        self._parent = parent
        self._name = name
        self._path: bytes = b"" if parent is None else join(parent._path, name)
        self.rules = rules
        self._trees: list[Tree] | None = None
        self._names: frozenset[bytes] | None = None

    def below(self, name: bytes) -> RequiredTree:
        return RequiredTree(self._load, (), self, name, self.rules)

    @property
    def trees(self) -> list[Tree]:
        """The directory in each of the trees that has it."""
        if self._trees is None:
            digests = set(self._roots)
            for tree in self._parent.trees if self._parent is not None else ():
                entry = tree.by_name.get(self._name)
                if isinstance(entry, DirectoryEntry):
                    digests.add(entry.digest)
            self._trees = [self._load(digest) for digest in sorted(digests)]
        return self._trees

    @property
    def names(self) -> frozenset[bytes]:
        """What is wanted in this directory."""
        if self._names is None:
            self._names = frozenset(name for tree in self.trees for name in tree.by_name)
        return self._names

    def is_captured(self, name: bytes, *, is_dir: bool) -> bool:
        """Whether the target's rules capture this very name of the directory."""
        return self.rules is not None and self.rules.captures(join(self._path, name), is_dir=is_dir)

    def leads_to_captured(self, name: bytes, *, is_dir: bool) -> bool:
        """Whether the target's rules capture it, or something in it."""
        if self.rules is None:
            return False
        return self.rules.leads_to_captured(join(self._path, name), is_dir=is_dir)

    @property
    def is_entered(self) -> bool:
        """Whether the target's rules capture anything in this directory."""
        return self.rules is not None and self.rules.enters(self._path)

    def has_rules(self, fingerprint: bytes) -> bool:
        """Whether the target's rules decide here as rules with this fingerprint do."""
        if self.rules is None:
            return True
        rules = self.rules.in_directory(self._path)
        return rules is not None and rules.fingerprint == fingerprint

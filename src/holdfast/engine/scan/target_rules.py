"""The ignore rules after a restore, and the trees whose paths a scan must capture.

    ignore files of the checkpoint                  → replace the present ones
    a present ignore file that the checkpoint lacks → counts only if the restore leaves it in place
    settings, defaults, `.git/info/exclude`         → as they are now, since no restore changes them

A restore scans the workspace with these rules besides the current ones. Files that only these rules
capture are saved and removed with the rest, so that a second restore finds nothing to do. Files
that these rules leave out are not part of the checkpoint's state, and stay. Paths of the target and
of HEAD are captured whatever the rules say: a restore saves them before it writes there.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.ignore.rules import RuleStack
from holdfast.domain.paths import GIT_DIRECTORY, basename, is_within, join, parent
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.domain.trees.tree import Tree
from holdfast.engine.restore.directory_handles import DirectoryHandles
from holdfast.engine.scan.policy import (
    IGNORE_FILES,
    CapturePolicy,
    DirectoryRules,
    Verdict,
    layers_of,
    rules_fingerprint,
)
from holdfast.engine.scan.rule_files import LARGEST_BYTES, RuleFiles
from holdfast.engine.stored_objects import read_content
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectReader

_BELOW_IGNORED = Verdict(reason=SkipReason.IGNORED, detail="in an ignored directory")


class TargetRules:
    """One per restore; `within` limits it to some paths. The caller closes the handles."""

    def __init__(
        self,
        fs: Filesystem,
        handles: DirectoryHandles,
        policy: CapturePolicy,
        objects: ObjectReader,
        load: Callable[[Digest], Tree],
        tree: Digest,
        *,
        within: tuple[bytes, ...] = (),
    ) -> None:
        self._fs = fs
        self._handles = handles
        self._policy = policy
        self._objects = objects
        self._load = load
        self._tree = tree
        self._within = within
        self._rule_files = RuleFiles(fs, policy)
        self._directories: dict[bytes, DirectoryRules | None] = {}
        self._trees: dict[bytes, Tree | None] = {}

    def captures(self, path: bytes, *, is_dir: bool) -> bool:
        """Whether a save under these rules would contain this path."""
        verdict = self.judge(path, is_dir=is_dir)
        return verdict.reason is None and not verdict.detail and self._concerns(path)

    def leads_to_captured(self, path: bytes, *, is_dir: bool) -> bool:
        """Whether a save under these rules would contain this path, or could contain one in it."""
        return self._concerns(path) and self.judge(path, is_dir=is_dir).reason is None

    def enters(self, path: bytes) -> bool:
        """Whether anything in this directory can be captured."""
        return self._concerns(path) and self.in_directory(path) is not None

    def judge(self, path: bytes, *, is_dir: bool) -> Verdict:
        rules = self.in_directory(parent(path))
        if rules is None or basename(path) == GIT_DIRECTORY or path in self._policy.own_data:
            return _BELOW_IGNORED
        verdict = self._policy.judge(rules.stack, path, is_dir, rules.mode)
        if is_dir and verdict.reason is None and self.in_directory(path) is None:
            return _BELOW_IGNORED  # a cache
        return verdict

    def in_directory(self, path: bytes) -> DirectoryRules | None:
        """None for a directory that these rules leave out."""
        if path not in self._directories:
            self._directories[path] = self._rules_inside(path)
        return self._directories[path]

    def _concerns(self, path: bytes) -> bool:
        return not self._within or any(
            is_within(path, chosen) or is_within(chosen, path) for chosen in self._within
        )

    def _rules_inside(self, path: bytes) -> DirectoryRules | None:
        above = self._rule_files.above_root()
        if path:
            outside = self.in_directory(parent(path))
            if outside is None:
                return None
            verdict = self._policy.judge(outside.stack, path, True, outside.mode)
            if verdict.reason is not None:
                return None
            above = DirectoryRules(outside.fingerprint, verdict.mode, stack=outside.stack)
        tree, names = self._tree_at(path), self._present_names(path)
        if self._policy.kept is not None:
            self._policy.kept.enter(path, names, lambda ctime_ns: False)
        cache = self._judge_cache(above, path, tree, names)
        if cache.reason is not None:
            return None
        stack = self._stack(above.stack, path, tree, names, cache)
        fingerprint = rules_fingerprint(self._policy.salt, stack, cache.mode)
        return DirectoryRules(fingerprint, cache.mode, stack=stack)

    def _judge_cache(
        self, above: DirectoryRules, path: bytes, tree: Tree | None, names: list[bytes]
    ) -> Verdict:
        """A marker counts if the checkpoint has it, and in directories that it does not have."""
        if tree is not None:
            then = sorted(tree.by_name)
            return self._policy.judge_cache(above, path, then, lambda name: self._saved(tree, name))
        return self._policy.judge_cache(above, path, names, lambda name: self._present(path, name))

    def _stack(
        self,
        stack: RuleStack,
        path: bytes,
        tree: Tree | None,
        names: list[bytes],
        entered: Verdict,
    ) -> RuleStack:
        contents: dict[bytes, bytes] = {}
        left: dict[bytes, bytes] = {}
        for name in IGNORE_FILES:
            if tree is not None and name in tree.by_name:
                if (text := self._saved_or_present(tree, path, name)) is not None:
                    contents[name] = text
            elif name in names and (text := self._present(path, name)) is not None:
                left[name] = text
        exclude = self._exclude(path) if GIT_DIRECTORY in names else None
        if exclude is not None:
            contents[b"info/exclude"] = exclude
        while True:
            found = stack
            for layer in layers_of(path, contents | left):
                found = found.with_layer(layer)
            judged = {
                name: self._policy.judge(found, join(path, name), False, entered.mode)
                for name in left
            }
            going = [name for name, verdict in judged.items() if verdict.reason is None]
            if not going:
                return found
            for name in going:
                del left[name]

    def _tree_at(self, path: bytes) -> Tree | None:
        if path not in self._trees:
            self._trees[path] = self._load_at(path)
        return self._trees[path]

    def _load_at(self, path: bytes) -> Tree | None:
        if not path:
            return self._load(self._tree)
        above = self._tree_at(parent(path))
        entry = above.by_name.get(basename(path)) if above is not None else None
        return self._load(entry.digest) if isinstance(entry, DirectoryEntry) else None

    def _saved_or_present(self, tree: Tree, path: bytes, name: bytes) -> bytes | None:
        try:
            return self._saved(tree, name)
        except StoreDamaged:
            return self._present(path, name)  # it cannot be restored, so the present one stays

    def _saved(self, tree: Tree, name: bytes) -> bytes | None:
        entry = tree.by_name.get(name)
        if not isinstance(entry, FileEntry) or entry.size > LARGEST_BYTES:
            return None
        return b"".join(read_content(self._objects, entry))

    def _present_names(self, path: bytes) -> list[bytes]:
        try:
            return sorted(self._fs.list_names(self._handles.open(path)))
        except OSError:
            return []

    def _present(self, path: bytes, name: bytes) -> bytes | None:
        try:
            return self._rule_files.read(self._handles.open(path), name)
        except OSError:
            return None

    def _exclude(self, path: bytes) -> bytes | None:
        return self._rule_files.read_git_exclude(self._handles.open(path))


class RequiredTree:
    """One directory of the required trees; loaded on first use, with its parents."""

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
        """The names that are wanted in this directory."""
        if self._names is None:
            self._names = frozenset(name for tree in self.trees for name in tree.by_name)
        return self._names

    def is_captured(self, name: bytes, *, is_dir: bool) -> bool:
        """Whether the target's rules capture this name in the directory."""
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
        """Whether the target's rules here equal those with this fingerprint."""
        if self.rules is None:
            return True
        rules = self.rules.in_directory(self._path)
        return rules is not None and rules.fingerprint == fingerprint

"""Verifying a store, one function per invariant; nothing is changed.

The quick check looks at structure: databases, packs, that every checkpoint's directories exist.
With `data` every byte of every object is read and compared with its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.chunk_lists import decode_chunk_list
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import join, to_text
from holdfast.domain.trees import Tree
from holdfast.engine.restore.journal import decode_journal
from holdfast.engine.vault import Vault
from holdfast.ports.progress import Progress


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as an invariant says."""

    invariant: str
    subject: str
    problem: str

    def to_dict(self) -> dict[str, str]:
        return {"invariant": self.invariant, "subject": self.subject, "problem": self.problem}


def run_checks(vault: Vault, *, data: bool, progress: Progress) -> Iterator[Problem]:
    """Every problem there is; a store without any gives none."""
    yield from check_objects(vault, data=data, progress=progress)
    yield from check_catalog(vault)
    yield from check_reachability(vault, progress)
    yield from check_journal(vault)


def check_objects(
    vault: Vault, *, data: bool, progress: Progress | None = None
) -> Iterator[Problem]:
    """I1 and I2: packs are whole, and (with `data`) bytes match their names."""
    for found in vault.objects.check(data=data, progress=progress):
        yield Problem(found.invariant, found.subject, found.problem)


def check_catalog(vault: Vault) -> Iterator[Problem]:
    """I3: rows that belong together are there together."""
    for text in vault.catalog.check():
        yield Problem("I3", "catalog", text)


def check_reachability(vault: Vault, progress: Progress) -> Iterator[Problem]:
    """I1: everything that a checkpoint names exists. Shared directories are looked at once."""
    walk = _Reachability(vault)
    try:
        checkpoints = list(vault.catalog.roots())
    except StoreDamaged as error:
        yield Problem("I3", "catalog", error.message)
        return
    for number, checkpoint in enumerate(checkpoints):
        progress.advance("checking checkpoints", number, len(checkpoints))
        yield from walk.problems_of(checkpoint)


def check_journal(vault: Vault) -> Iterator[Problem]:
    """I4: an unfinished restore can be finished."""
    data = vault.access.read_journal()
    if data is None:
        return
    try:
        journal = decode_journal(data)
    except StoreDamaged as error:
        yield Problem("I4", "journal", error.message)
        return
    for wanted in (journal.target, journal.safety):
        if vault.catalog.checkpoint(journal.session_id, wanted) is None:
            yield Problem("I4", "journal", f"it names checkpoint {wanted}, which does not exist")


def _place(path: bytes) -> str:
    return to_text(path) or "at the top"


class _Reachability:
    """Remembers which directories are known to be sound."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._sound: set[Digest] = set()

    def problems_of(self, checkpoint: Checkpoint) -> Iterator[Problem]:
        subject = f"checkpoint {checkpoint.id}"
        if checkpoint.report is not None and not self._vault.objects.contains(checkpoint.report):
            yield Problem("I1", subject, "the list of what was left out is missing")
        pending = [(b"", checkpoint.tree)]
        while pending:
            path, digest = pending.pop()
            if digest in self._sound:
                continue
            try:
                tree = self._vault.load_tree(digest)
            except StoreDamaged as error:
                yield Problem("I1", subject, f"directory {_place(path)}: {error.message}")
                continue
            missing = list(self._missing_below(tree))
            for name in missing:
                yield Problem(
                    "I1", subject, f"the content of {to_text(join(path, name))} is missing"
                )
            if not missing:
                self._sound.add(digest)
            pending += [
                (path + b"/" + entry.name if path else entry.name, entry.digest)
                for entry in tree.directories
            ]

    def _missing_below(self, tree: Tree) -> Iterator[bytes]:
        wanted: dict[Digest, bytes] = {}
        for entry in tree.files:
            wanted[entry.chunks or entry.digest] = entry.name
            if entry.chunks is None:
                continue
            try:
                pieces = decode_chunk_list(self._vault.objects.read(entry.chunks))
            except StoreDamaged:
                yield entry.name
                continue
            wanted.update((piece.digest, entry.name) for piece in pieces)
        for digest in self._vault.objects.missing(wanted):
            yield wanted[digest]

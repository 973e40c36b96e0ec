"""Verifies a store, invariant by invariant; changes nothing.

The quick check verifies the structure: databases, rows, packs, and that everything a checkpoint
names exists. With `data`, every byte of every object is read and compared with its digest.

`LossFinder` lists the paths in checkpoints that can no longer be restored. It visits each directory
once, and collects files whose content is gone and the losses below. A lost directory includes
everything below it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import decode_manifest
from holdfast.domain.errors import IndexDamaged, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, short
from holdfast.domain.paths import join, to_text
from holdfast.domain.repair_plan import ALL_COMPONENTS, Problem
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.trees.tree import Tree, decode_tree
from holdfast.engine.restore.journal import decode_journal
from holdfast.engine.restore.permissions import decode_note
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import Progress


@dataclass(frozen=True, slots=True)
class Loss:
    """A lost path; the root means the whole checkpoint."""

    path: bytes
    is_directory: bool


@dataclass(frozen=True, slots=True)
class DamagedCheckpoint:
    """A checkpoint and its losses. `report_lost`: its list of skipped paths is lost, too.
    `components_lost`: names of components whose content is gone, or all of them if their list is
    lost."""

    id: CheckpointId
    losses: tuple[Loss, ...]
    report_lost: bool
    components_lost: tuple[str, ...] = ()

    @property
    def is_gone(self) -> bool:
        return any(not loss.path for loss in self.losses)


class LossFinder:
    """Visits each directory once; `unreadable` objects count as missing."""

    def __init__(
        self,
        vault: Vault,
        unreadable: Collection[Digest] = (),
        found: Mapping[Digest, bytes] | None = None,
    ) -> None:
        """`found` objects exist elsewhere and will be stored, so they count as present."""
        self._vault = vault
        self._unreadable = unreadable
        self._found = found or {}
        self._known: dict[Digest, tuple[Loss, ...]] = {}
        self._known_manifests: dict[Digest, tuple[str, ...]] = {}
        self.lost: set[Digest] = set()
        """Referenced objects that are unreadable."""

    def damage_of(self, checkpoint: Checkpoint) -> DamagedCheckpoint | None:
        losses = self._below(checkpoint.tree)
        report_lost = checkpoint.report is not None and not self._has(checkpoint.report)
        components_lost = self._components(checkpoint.components)
        if not losses and not report_lost and not components_lost:
            return None
        return DamagedCheckpoint(checkpoint.id, losses, report_lost, components_lost)

    def _components(self, manifest: Digest | None) -> tuple[str, ...]:
        if manifest is None:
            return ()
        known = self._known_manifests.get(manifest)
        if known is None:
            known = self._known_manifests[manifest] = tuple(self._lost_components(manifest))
        return known

    def _lost_components(self, manifest: Digest) -> Iterator[str]:
        if not self._has(manifest):
            yield ALL_COMPONENTS
            return
        try:
            states = decode_manifest(self._vault.objects.read(manifest))
        except IndexDamaged:
            raise
        except StoreDamaged:
            self.lost.add(manifest)
            yield ALL_COMPONENTS
            return
        for state in states:
            held = [
                self._has(content.digest)
                if content.chunks is None
                else self._has(content.chunks) and self._has_pieces(content.chunks)
                for content in state.contents
            ]
            if not all(held):
                yield state.name

    @property
    def trees(self) -> set[Digest]:
        """Every visited directory."""
        return set(self._known)

    def _below(self, digest: Digest) -> tuple[Loss, ...]:
        """Without recursion, because directories may be nested deeper than Python's stack."""
        open_trees: dict[Digest, Tree] = {}
        waiting = [digest]
        while waiting:
            at = waiting[-1]
            if at not in self._known:
                tree = open_trees.get(at) or self._load(at)
                if tree is None:
                    self._known[at] = (Loss(b"", is_directory=True),)
                elif at not in open_trees:
                    open_trees[at] = tree
                    waiting += {e.digest for e in tree.directories} - self._known.keys()
                    continue
                else:
                    self._known[at] = tuple(self._look(open_trees.pop(at)))
            waiting.pop()
        return self._known[digest]

    def _load(self, digest: Digest) -> Tree | None:
        if not self._has(digest):
            return None
        try:
            found = self._found.get(digest)
            return self._vault.load_tree(digest) if found is None else decode_tree(found)
        except IndexDamaged:
            raise
        except StoreDamaged:
            self.lost.add(digest)
            return None

    def _look(self, tree: Tree) -> list[Loss]:
        """All losses of a directory, once those below are known."""
        losses = self._files(tree)
        for entry in tree.directories:
            for loss in self._known[entry.digest]:
                path = join(entry.name, loss.path) if loss.path else entry.name
                losses.append(Loss(path, loss.is_directory))
        return losses

    def _files(self, tree: Tree) -> list[Loss]:
        wanted = {entry.chunks or entry.digest for entry in tree.files}
        gone = self._vault.objects.missing(wanted)
        gone |= {digest for digest in wanted if digest in self._unreadable}
        gone -= self._found.keys()
        self.lost |= gone
        return [
            Loss(entry.name, is_directory=False)
            for entry in tree.files
            if (entry.chunks or entry.digest) in gone
            or (entry.chunks is not None and not self._has_pieces(entry.chunks))
        ]

    def _has_pieces(self, chunks: Digest) -> bool:
        try:
            listed = self._found.get(chunks) or self._vault.objects.read(chunks)
            pieces = decode_chunk_list(listed)
        except IndexDamaged:
            raise
        except StoreDamaged:
            self.lost.add(chunks)
            return False
        gone = self._vault.objects.missing(piece.digest for piece in pieces)
        gone |= {piece.digest for piece in pieces if piece.digest in self._unreadable}
        gone -= self._found.keys()
        self.lost |= gone
        return not gone

    def _has(self, digest: Digest) -> bool:
        if digest in self._found:
            return True
        if digest in self._unreadable or not self._vault.objects.contains(digest):
            self.lost.add(digest)
            return False
        return True


_MOST_PATHS = 20
_OBJECT = "object "


def run_checks(vault: Vault, *, data: bool, progress: Progress) -> Iterator[Problem]:
    """All problems; none for a sound store."""
    # The store's description is intact, and it has everything that it acknowledged.
    yield from (Problem("I3", "store", text) for text in vault.files.problems())
    # I1 and I2: packs are whole, and (with `data`) bytes match their digests.
    unreadable: set[Digest] = set()
    for found in vault.objects.check(data=data, progress=progress):
        if found.subject.startswith(_OBJECT):
            unreadable.add(Digest(bytes.fromhex(found.subject.removeprefix(_OBJECT))))
        yield Problem(found.invariant, found.subject, found.problem)
    # I3: rows are as written, and related rows exist together.
    yield from (Problem("I3", "catalog", text) for text in vault.catalog.check())
    yield from _check_reachability(vault, unreadable, progress)
    # I4: an unfinished restore can be finished.
    if (problem := journal_problem(vault)) is not None:
        yield Problem("I4", "journal", problem)
    # I3 for the story.
    yield from (Problem("I3", "story", text) for text in vault.story.check())


def _check_reachability(
    vault: Vault, unreadable: set[Digest], progress: Progress
) -> Iterator[Problem]:
    """I1: everything that a checkpoint names exists. Shared directories are visited once."""
    finder = LossFinder(vault, unreadable)
    try:
        counts = vault.catalog.counts()
        total = counts.checkpoints + counts.records
        for number, checkpoint in enumerate(all_checkpoints(vault.catalog)):
            progress.advance("checkpoints", number, total)
            damage = finder.damage_of(checkpoint)
            if damage is None:
                continue
            subject = f"checkpoint {checkpoint.id}"
            if damage.report_lost:
                yield Problem("I1", subject, "the list of paths left out is missing")
            for name in damage.components_lost:
                yield Problem("I1", subject, f"the saved data of {name} is lost")
            for loss in damage.losses[:_MOST_PATHS]:
                what = "directory" if loss.is_directory else "content of"
                yield Problem("I1", subject, f"{what} {_place(loss.path)} is lost")
            if len(damage.losses) > _MOST_PATHS:
                yield Problem("I1", subject, f"{len(damage.losses) - _MOST_PATHS} more are lost")
    except IndexDamaged as error:
        yield Problem("index", "index.db", error.message)
    except StoreDamaged as error:
        yield Problem("I3", "catalog", error.message)


def _place(path: bytes) -> str:
    return to_text(path) or "at the top"


def journal_problem(vault: Vault) -> str | None:
    """Why an unfinished restore cannot be finished."""
    try:
        note = vault.journal.read_note()
        if note is not None:
            decode_note(note)
        data = vault.journal.read()
        if data is None:
            return None
        journal = decode_journal(data)
        if vault.catalog.operation_with_token(journal.token) is not None:
            return None
        for wanted in (journal.target, journal.safety):
            if vault.catalog.checkpoint(journal.session_id, wanted) is None:
                return f"it names checkpoint {wanted}, which does not exist"
        if journal.tree is not None and not vault.objects.contains(journal.tree):
            return "it names a state that the store does not have"
        if journal.trouble is not None:
            return f"{journal.trouble}; the state before that restore is {short(journal.safety)}"
    except StoreDamaged as error:
        return error.message
    return None

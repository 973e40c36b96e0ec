"""Mirrors checkpoints to git, if the user has enabled it.

    after a save, approval or restore, without the store's lock: add missing checkpoints, for a few
    seconds at most → the next one adds the rest, or a cleanup adds all of it

Guarantee: mirror problems never affect the checkpoint; they are warnings. Paths that are captured
only because of the setting `include` are left out, because a branch may be pushed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import NotFound, Refused
from holdfast.domain.git.branches import DEFAULT_MIRROR
from holdfast.domain.git.mirror_commits import Approvals, mirror_names
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.ignore.includes import IncludePatterns
from holdfast.domain.paths import from_text, parent
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.tree import Tree
from holdfast.engine.bundles.exporter import new_file
from holdfast.engine.sessions.approval import rounds_in
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import Vault
from holdfast.ports.repository import MirrorOutcome, MirrorPlace

_AT_ONCE = 200
_PATIENCE_NS = 3_000_000_000
_BEHIND = (
    "it is not complete yet: the next checkpoint continues, or run holdfast cleanup to finish it"
)
_STILL_THERE = "mirror: it may still contain purged content"
_LEFTOVERS = (
    "mirror: purged content may still be in the git repository; to remove it: git gc --prune=now"
)


class History:
    """The checkpoints of some or all sessions, as a mirror shows them."""

    def __init__(
        self,
        vault: Vault,
        *,
        sessions: Sequence[SessionId] | None = None,
        patience_ns: int | None = None,
    ) -> None:
        self._vault = vault
        self._sessions = sessions
        clock = vault.clock
        self._until_ns = None if patience_ns is None else clock.monotonic_ns() + patience_ns
        included = vault.settings.include
        self._included = IncludePatterns.parse(included) if included else None
        self._named = frozenset(vault.parts.named_paths.load())

    @property
    def owner(self) -> str:
        return self._vault.workspace_id

    def after(self, sequence: int) -> Sequence[Checkpoint]:
        while found := self._vault.catalog.checkpoints_after(sequence, _AT_ONCE):
            chosen = [one for one in found if self._is_chosen(one.session_id)]
            if chosen:
                return chosen
            sequence = found[-1].sequence
        return ()

    def tree(self, digest: Digest) -> Tree:
        return self._vault.load_tree(digest)

    def content(self, entry: FileEntry) -> Iterator[bytes]:
        return read_content(self._vault.objects, entry)

    def names(self) -> Mapping[bytes, CheckpointId]:
        catalog = self._vault.catalog
        chosen = [session for session in catalog.sessions() if self._is_chosen(session.id)]
        newest = [(catalog.history(s.id, limit=1, records=True), s.id) for s in chosen]
        latest = max(((rows[0].sequence, of) for rows, of in newest if rows), default=None)
        return mirror_names(
            ((session, rounds_in(self._vault, session.id)) for session in chosen),
            None if latest is None else latest[1],
        )

    def approvals(self, approved: CheckpointId) -> Approvals:
        catalog = self._vault.catalog
        found = catalog.checkpoint(None, approved)
        if found is None:
            return Approvals(None, ())
        first = catalog.first_checkpoint(found.session_id)
        rounds = [one for one in rounds_in(self._vault, found.session_id) if one.approved]
        rows = [(one, catalog.checkpoint(found.session_id, one.approved)) for one in rounds]
        merges = tuple((one, row) for one, row in rows if row is not None)
        return Approvals(None if first is None else first.id, merges)

    def leaves_out(self, path: bytes) -> bool:
        """Ignored files are not mirrored, because git may push them elsewhere."""
        if path in self._named:
            return True
        included, is_dir = self._included, False
        while included is not None and path:
            if included.matches(path, is_dir):
                return True
            path, is_dir = parent(path), True
        return False

    def has_time(self) -> bool:
        return self._until_ns is None or self._vault.clock.monotonic_ns() < self._until_ns

    def _is_chosen(self, session_id: SessionId) -> bool:
        return self._sessions is None or session_id in self._sessions


def mirror_place(vault: Vault) -> MirrorPlace:
    branch = vault.settings.mirror
    below = vault.settings.mirror_refs or branch
    return MirrorPlace(b"refs/heads/" + from_text(branch), b"refs/" + from_text(below) + b"/")


def mirror_work(vault: Vault, how: str) -> tuple[str, ...]:
    """Update the mirror: `soon`, for a few seconds at most; `everything`, however long it takes; or
    `afresh`, without purged content. Returns warnings."""
    if not vault.settings.mirror:
        return _former_mirrors(vault)
    repository, place = vault.open_repository(), mirror_place(vault)
    if how == "afresh":
        made = repository.remake_mirror(vault.workspace, place, History(vault))
        return (*_warnings(made), _LEFTOVERS if made.complete else _STILL_THERE)
    patience_ns = _PATIENCE_NS if how == "soon" else None
    return _warnings(
        repository.mirror(vault.workspace, place, History(vault, patience_ns=patience_ns))
    )


def _former_mirrors(vault: Vault) -> tuple[str, ...]:
    """Turning the mirror off keeps its branch."""
    try:
        repository = vault.open_repository()
    except Refused:
        return ()
    left = repository.former_mirrors(vault.workspace, vault.workspace_id)
    return tuple(f"mirror: {text}" for text in left)


def _warnings(outcome: MirrorOutcome) -> tuple[str, ...]:
    said = outcome.warnings
    if not outcome.complete and not said:
        said = (_BEHIND,)
    return tuple(f"mirror: {text}" for text in said)


def export_git_bundle(
    vault: Vault, path: Path, *, sessions: Sequence[SessionId] | None, replace: bool = False
) -> MirrorOutcome:
    """Write a git bundle of some or all sessions, for `git clone`."""
    branch = vault.settings.mirror or DEFAULT_MIRROR
    place = MirrorPlace(b"refs/heads/" + from_text(branch), b"refs/tags/")
    history = History(vault, sessions=sessions)
    if not history.after(0):
        raise NotFound("no checkpoint to export", hint='to create one: holdfast checkpoint "why"')
    with new_file(vault.fs, path, replace=replace) as fd:
        return vault.open_repository().bundle(place, history, fd)

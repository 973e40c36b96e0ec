"""Replay of a session: the state at each step, its changes, and the messages so far.

    checkpoints in order, without safety checkpoints → a step is read when it becomes current: a
    checkpoint is compared with its parent; a restore with its safety checkpoint or, for some paths
    only, with the HEAD before it

Guarantees: nothing is written to the workspace or the store, and no lock is waited for. Everything
is read on demand. So a damaged step is reported while the others work, and a long session opens as
quickly as a short one.
Not guaranteed: unsaved content that a restore of some paths replaced; only its safety checkpoint
has that. Steps may be deleted during the replay; reading one is then reported like damage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, overload

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import NotFound, Refused
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.paths import from_text, join, require_safe_path, to_text
from holdfast.domain.sessions import round_name
from holdfast.domain.story import Message
from holdfast.domain.trees.changes import Change
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.engine.compare.changed_content import compare_change
from holdfast.engine.compare.content_diff import ContentDiff
from holdfast.engine.compare.tree_diff import IgnoredContent, tree_difference
from holdfast.engine.stored_objects import entry_at, list_entries, read_content
from holdfast.engine.vault import Vault

if TYPE_CHECKING:
    from holdfast.engine.replay.temporary_root import TemporaryRoot

_KEPT_ROWS = 256
"""A walk reads each row twice: as a step, and as the state before the next one."""
_STATE_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One action: `checkpoint` is the state after it, `before` the state to compare with. Steps
    count from 0. `first_message` is the index of its first new message."""

    index: int
    action: OperationKind
    checkpoint: Checkpoint
    before: Checkpoint | None
    first_message: int = 0


class RecordedSteps(Sequence[ReplayStep]):
    """Oldest first; includes the safety checkpoint `also`, if it is one. Each is read on access:
    `NotFound` if it was deleted since, `StoreDamaged` if its row cannot be read."""

    def __init__(
        self, vault: Vault, session_id: SessionId, *, also: CheckpointId | None = None
    ) -> None:
        found = [
            milestone
            for milestone in vault.catalog.milestones(session_id)
            if milestone.kind is not Kind.SAFETY or milestone.id == also
        ]
        self._ids = [milestone.id for milestone in found]
        known = (-1 if m.message_index is None else m.message_index for m in found)
        self._first_messages = list(accumulate((n + 1 for n in known), max, initial=0))
        operations = vault.catalog.operations(session_id, kinds=RESTORING_KINDS)
        self._made = {operation.checkpoint: operation for operation in operations}

        @lru_cache(maxsize=_KEPT_ROWS)
        def row(checkpoint_id: CheckpointId) -> Checkpoint | None:
            return vault.catalog.checkpoint(session_id, checkpoint_id)

        self._row = row

    def place_of(self, checkpoint_id: CheckpointId) -> int:
        """The index of its step; `ValueError` if there is none."""
        return self._ids.index(checkpoint_id)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[ReplayStep]:
        return (self._step(index) for index in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> ReplayStep: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ReplayStep]: ...

    def __getitem__(self, index: int | slice) -> ReplayStep | Sequence[ReplayStep]:
        wanted = range(len(self))[index]
        return self._step(wanted) if isinstance(wanted, int) else [*map(self._step, wanted)]

    def _step(self, index: int) -> ReplayStep:
        identifier = self._ids[index]
        row = self._row(identifier)
        if row is None:
            raise NotFound(f"checkpoint {identifier} no longer exists")
        operation = self._made.get(identifier)
        action = operation.kind if operation is not None else _action_of(row)
        before = self._before(row, operation)
        return ReplayStep(index, action, row, before, self._first_messages[index])

    def _before(self, row: Checkpoint, operation: Operation | None) -> Checkpoint | None:
        candidates = [row.parent]
        if operation is not None:
            candidates = [operation.safety, operation.head_before, row.parent]
        found = (self._row(one) for one in candidates if one is not None)
        return next((one for one in found if one is not None), None)


def _action_of(row: Checkpoint) -> OperationKind:
    """For rows without a log entry, as after some imports."""
    return OperationKind.RESTORE if row.kind is Kind.RESTORE else OperationKind.CHECKPOINT


@dataclass(frozen=True, slots=True)
class AgentState:
    """The agent at a step: why it acted, and its position in the conversation."""

    intent: SnapshotIntent
    round: str
    message_index: int | None
    tool_use_id: str | None


def last_step(vault: Vault, head: Checkpoint) -> Checkpoint:
    """The last step of HEAD's session: after a restore, that is the restore."""
    session = vault.catalog.session(head.session_id)
    newest = session.head if session is not None else None
    return (newest and vault.catalog.checkpoint(head.session_id, newest)) or head


class Replay:
    """A position in the steps of a session. Use it as a context; afterwards it is closed.

    Paths are text relative to the workspace, as in the rest of the library.
    """

    def __init__(
        self, vault: Vault, session_id: SessionId, start: Checkpoint, *, temporary: Path
    ) -> None:
        """`temporary` is the parent of the directory for files on disk."""
        self._vault = vault
        self.session_id = session_id
        self._temporary = temporary
        self._root: TemporaryRoot | None = None
        self._closed = False
        self.steps = RecordedSteps(vault, session_id, also=start.id)
        try:
            self.position = self.steps.place_of(start.id)
        except ValueError:
            raise NotFound(f"checkpoint {start.id} no longer exists") from None

    @property
    def step(self) -> ReplayStep:
        """The current step: `NotFound` if it was deleted meanwhile, `StoreDamaged` if its row
        cannot be read. The other steps still work."""
        return self.steps[self.position]

    def go_to(self, index: int) -> ReplayStep:
        """Go to a step; an index out of range means the first or last one."""
        self.position = min(max(index, 0), len(self.steps) - 1)
        return self.step

    def forward(self) -> ReplayStep:
        return self.go_to(self.position + 1)

    def back(self) -> ReplayStep:
        return self.go_to(self.position - 1)

    def first(self) -> ReplayStep:
        return self.go_to(0)

    def last(self) -> ReplayStep:
        return self.go_to(len(self.steps) - 1)

    def changes(self) -> list[Change]:
        """The paths that differ between the states before and after this step."""
        self._require_open()
        after = self.step.checkpoint.tree
        return tree_difference(self._vault.load_tree, self.step.before, after, renames=True)

    def diff(self, change: Change, *, context: int = 3) -> ContentDiff | None:
        """How the content of a path changed; None if neither side has any."""
        self._require_open()
        return compare_change(
            self._vault,
            change,
            IgnoredContent(self._vault),
            new_in_workspace=False,
            context=context,
        )

    def entries(self, directory: str = "") -> Iterator[tuple[bytes, Entry]]:
        """Every path of the state, or of one of its directories, in order."""
        self._require_open()
        tree, above = self.step.checkpoint.tree, b""
        if directory:
            above = from_text(directory)
            entry = self._entry(above)
            if not isinstance(entry, DirectoryEntry):
                raise NotFound(f"{directory!r} is not a directory at this step")
            tree = entry.digest
        return list_entries(self._vault.load_tree, tree, above)

    def files(self) -> list[str]:
        """The paths of all files in the state."""
        return [to_text(path) for path, entry in self.entries() if isinstance(entry, FileEntry)]

    def chunks(self, path: str) -> Iterator[bytes]:
        """The verified bytes of a file, in pieces."""
        entry = self._entry(from_text(path))
        if not isinstance(entry, FileEntry):
            raise NotFound(f"{path!r} is not a file at this step")
        return read_content(self._vault.objects, entry)

    def read(self, path: str) -> bytes:
        return b"".join(self.chunks(path))

    def messages(self, newest: int | None = None) -> Sequence[Message]:
        """The conversation when this state was saved, or its newest part; empty if it was not
        recorded."""
        self._require_open()
        last = self.step.checkpoint.message_index
        if last is None:
            return ()
        return self._messages(0 if newest is None else max(last + 1 - newest, 0), last)

    def new_messages(self) -> Sequence[Message]:
        """The messages that are new in this step."""
        self._require_open()
        last = self.step.checkpoint.message_index
        return () if last is None else self._messages(self.step.first_message, last)

    def _messages(self, first: int, last: int) -> Sequence[Message]:
        if last < first or not self._vault.has_story():
            return ()
        return self._vault.story.messages(self.session_id, first=first, limit=last - first + 1)

    def agent_state(self) -> AgentState:
        found = self.step.checkpoint
        return AgentState(
            found.intent, round_name(found.round), found.message_index, found.tool_use_id
        )

    def components(self) -> list[tuple[str, str]]:
        """Saved components, such as git and an agent's memory: pairs of name and line."""
        from holdfast.engine.components.manifests import describe_components

        self._require_open()
        return describe_components(self._vault, self.step.checkpoint)

    def materialise(self, path: str = "") -> Path:
        """Write a path of the state, with everything below it, to disk as read-only files.

        They are in a private directory that is removed with the replay. Without `path`, everything.
        """
        self._require_open()
        wanted = require_safe_path(from_text(path)) if path else b""
        entry = self._entry(wanted) if wanted else None
        if self._root is None:
            from holdfast.engine.replay.temporary_root import TemporaryRoot

            self._root = TemporaryRoot(self._vault, self._temporary)
        # Each state has its own directory, so that returned files do not change.
        state = self.step.checkpoint.tree.hex()[:_STATE_DIGITS].encode()
        made = self._root.make_directory(state)
        if entry is not None:
            made = self._root.write(join(state, wanted), entry)
        if entry is None or isinstance(entry, DirectoryEntry):
            tree = self.step.checkpoint.tree if entry is None else entry.digest
            for below, found in list_entries(self._vault.load_tree, tree, wanted):
                self._root.write(join(state, below), found)
        return made

    def _entry(self, path: bytes) -> Entry:
        self._require_open()
        entry = entry_at(self._vault.load_tree, self.step.checkpoint.tree, path)
        if entry is None:
            raise NotFound(f"{to_text(path)!r} does not exist at this step")
        return entry

    def _require_open(self) -> None:
        if self._closed:
            raise Refused("the replay is closed", hint="open another: session.replay()")

    def close(self) -> None:
        """Remove all files from disk."""
        self._closed = True
        if self._root is not None:
            self._root.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Updates the search index from catalog and story, in small batches.

    nothing new since the last time → done (a few small reads)
    else, batch by batch: removals and approvals, new checkpoints, messages, annotations

Each batch and its read position are one transaction, so the update can be interrupted anywhere. The
index is rebuilt when the log was replaced or content was purged.

Guarantee: a complete index finds everything that was acknowledged before the update began.
Not guaranteed: completeness, if time or space runs out, or the story is unreadable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from holdfast.domain.checkpoints import RECORD_KINDS, Checkpoint, Kind
from holdfast.domain.errors import Busy, NoSpace, StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.domain.operations import OperationKind, mark_of
from holdfast.domain.paths import to_text
from holdfast.domain.search.hits import Field
from holdfast.domain.search.query import State
from holdfast.domain.story import Annotation, Message
from holdfast.domain.trees.changes import tree_changes
from holdfast.engine.conversation.conversation import BestEffortStory
from holdfast.engine.vault import Vault
from holdfast.ports.search import CheckpointText, Cursors, IndexBatch, IndexLost, MessageText

MOST_PATHS = 2_000
"""How many changed paths of one checkpoint are searchable."""


def _checkpoint_text(
    vault: Vault, checkpoint: Checkpoint, notes: Sequence[Annotation], approved: bool
) -> CheckpointText:
    states = [
        state
        for state, holds in (
            (State.NAMED, checkpoint.name is not None),
            (State.APPROVED, approved),
            (State.PARTIAL, checkpoint.partial),
            (State.RECORD, checkpoint.kind in RECORD_KINDS),
            (State.ANNOTATED, bool(notes)),
        )
        if holds
    ]
    texts = fields_of(checkpoint, notes)
    texts[Field.PATH] = [to_text(path) for path in touched_paths(vault, checkpoint)]
    return CheckpointText(
        checkpoint.sequence,
        checkpoint.id,
        checkpoint.session_id,
        checkpoint.kind,
        checkpoint.created_at_ns,
        checkpoint.message_index,
        checkpoint.intent.tags,
        states,
        texts,
    )


def fields_of(checkpoint: Checkpoint, notes: Sequence[Annotation]) -> dict[Field, list[str]]:
    """Everything except paths, most significant first."""
    intent = checkpoint.intent
    ids = (intent.goal_id, intent.task_id, checkpoint.tool_use_id)
    return {
        Field.NAME: [intent.checkpoint_name] if intent.checkpoint_name else [],
        Field.REASONING: [intent.reasoning],
        Field.TAG: list(intent.tags),
        Field.ANNOTATION: [note.text for note in notes],
        Field.ID: [identifier for identifier in ids if identifier],
        Field.TOOL: [call_text(call) for call in intent.tool_calls],
    }


def _message_text(sequence: int, message: Message) -> MessageText:
    texts = {
        Field.MESSAGE: [message.content],
        Field.TOOL: [call_text(call) for call in message.tool_calls],
    }
    return MessageText(sequence, message.session_id, message.index, message.at_ns, texts)


def call_text(call: ToolCall) -> str:
    """A tool call as indexed; `call_words` is for people."""
    return call if isinstance(call, str) else ", ".join(f"{k}={v!r}" for k, v in call.items())


def touched_paths(vault: Vault, checkpoint: Checkpoint) -> Iterator[bytes]:
    """Files that differ from the parent, in path order, up to the searchable number. Paths of a
    damaged tree are left out. A safety checkpoint may be the only one with a path; a restore record
    equals its target, which is indexed itself."""
    if checkpoint.kind is Kind.RESTORE:
        return
    parent = vault.catalog.checkpoint(checkpoint.session_id, checkpoint.parent)
    before = parent.tree if parent is not None else None
    try:
        changes = tree_changes(vault.load_tree, before, checkpoint.tree)
        files = (change.path for change in changes if not change.is_directory)
        yield from islice(files, MOST_PATHS)
    except StoreDamaged:
        return


_MOST_CHECKPOINTS = 250
_MOST_OPERATIONS = 2_000
_MOST_ANNOTATIONS = 250
_MOST_MESSAGES = 2_000
_FEWEST_MESSAGES = 20
_BATCH_CHARACTERS = 4_000_000

_REMOVES = (OperationKind.DELETE, OperationKind.PRUNE)
_CHANGES_ANYTHING = (OperationKind.PURGE, OperationKind.REPAIR, OperationKind.LOST)


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Whether the index is complete, and why not."""

    complete: bool
    warnings: tuple[str, ...] = ()


def catch_up(vault: Vault, *, patience_s: float | None) -> CatchUp:
    """For about `patience_s` at most; without a limit, until the index is complete."""
    deadline_ns = None
    if patience_s is not None:
        deadline_ns = vault.clock.monotonic_ns() + int(patience_s * 1e9)
    try:
        return _Indexer(vault, deadline_ns).run()
    except (Busy, NoSpace) as error:
        return CatchUp(False, (f"the newest may be missing: {error.message}",))


def reindex(vault: Vault, checkpoint: Checkpoint) -> None:
    """Index a changed checkpoint again. Without an index, or if it was not indexed yet, there is
    nothing to do; the next search rebuilds a lost index."""
    try:
        if vault.search.cursors().checkpoint < checkpoint.sequence:
            return
        indexer = _Indexer(vault, None)
        with vault.search.exclusive():
            indexer.replace(checkpoint)
    except (Busy, NoSpace, IndexLost):
        with suppress(Busy, NoSpace, IndexLost):
            vault.search.recreate()


class _Indexer:
    def __init__(self, vault: Vault, deadline_ns: int | None) -> None:
        self._vault = vault
        self._deadline_ns = deadline_ns
        self._messages_at_once = 4 * _FEWEST_MESSAGES
        self._taken = 0
        self._has_annotations = False
        self._story = BestEffortStory(vault)

    def run(self) -> CatchUp:
        index = self._vault.search
        while not self._is_current(index.cursors()):
            with index.exclusive():
                batch = self._next_batch(self._valid(index.cursors()))
                index.ingest(batch)
            self._report_progress(batch)
            if self._is_late():
                return self._outcome(self._is_current(index.cursors()))
        return self._outcome(True)

    def replace(self, checkpoint: Checkpoint) -> None:
        cursors = self._vault.search.cursors()
        self._has_annotations = cursors.annotation > 0
        self._vault.search.ingest(IndexBatch(cursors, checkpoints=self._texts([checkpoint])))

    def _is_late(self) -> bool:
        deadline_ns = self._deadline_ns
        return deadline_ns is not None and self._vault.clock.monotonic_ns() >= deadline_ns

    def _outcome(self, complete: bool) -> CatchUp:
        if self._story.trouble is None:
            return CatchUp(complete)
        return CatchUp(False, (f"messages could not be searched: {self._story.trouble}",))

    def _is_current(self, cursors: Cursors) -> bool:
        newest = self._vault.catalog.newest_operation()
        if newest is not None and (newest.sequence, mark_of(newest)) != (
            cursors.operation,
            cursors.operation_mark,
        ):
            return False
        if self._vault.catalog.checkpoints_after(cursors.checkpoint, 1):
            return False
        if self._new_messages(cursors, 1) or self._new_annotations(cursors, 1):
            return False
        return self._same_story(cursors)

    def _same_story(self, cursors: Cursors) -> bool:
        """Whether positions are still valid: a recreated story counts from one again."""
        is_empty = (cursors.message, cursors.annotation) == (0, 0)
        return (
            is_empty or self._story.generation() == cursors.story or self._story.trouble is not None
        )

    def _valid(self, cursors: Cursors) -> Cursors:
        """Where to continue; from the start if the indexed data was replaced."""
        generation = self._story.generation()
        fresh = cursors == Cursors()
        if not fresh and self._same_log(cursors):
            is_empty = (cursors.message, cursors.annotation) == (0, 0)
            if cursors.story == generation or is_empty:
                return replace(cursors, story=generation)
        if not fresh:
            self._vault.search.recreate()
        newest = self._vault.catalog.newest_operation()
        if newest is None:
            return Cursors(story=generation)
        return Cursors(operation=newest.sequence, operation_mark=mark_of(newest), story=generation)

    def _same_log(self, cursors: Cursors) -> bool:
        catalog = self._vault.catalog
        if cursors.operation:
            read = catalog.operations_after(cursors.operation - 1, 1)
            if not read or read[0].sequence != cursors.operation:
                return False
            if mark_of(read[0]) != cursors.operation_mark:
                return False
        new = catalog.operations_after(cursors.operation, _MOST_OPERATIONS)
        return not any(operation.kind in _CHANGES_ANYTHING for operation in new)

    def _next_batch(self, cursors: Cursors) -> IndexBatch:
        catalog = self._vault.catalog
        # In this order: anything removed after it was read has an operation still to come.
        operations = catalog.operations_after(cursors.operation, _MOST_OPERATIONS)
        new = catalog.checkpoints_after(cursors.checkpoint, _MOST_CHECKPOINTS)
        messages = self._new_messages(cursors, self._messages_at_once)
        annotations = self._new_annotations(cursors, _MOST_ANNOTATIONS)
        touched: dict[CheckpointId, SessionId] = {
            operation.checkpoint: operation.session_id
            for operation in operations
            if operation.checkpoint is not None
            and operation.kind in (*_REMOVES, OperationKind.APPROVE)
        }
        touched |= {note.checkpoint_id: note.session_id for note in annotations}
        found = {key: catalog.checkpoint(owner, key) for key, owner in touched.items()}
        changed = {c.id: c for c in (*found.values(), *new) if c is not None}
        self._adapt(messages)
        return IndexBatch(
            replace(
                cursors,
                checkpoint=new[-1].sequence if new else cursors.checkpoint,
                operation=operations[-1].sequence if operations else cursors.operation,
                operation_mark=mark_of(operations[-1]) if operations else cursors.operation_mark,
                message=messages[-1][0] if messages else cursors.message,
                annotation=annotations[-1].sequence if annotations else cursors.annotation,
            ),
            checkpoints=self._texts(list(changed.values())),
            messages=[_message_text(sequence, message) for sequence, message in messages],
            gone=[key for key, checkpoint in found.items() if checkpoint is None],
        )

    def _texts(self, checkpoints: Collection[Checkpoint]) -> list[CheckpointText]:
        catalog = self._vault.catalog
        approved = {
            operation.checkpoint
            for session_id in {checkpoint.session_id for checkpoint in checkpoints}
            for operation in catalog.operations(session_id, kinds=(OperationKind.APPROVE,))
        }
        return [
            _checkpoint_text(self._vault, one, self._notes(one), one.id in approved)
            for one in checkpoints
        ]

    def _notes(self, checkpoint: Checkpoint) -> Sequence[Annotation]:
        return self._story.notes(checkpoint) if self._has_annotations else ()

    def _new_messages(self, cursors: Cursors, limit: int) -> Sequence[tuple[int, Message]]:
        return self._story(lambda story: story.messages_after(cursors.message, limit))

    def _new_annotations(self, cursors: Cursors, limit: int) -> Sequence[Annotation]:
        found = self._story(lambda story: story.annotations_after(cursors.annotation, limit))
        self._has_annotations |= bool(found) or cursors.annotation > 0
        return found

    def _adapt(self, messages: Sequence[tuple[int, Message]]) -> None:
        """Reads long messages in smaller batches."""
        if messages:
            average = sum(len(message.content) for _, message in messages) // len(messages) + 1
            wanted = _BATCH_CHARACTERS // average
            self._messages_at_once = max(_FEWEST_MESSAGES, min(wanted, _MOST_MESSAGES))

    def _report_progress(self, batch: IndexBatch) -> None:
        self._taken += len(batch.checkpoints) + len(batch.messages)
        self._vault.progress.advance("texts indexed", self._taken, None)

"""What there is to find about a checkpoint or a message, as texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from holdfast.domain.checkpoints import RECORD_KINDS, Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.intent import ToolCall
from holdfast.domain.messages import Annotation, Message
from holdfast.domain.paths import to_text
from holdfast.domain.search.hits import Field
from holdfast.domain.search.query import State
from holdfast.domain.trees.changes import tree_changes
from holdfast.engine.vault import Vault
from holdfast.ports.search import CheckpointText, MessageText

MOST_PATHS = 2_000
"""Changed paths of one checkpoint that can be found."""


def checkpoint_text(
    vault: Vault,
    checkpoint: Checkpoint,
    notes: Sequence[Annotation],
    approved: bool,
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
    """Everything but the paths, the most telling first."""
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


def message_text(sequence: int, message: Message) -> MessageText:
    texts = {
        Field.MESSAGE: [message.content],
        Field.TOOL: [call_text(call) for call in message.tool_calls],
    }
    return MessageText(sequence, message.session_id, message.index, message.at_ns, texts)


def call_text(call: ToolCall) -> str:
    """A tool call as the index knows it; people read `call_words`."""
    return call if isinstance(call, str) else ", ".join(f"{k}={v!r}" for k, v in call.items())


def touched_paths(vault: Vault, checkpoint: Checkpoint) -> Iterator[bytes]:
    """Files that differ from the parent, in path order, as many as can be found. What a damaged
    tree would have named is left out. The state before a restore may be the only one that has a
    path; the one after it is that of its target, which is found itself."""
    if checkpoint.kind is Kind.RESTORE:
        return
    parent = None
    if checkpoint.parent is not None:
        parent = vault.catalog.checkpoint(checkpoint.session_id, checkpoint.parent)
    before = parent.tree if parent is not None else None
    try:
        changes = tree_changes(vault.load_tree, before, checkpoint.tree)
        files = (change.path for change in changes if not change.is_directory)
        yield from islice(files, MOST_PATHS)
    except StoreDamaged:
        return

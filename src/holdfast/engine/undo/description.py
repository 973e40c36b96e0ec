"""What an undo takes back, in a few words: `the Bash call "rm -rf src" by AGENT`."""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import short
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.paths import to_text
from holdfast.domain.restore.selections import selected_words, selection_of
from holdfast.domain.tool_calls import BEFORE_MESSAGE, one_line
from holdfast.engine.undo.causes import Cause, Loss, is_before_tool
from holdfast.engine.undo.undo import UndoStep
from holdfast.engine.vault import Vault

_LONGEST = 80
_SHOWN = 3
_BEFORE_SOMETHING = (Kind.MESSAGE, Kind.TOOL, Kind.RISKY)
"""Made before something happened: with no tool call that did it, a person changed the files."""

_DONE = {
    OperationKind.RESTORE: "the restore",
    OperationKind.RESET: "the reset",
    OperationKind.UNDO: "the undo",
    OperationKind.REDO: "the redo",
}


def undone_words(vault: Vault, step: UndoStep) -> str:
    if step.undone is not None:
        words = _restore(vault, step.undone)
        # A redo brings back what the undo took.
        redone = step.request.kind is OperationKind.REDO
        return words.removeprefix("the undo of ") if redone else words
    since = step.since or step.request.target
    if step.turn:
        return f"everything since {_quoted(since)}"
    if step.causes:
        return " or ".join(_tool_calls(vault, one) for one in step.causes)
    if step.saved is not None and step.saved.kind in _BEFORE_SOMETHING:
        return one_line(f"your edits before {_what_followed(step.saved)}", 2 * _LONGEST)
    if step.saved is not None and not step.saved.kind.is_record:
        return f"the changes up to {_quoted(step.saved)}"
    # What a restore, an undo or a redo saved first were unsaved changes too.
    which = "unsaved changes" if step.saved is None else "changes"
    if selection_of(since) is not None:
        return f"the {which} since {_from(vault, OperationKind.RESTORE, since)}"
    return f"the {which} since {_quoted(since)}"


def _what_followed(saved: Checkpoint) -> str:
    """`the message "tidy up"` or `the Bash call "make"`: what the checkpoint was made for."""
    head, _, subject = saved.intent.reasoning.partition(": ")
    told = f' "{subject}"' if subject else ""
    if head == BEFORE_MESSAGE:
        return f"the message{told}"
    if is_before_tool(saved) and head.startswith("Before "):
        return f"the {head.removeprefix('Before ')} call{told}"
    return _quoted(saved)


def loss_words(vault: Vault, loss: Loss) -> str:
    """`the Bash call "rm -rf .git" by AGENT deleted .git, which Holdfast does not save`"""
    names = [one_line(to_text(gone.path), _LONGEST) for gone in loss.missing]
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    call = _tool_calls(vault, loss.cause)
    deleted = f"{', '.join(names[:_SHOWN])}{more}"
    return f"{call} deleted {deleted}, which Holdfast does not save"


def _restore(vault: Vault, operation: Operation) -> str:
    made = None
    if operation.checkpoint is not None:
        made = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    if made is None:
        return _DONE[operation.kind]
    if operation.kind is not OperationKind.UNDO:
        return _from(vault, operation.kind, made)
    undone = None
    if operation.reverses is not None:
        undone = next(iter(vault.catalog.operations_after(operation.reverses - 1, 1)), None)
    if undone is not None and undone.kind in RESTORING_KINDS:
        return f"the undo of {_restore(vault, undone)}"
    before, _, _ = made.intent.reasoning.partition(": back to ")
    return one_line(f"the undo of {before.removeprefix('Undid ')}", _LONGEST)


def _from(vault: Vault, kind: OperationKind, record: Checkpoint) -> str:
    """`the restore to one`, `the restore of a.txt from one`."""
    target = None
    if record.restores_from is not None:
        target = vault.catalog.checkpoint(record.session_id, record.restores_from)
    name = "" if target is None else target.name or short(target.id)
    selection = selection_of(record)
    if selection is None:
        return f"{_DONE[kind]} to {name}" if name else _DONE[kind]
    what = selected_words(selection) or "some paths"
    what = f"parts of {what}" if selection.hunks else what
    return one_line(f"{_DONE[kind]} of {what}{f' from {name}' if name else ''}", _LONGEST)


def _tool_calls(vault: Vault, cause: Cause) -> str:
    session = vault.catalog.session(cause.session_id)
    by = f" by {one_line(session.agent, 40)}" if session is not None and session.agent else ""
    told = f' "{one_line(cause.subject, _LONGEST)}"' if cause.subject else ""
    tools = " and ".join(one_line(tool, 40) for tool in cause.tools)
    return f"the {tools} {'call' if cause.calls == 1 else 'calls'}{told}{by}"


def _quoted(checkpoint: Checkpoint) -> str:
    name = checkpoint.name or one_line(checkpoint.intent.reasoning, _LONGEST)
    return f'checkpoint {short(checkpoint.id)} "{name}"'

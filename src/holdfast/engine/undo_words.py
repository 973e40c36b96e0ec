"""What an undo takes back, in a few words: `the Bash call "rm -rf src" by claude-code`."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import short
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.tool_descriptions import one_line
from holdfast.engine.undo import UndoStep
from holdfast.engine.vault import Vault

_LONGEST = 80
_MOST_PATHS = 3

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
    if step.turn:
        return f"everything since {_quoted(step.request.target)}"
    if step.causes:
        return " or ".join(_tool_call(vault, one) for one in step.causes)
    if step.saved is not None:
        return f"the changes up to {_quoted(step.saved)}"
    return f"the unsaved changes since {_quoted(step.request.target)}"


def _restore(vault: Vault, operation: Operation) -> str:
    made = None
    if operation.checkpoint is not None:
        made = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    if operation.kind is OperationKind.UNDO and made is not None:
        words = made.intent.reasoning
        before, _, _ = words.partition(": back to ")
        return one_line(f"the undo of {before.removeprefix('Undid ')}", _LONGEST)
    target = None
    if made is not None and made.restores_from is not None:
        target = vault.catalog.checkpoint(operation.session_id, made.restores_from)
    to = "" if target is None else f" to {target.name or short(target.id)}"
    return f"{_DONE[operation.kind]}{to}"


def _tool_call(vault: Vault, before: Checkpoint) -> str:
    call = before.intent.tool_calls[-1]
    known: Mapping[str, object] = call if isinstance(call, Mapping) else {}
    tool = one_line(str(known.get("tool") or "tool"), 40)
    subject = str(known.get("command") or "")
    paths = known.get("paths")
    if not subject and isinstance(paths, list | tuple):
        root = f"{vault.workspace}/"
        subject = ", ".join(str(path).removeprefix(root) for path in paths[:_MOST_PATHS])
    told = f' "{one_line(subject, _LONGEST)}"' if subject else ""
    session = vault.catalog.session(before.session_id)
    by = f" by {one_line(session.agent, 40)}" if session is not None and session.agent else ""
    return f"the {tool} call{told}{by}"


def _quoted(checkpoint: Checkpoint) -> str:
    name = checkpoint.name or one_line(checkpoint.intent.reasoning, _LONGEST)
    return f'checkpoint {short(checkpoint.id)} "{name}"'

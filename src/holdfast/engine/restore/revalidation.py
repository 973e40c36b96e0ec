"""Checking that a restore still means what it meant when it was requested.

A plan may have been on the screen for minutes while others worked: the checkpoint may be deleted
since, and what an undo was to take back may be taken back already. Such a restore is refused before
it begins, so that nothing is done twice, or to a state that nobody keeps any more.
"""

from __future__ import annotations

from holdfast.domain.errors import Refused, UnknownReference
from holdfast.domain.ids import short
from holdfast.domain.operations import OperationKind, undo_lists
from holdfast.engine.history.history import MOVING_KINDS
from holdfast.engine.restore.records import RestoreRequest, Seen
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

_MOST_SINCE = 1_000


def revalidate(vault: Vault, request: RestoreRequest) -> RestoreRequest:
    """The request, with its target as it is now: a purge may have taken something out of it.
    Called with the store's lock held."""
    target = request.target
    if request.kind is OperationKind.RESET:
        from holdfast.engine.sessions.approval import require_same_base

        require_same_base(vault, request)
    if request.seen is not None:
        _require_undisturbed(vault, request.seen, request.kind)
    elif request.kind in (OperationKind.UNDO, OperationKind.REDO):
        _require_next(vault, request)
    now = vault.catalog.checkpoint(target.session_id, target.id)
    if now is None:
        raise UnknownReference(
            f"the checkpoint {target.name or short(target.id)} was deleted meanwhile; nothing was "
            "restored",
            hint="see what there is: holdfast log",
        )
    return replace(request, target=now)


def _require_undisturbed(vault: Vault, seen: Seen, kind: OperationKind) -> None:
    """An undo is about the last thing that happened. Saves of the same state change nothing."""
    past = "undone" if kind is OperationKind.UNDO else "redone"
    for operation in vault.catalog.operations_after(seen.operation, _MOST_SINCE):
        made = operation.checkpoint and vault.catalog.checkpoint(None, operation.checkpoint)
        saved = operation.kind is OperationKind.CHECKPOINT and made and made.tree == seen.tree
        if operation.kind in MOVING_KINDS and not saved:
            raise Refused(
                f"The workspace changed in between, so nothing was {past}",
                hint="see what happened: holdfast log",
            )


def _require_next(vault: Vault, request: RestoreRequest) -> None:
    lists = undo_lists(vault.catalog.operations(request.session_id))
    undone = request.kind is OperationKind.UNDO
    waiting = lists.undoable if undone else lists.redoable
    if not waiting or waiting[-1].sequence != request.reverses:
        raise Refused(
            "another restore, undo or redo came in between; nothing was "
            + ("undone" if undone else "redone"),
            hint="see what was done: holdfast log --records",
        )

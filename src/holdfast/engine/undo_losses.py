"""What the last tool calls deleted and no checkpoint has, where nothing else has changed since.

    rm -rf .git, make clean → every saved file is as it was → undo would take back an earlier thing

The reports of the checkpoints that were made before the calls tell what was there and left out.
What built-in rules leave out is made again by a tool, and is no loss.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Kind
from holdfast.domain.ignore_defaults import is_made_by_tools
from holdfast.domain.restore_plans import Missing
from holdfast.domain.undo_history import State
from holdfast.engine.restore.planning import missing_now
from holdfast.engine.undo_causes import Cause, call_begun_at
from holdfast.engine.vault import Vault
from holdfast.values.classes import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """The call, and what it deleted."""

    cause: Cause
    missing: tuple[Missing, ...]


def loss_since(vault: Vault, state: State) -> Loss | None:
    """What calls since a state, which the workspace is still in, have deleted: the newest of them
    that has. What was gone already when an undo or a restore led to the state does not count."""
    returned = [place for place, one in enumerate(state.checkpoints) if one.kind is Kind.RESTORE]
    for one in reversed(state.checkpoints[returned[-1] + 1 if returned else 0 :]):
        cause = call_begun_at(vault, one)
        if cause is None:
            continue
        missing = tuple(gone for gone in missing_now(vault, one) if _is_loss(gone))
        if missing:
            return Loss(cause, missing)
    return None


def _is_loss(gone: Missing) -> bool:
    return not gone.by_default and not is_made_by_tools(gone.path, is_directory=True)

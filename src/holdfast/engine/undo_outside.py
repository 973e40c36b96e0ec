"""Files outside the workspace as a part of undo: just those that the undone tool calls named.

    a checkpoint before a tool call says which paths outside it holds for that call
    → they are not as it has them now? then the call has changed them, and undo brings them back

Others outside stay as they are, whatever became of them: they are no part of what is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import BELOW, SOME
from holdfast.domain.external_paths import key_of
from holdfast.domain.paths import from_text
from holdfast.engine.components.manifests import state_of
from holdfast.engine.components.restoring import plan_components
from holdfast.engine.components.touching import changed_parts
from holdfast.engine.vault import Vault

EXTERNAL = "external"


class OutsideStep(NamedTuple):
    """`mode` restores what the calls changed, None if that is nothing; `blocked` says what of it
    cannot come back."""

    mode: str | None = None
    blocked: tuple[str, ...] = ()


def keys_outside(checkpoints: Iterable[Checkpoint]) -> frozenset[str]:
    """The paths outside that tool calls named, as keys."""
    found = set()
    for one in checkpoints:
        for call in one.intent.tool_calls:
            named = call.get(EXTERNAL, ()) if isinstance(call, Mapping) else ()
            if isinstance(named, list | tuple):
                found |= {key_of(from_text(path)) for path in named if isinstance(path, str)}
    return frozenset(found)


def changed_between(vault: Vault, before: Checkpoint, after: Checkpoint) -> bool:
    """Whether what tools named outside differs between two checkpoints."""
    if before.components is None or before.components == after.components:
        return False
    return changed_parts(vault, EXTERNAL, before, after)


def outside_step(vault: Vault, target: Checkpoint, since: Iterable[Checkpoint]) -> OutsideStep:
    """What an undo back to `target` brings back outside; `since` are the checkpoints from it on."""
    keys = keys_outside(since)
    if not keys or EXTERNAL not in vault.settings.components:
        return OutsideStep()
    state = state_of(vault.objects, target, EXTERNAL)
    if state is None or state.failure is not None:
        return OutsideStep()
    (step,) = plan_components(vault, target, ((EXTERNAL, f"{BELOW}:{','.join(sorted(keys))}"),))
    chosen = ",".join(key for key, _ in step.choices)
    return OutsideStep(f"{SOME}:{chosen}" if chosen else None, step.blocked)

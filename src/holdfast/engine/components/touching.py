"""What a restore has touched of components: just that is what an undo brings back."""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import EXACT, SOME, ComponentState
from holdfast.engine.components.contents import StoreSource
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.components.manifests import read_states, state_of
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component, DividedComponent
from holdfast.ports.progress import NoProgress


def changed_components(
    vault: Vault, before: Checkpoint, after: Checkpoint
) -> tuple[tuple[str, str], ...]:
    """Components that differ between two checkpoints, each to be restored as it was before."""
    if before.components == after.components:
        return ()
    later = {state.name: state for state in read_states(vault.objects, after)}
    components = {component.name: component for component in vault.components.all()}
    changed = []
    for state in read_states(vault.objects, before):
        now = later.get(state.name)
        if state.failure is None and not state.same_as(now):
            mode = _changed_parts(vault, components.get(state.name), state, now)
            changed += [(state.name, mode)] if mode is not None else []
    return tuple(changed)


def changed_parts(vault: Vault, name: str, before: Checkpoint, after: Checkpoint) -> bool:
    """Whether parts that both checkpoints have of a component differ between them."""
    component = next((one for one in vault.components.all() if one.name == name), None)
    states = [state_of(vault.objects, one, name) for one in (before, after)]
    old, new = states
    if old is None or new is None or old.failure is not None or new.failure is not None:
        return False
    return not old.same_as(new) and _changed_parts(vault, component, old, new) is not None


def _changed_parts(
    vault: Vault, component: Component | None, state: ComponentState, now: ComponentState | None
) -> str | None:
    """The mode that brings back what is not as it was, and no more; None when nothing is."""
    if now is None or now.failure is not None or not isinstance(component, DividedComponent):
        return EXACT
    divided, silent = component, NoProgress()
    try:
        keys = guarded(
            lambda: divided.differing(
                state,
                StoreSource(vault.objects, state, silent),
                now,
                StoreSource(vault.objects, now, silent),
            ),
            timeout_s=vault.settings.component_timeout,
        )
    except Refusal:
        return EXACT  # and its plan says what is wrong
    return f"{SOME}:{','.join(keys)}" if keys else None

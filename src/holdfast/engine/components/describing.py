"""What a checkpoint holds besides files, in lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import ComponentState
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.components.manifests import read_states
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component
from holdfast.values.classes import replace


def describe_components(vault: Vault, checkpoint: Checkpoint) -> list[tuple[str, str]]:
    """Name and line, several of a name; also of components that are no longer installed."""
    components = {component.name: component for component in vault.components.all()}
    lines: list[tuple[str, str]] = []
    for state in read_states(vault.objects, checkpoint):
        if state.failure is not None:
            lines.append((state.name, f"not captured: {state.failure}"))
            continue
        if checkpoint.kind.is_record:  # its notes may be of the moment before the restore
            state = replace(state, notes={})
        component = components.get(state.name)
        if component is None:
            said: Sequence[str] = ("captured; the component is not installed, or turned off",)
        else:
            said = _said(vault, component, state)
        lines += [(state.name, line) for line in (*said, *state.problems)]
    return lines


def _said(vault: Vault, component: Component, state: ComponentState) -> Sequence[str]:
    try:
        return guarded(
            lambda: [str(line) for line in component.describe(state)],
            timeout_s=vault.settings.component_timeout,
        )
    except Refusal as error:
        return (f"it cannot be described: {error}",)

"""Which components a restore includes, and how: what was asked for, over what is usual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import EXACT
from holdfast.domain.errors import UsageError
from holdfast.engine.components.manifests import read_states
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component
from holdfast.values.classes import dataclass, field

LEAVE = "files"
"""A mode that every component has: leave it alone, restore files only."""


@dataclass(frozen=True, slots=True)
class ComponentChoice:
    """`modes` says how components come back; `include` and `exclude` which do, beside the usual."""

    modes: Mapping[str, str] = field(default_factory=dict)
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()


def _parts(
    choice: ComponentChoice | None,
) -> tuple[Mapping[str, str], Sequence[str], Sequence[str]]:
    choice = choice or ComponentChoice()
    return choice.modes, choice.include, choice.exclude


def default_mode(component: Component) -> str:
    """How a component comes back with a whole checkpoint when nobody says anything."""
    mode = getattr(component, "default_mode", EXACT)
    return str(mode) if mode in component.modes else EXACT


def choose_components(
    vault: Vault,
    target: Checkpoint,
    choice: ComponentChoice | None = None,
    *,
    paths: Sequence[bytes] = (),
) -> tuple[tuple[str, str], ...]:
    """Name and mode of each; `UsageError` for names and modes that do not exist."""
    modes, include, exclude = _parts(choice)
    if target.components is None and not (modes or include or exclude):
        return ()  # nothing has to be loaded to know that
    components = {component.name: component for component in vault.components.all()}
    for name in (*include, *exclude, *modes):
        if name not in components:
            raise UsageError(
                f"there is no component {name!r}",
                hint=f"components are: {', '.join(sorted(components)) or 'none'}",
            )
    chosen: dict[str, str] = {}
    if not paths and target.components is not None:
        usual = {name for name, c in components.items() if c.restored_by_default}
        states = read_states(vault.objects, target) if usual else ()
        chosen = {
            state.name: default_mode(components[state.name])
            for state in states
            if state.name in usual and state.failure is None
        }
    chosen |= dict.fromkeys(include, EXACT)
    for name, mode in modes.items():
        allowed = (LEAVE, *components[name].modes)
        if mode.partition(":")[0] not in allowed:
            raise UsageError(
                f"{name} cannot be restored as {mode!r}", hint=f"choose one of {', '.join(allowed)}"
            )
        chosen[name] = mode
    chosen = {n: m for n, m in chosen.items() if m != LEAVE and n not in exclude}
    if chosen and paths:
        raise UsageError(
            f"{', '.join(sorted(chosen))} can only be restored with a whole checkpoint",
            hint="leave out the paths",
        )
    return tuple(sorted(chosen.items()))

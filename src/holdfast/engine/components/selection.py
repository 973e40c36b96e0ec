"""Which components a restore includes and in which mode, and which ones an undo restores.

The caller's choice overrides the defaults. An undo restores only the parts that the restore
changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import EXACT, SOME, ComponentState
from holdfast.domain.errors import UsageError
from holdfast.engine.components.contents import StoreSource
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.components.manifests import is_recorded_only, read_states, state_of
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component, DividedComponent
from holdfast.values.classes import dataclass, field

LEAVE = "files"
"""A mode that every component has: leave it alone, restore files only."""


@dataclass(frozen=True, slots=True)
class ComponentChoice:
    """`modes` sets how components are restored; `include` and `exclude` change the default set."""

    modes: Mapping[str, str] = field(default_factory=dict)
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()


def default_mode(component: Component) -> str:
    """How a component is restored with a whole checkpoint by default."""
    mode = getattr(component, "default_mode", EXACT)
    return str(mode) if mode in component.modes else EXACT


def choose_components(
    vault: Vault,
    target: Checkpoint,
    choice: ComponentChoice | None = None,
    *,
    paths: Sequence[bytes] = (),
) -> tuple[tuple[str, str], ...]:
    """Name and mode of each; `UsageError` for unknown names and modes."""
    choice = choice or ComponentChoice()
    modes, include, exclude = choice.modes, choice.include, choice.exclude
    asked = bool(modes or include or exclude)
    if target.components is None and not asked:
        return ()  # without loading any component
    states = () if paths else read_states(vault.objects, target)
    names = {state.name for state in states}
    found = vault.components.all() if asked else vault.components.named(names)
    components = {component.name: component for component in found}
    for name in (*include, *exclude, *modes):
        if name not in components:
            raise UsageError(
                f"unknown component: {name!r}",
                hint=f"known components: {', '.join(sorted(components)) or 'none'}",
            )
        if name not in exclude and is_recorded_only(components[name]):
            raise UsageError(
                f"{name} is recorded, not restored",
                hint="compare it with now: holdfast diff REF",
            )
    usual = {name for name, c in components.items() if c.restored_by_default}
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


def changed_components(
    vault: Vault, before: Checkpoint, after: Checkpoint
) -> tuple[tuple[str, str], ...]:
    """Components that differ between two checkpoints, each to be restored as it was before."""
    if before.components == after.components:
        return ()
    later = {state.name: state for state in read_states(vault.objects, after)}
    states = read_states(vault.objects, before)
    components = {one.name: one for one in vault.components.named({s.name for s in states})}
    changed = []
    for state in states:
        now, component = later.get(state.name), components.get(state.name)
        if component is not None and is_recorded_only(component):
            continue
        if state.failure is None and not state.same_as(now):
            mode = _changed_parts(vault, component, state, now)
            changed += [(state.name, mode)] if mode is not None else []
    return tuple(changed)


def changed_parts(vault: Vault, name: str, before: Checkpoint, after: Checkpoint) -> Sequence[str]:
    """The keys of a component's parts that differ between two checkpoints that have it."""
    old = state_of(vault.objects, before, name)
    return differing_parts(vault, name, old, state_of(vault.objects, after, name))


def differing_parts(
    vault: Vault, name: str, old: ComponentState | None, new: ComponentState | None
) -> Sequence[str]:
    """The keys of parts that differ between two states; none if one is unknown."""
    if old is None or new is None or old.failure is not None or new.failure is not None:
        return ()
    component = next(iter(vault.components.named((name,))), None)
    if old.same_as(new) or not isinstance(component, DividedComponent):
        return ()
    return _differing(vault, component, old, new) or ()


def _changed_parts(
    vault: Vault, component: Component | None, state: ComponentState, now: ComponentState | None
) -> str | None:
    """The mode that restores only the differing parts; None if none differ."""
    if now is None or now.failure is not None or not isinstance(component, DividedComponent):
        return EXACT
    keys = _differing(vault, component, state, now)
    if keys is None:
        return EXACT  # its plan reports the problem
    return f"{SOME}:{','.join(keys)}" if keys else None


def _differing(
    vault: Vault, component: DividedComponent, state: ComponentState, now: ComponentState
) -> Sequence[str] | None:
    """The keys of the parts that differ; None if the component cannot say."""
    try:
        return guarded(
            lambda: component.differing(
                state,
                StoreSource(vault.objects, state),
                now,
                StoreSource(vault.objects, now),
            ),
            timeout_s=vault.settings.component_timeout,
        )
    except Refusal:
        return None

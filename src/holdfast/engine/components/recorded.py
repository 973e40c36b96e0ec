"""Components that are recorded and never restored: their differences, and the remarks of a
restore about them."""

from __future__ import annotations

from collections.abc import Container, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import ComponentState, encode_manifest
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.wording import Remark
from holdfast.engine.components.capture import present_state
from holdfast.engine.components.guard import Refusal, guarded, lines
from holdfast.engine.components.manifests import is_recorded_only, read_states
from holdfast.engine.vault import Vault
from holdfast.ports.component import RecordedComponent
from holdfast.values.classes import dataclass


@dataclass(frozen=True, slots=True)
class RecordedChanges:
    """The differences of one recorded component between two states, one per line."""

    name: str
    lines: tuple[str, ...]


def recorded_changes(
    vault: Vault, old: Checkpoint | None, new: Checkpoint | None, *, for_restore: bool = False
) -> list[RecordedChanges]:
    """Between two checkpoints (None: now), for components that both sides have. Empty if a
    checkpoint cannot be read, because files are compared anyway."""
    if old is None or old.components is None or (new is not None and new.components is None):
        return []
    try:
        before = _recorded(vault, old)
        after = None if new is None else _recorded(vault, new)
    except StoreDamaged:
        return []
    found = []
    for component in vault.components.named(before):
        if not isinstance(component, RecordedComponent):
            continue
        state = before[component.name]
        now = present_state(vault, component, None) if after is None else after.get(component.name)
        if now is not None and now.failure is None:
            said = _differences(vault, component, state, now, for_restore)
            found += [RecordedChanges(component.name, said)] if said else []
    return found


def recorded_remarks(vault: Vault, target: Checkpoint) -> tuple[str, ...]:
    """Remarks on recorded components that differ from the restored checkpoint."""
    return tuple(
        Remark(f"{one.name}: recorded, not restored; since then: {'; '.join(one.lines)}")
        for one in recorded_changes(vault, target, None, for_restore=True)
    )


def without_recorded(
    vault: Vault, checkpoint: Checkpoint, captured: Sequence[ComponentState]
) -> Digest | None:
    """The checkpoint's manifest without recorded components that were not captured now. None if
    that is empty; unchanged if it cannot be read."""
    try:
        states = read_states(vault.objects, checkpoint)
    except StoreDamaged:
        return checkpoint.components
    names = recorded_names(vault, {s.name for s in states}) - {state.name for state in captured}
    left = tuple(state for state in states if state.name not in names)
    return digest_of(encode_manifest(left)) if left else None


def _recorded(vault: Vault, checkpoint: Checkpoint) -> dict[str, ComponentState]:
    states = read_states(vault.objects, checkpoint)
    names = recorded_names(vault, {state.name for state in states})
    return {s.name: s for s in states if s.name in names and s.failure is None}


def recorded_names(vault: Vault, names: Container[str]) -> set[str]:
    """The names whose components are recorded only."""
    return {one.name for one in vault.components.named(names) if is_recorded_only(one)}


def _differences(
    vault: Vault,
    component: RecordedComponent,
    before: ComponentState,
    after: ComponentState,
    for_restore: bool,
) -> tuple[str, ...]:
    compare = component.restore_notes if for_restore else component.differences
    try:
        return guarded(
            lambda: lines(compare(before, after)), timeout_s=vault.settings.component_timeout
        )
    except Refusal as error:
        return (f"it cannot be compared: {error}",)

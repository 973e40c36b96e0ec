"""Letting go of what was kept alive for checkpoints that are no longer there.

Done after the rows are gone and never before; what a crash leaves in between is found the next
time, because each component is told everything that is still needed, not what went.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.domain.component_states import ComponentState, decode_manifest
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component


def release_components(vault: Vault) -> tuple[str, ...]:
    """Called with the store's lock held, after checkpoints were dropped; reasons why some of it
    could not be let go."""
    problems = []
    for component in vault.components.all():
        try:
            _release(vault, component)
        except (Refusal, StoreDamaged) as error:
            problems.append(f"{component.name}: nothing that it keeps was let go: {error}")
    return tuple(problems)


def _release(vault: Vault, component: Component) -> None:
    guarded(
        lambda: component.release(
            vault.workspace, vault.access.workspace_id, _needed(vault, component.name)
        ),
        timeout_s=vault.settings.component_timeout,
    )


def _needed(vault: Vault, name: str) -> Iterator[ComponentState]:
    """Looked up only when a component wants to know: it costs every checkpoint there is."""
    seen: set[Digest] = set()
    for checkpoint in vault.catalog.roots():
        if checkpoint.components is None or checkpoint.components in seen:
            continue
        seen.add(checkpoint.components)
        for state in decode_manifest(vault.objects.read(checkpoint.components)):
            if state.name == name:
                yield state

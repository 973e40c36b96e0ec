"""The manifest of a checkpoint: what it names, its description, and releasing what none needs.

Releasing is done after the rows are gone and never before. What a crash leaves in between is found
the next time, because each component is told everything that is still needed, not what went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import ComponentState, contents_of, decode_manifest
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component
from holdfast.ports.objects import ObjectReader
from holdfast.values.classes import replace


def read_states(objects: ObjectReader, checkpoint: Checkpoint) -> tuple[ComponentState, ...]:
    """What was captured besides files; `StoreDamaged` when that cannot be read."""
    if checkpoint.components is None:
        return ()
    return decode_manifest(objects.read(checkpoint.components))


def state_of(
    objects: ObjectReader, checkpoint: Checkpoint | None, name: str
) -> ComponentState | None:
    states = () if checkpoint is None else read_states(objects, checkpoint)
    return next((state for state in states if state.name == name), None)


def named_objects(read: Callable[[Digest], bytes], manifest: Digest) -> Iterator[Digest]:
    """Every object that a manifest needs, itself included."""
    yield manifest
    for content in contents_of(decode_manifest(read(manifest))):
        if content.chunks is None:
            yield content.digest
        else:
            yield content.chunks
            for piece in decode_chunk_list(read(content.chunks)):
                yield piece.digest


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
            vault.workspace, vault.workspace_id, _needed(vault, component.name)
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

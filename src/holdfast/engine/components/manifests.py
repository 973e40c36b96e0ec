"""A checkpoint's component manifest: its objects, its description, circuit breakers, and release.

Components release data only after the rows are deleted. Leftovers of a crash in between are found
the next time, because each component gets the list of everything still needed, not of removed
states.

A circuit breaker protects saves from a component that does not respond, such as a database server:

    tried ── failures in a row ──► paused, ten times as long as the last try took
    ── then one try ── success ──► tried as before

Its state is in the manifest, in the failed component's notes, so every process sees it without an
extra write. Guarantee: a safety checkpoint always tries every component, and the checkpoint records
each skipped component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import ComponentState, contents_of, decode_manifest
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.engine.components.guard import Refusal, guarded
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.component import Component
from holdfast.ports.objects import ObjectReader
from holdfast.values.classes import dataclass, replace

FAILURES = 3
_SHARE = 10
_SHORTEST_NS = 5_000_000_000
_LONGEST_NS = 60_000_000_000


def read_states(objects: ObjectReader, checkpoint: Checkpoint) -> tuple[ComponentState, ...]:
    """The captured components; `StoreDamaged` if they cannot be read."""
    if checkpoint.components is None:
        return ()
    return decode_manifest(objects.read(checkpoint.components))


def state_of(
    objects: ObjectReader, checkpoint: Checkpoint | None, name: str
) -> ComponentState | None:
    states = () if checkpoint is None else read_states(objects, checkpoint)
    return next((state for state in states if state.name == name), None)


def named_objects(read: Callable[[Digest], bytes], manifest: Digest) -> Iterator[Digest]:
    """Every object that a manifest needs, including itself."""
    yield manifest
    for content in contents_of(decode_manifest(read(manifest))):
        if content.chunks is None:
            yield content.digest
        else:
            yield content.chunks
            for piece in decode_chunk_list(read(content.chunks)):
                yield piece.digest


def describe_components(vault: Vault, checkpoint: Checkpoint) -> list[tuple[str, str]]:
    """Pairs of name and line, several per name; even for components no longer installed."""
    return describe_states(vault, checkpoint, read_states(vault.objects, checkpoint))


def describe_states(
    vault: Vault, checkpoint: Checkpoint, states: Sequence[ComponentState]
) -> list[tuple[str, str]]:
    """The same for some states of the checkpoint, which have been read already."""
    components = {one.name: one for one in vault.components.named({s.name for s in states})}
    lines: list[tuple[str, str]] = []
    for state in states:
        if state.failure is not None:
            lines.append((state.name, f"not captured: {state.failure}"))
            continue
        if checkpoint.kind.is_record:  # its notes may be from before the restore
            state = replace(state, notes={})
        component = components.get(state.name)
        if component is None:
            said: Sequence[str] = ("captured, but the component is not installed or turned off",)
        else:
            said = _describe(vault, component, state)
        lines += [(state.name, line) for line in (*said, *state.problems)]
    return lines


def _describe(vault: Vault, component: Component, state: ComponentState) -> Sequence[str]:
    try:
        return guarded(
            lambda: [str(line) for line in component.describe(state)],
            timeout_s=vault.settings.component_timeout,
        )
    except Refusal as error:
        return (f"it cannot be described: {error}",)


def release_components(vault: Vault) -> tuple[str, ...]:
    """Called with the store's lock held, after checkpoints were deleted. Returns reasons why data
    could not be released."""
    problems = []
    for component in vault.components.all():
        try:
            _release(vault, component)
        except (Refusal, StoreDamaged) as error:
            problems.append(f"{component.name}: could not release old data: {error}")
    return tuple(problems)


def _release(vault: Vault, component: Component) -> None:
    guarded(
        lambda: component.release(
            vault.workspace, vault.workspace_id, _needed(vault, component.name)
        ),
        timeout_s=vault.settings.component_timeout,
    )


def _needed(vault: Vault, name: str) -> Iterator[ComponentState]:
    """Computed only if a component asks, because it reads every checkpoint."""
    seen: set[Digest] = set()
    for checkpoint in all_checkpoints(vault.catalog):
        if checkpoint.components is None or checkpoint.components in seen:
            continue
        seen.add(checkpoint.components)
        for state in decode_manifest(vault.objects.read(checkpoint.components)):
            if state.name == name:
                yield state


@dataclass(frozen=True, slots=True)
class Degraded:
    """A component that the last checkpoint lacks, or has only in part, and why. After several
    `failures` in a row it is paused until a time; None if every save tries it."""

    name: str
    reason: str
    failures: int
    left_alone_until_ns: int | None


def is_guarded(component: Component) -> bool:
    """Whether it depends on more than local files; assumed for plug-ins that do not say."""
    return bool(getattr(component, "outside", True))


def is_recorded_only(component: Component) -> bool:
    """Whether it is never restored: see `RecordedComponent`."""
    return bool(getattr(component, "recorded_only", False))


def paused_state(known: ComponentState | None, now_ns: int) -> ComponentState | None:
    """The state to record instead of trying, if the component is paused now."""
    if known is None or known.failure is None:
        return None
    notes = known.notes
    if _number(notes, "failures") < FAILURES or not _is_resting(notes, now_ns):
        return None
    said = f"paused after {_number(notes, 'failures')} failures in a row"
    return replace(known, failure=f"{said}, the last: {notes.get('reason')}")


def failed(
    name: str, reason: str, known: ComponentState | None, *, now_ns: int, took_ns: int
) -> ComponentState:
    """The state of a component that has just failed, with its failures counted."""
    before = 0 if known is None or known.failure is None else _number(known.notes, "failures")
    rest_ns = min(max(took_ns * _SHARE, _SHORTEST_NS), _LONGEST_NS)
    notes = {
        "failures": min(before + 1, FAILURES),
        "reason": reason,
        "rest_ns": rest_ns,
        "tried_at_ns": now_ns,
    }
    return ComponentState(name, failure=reason, notes=notes)


def degraded(vault: Vault, checkpoint: Checkpoint | None) -> list[Degraded]:
    """Components that a checkpoint lacks or has only in part, with the state of their breakers."""
    found = []
    for state in () if checkpoint is None else read_states(vault.objects, checkpoint):
        if state.failure is None:
            if state.problems:
                found.append(Degraded(state.name, "; ".join(state.problems), 0, None))
            continue
        notes, until = state.notes, None
        if _number(notes, "failures") >= FAILURES and _is_resting(notes, vault.clock.now_ns()):
            until = _number(notes, "tried_at_ns") + _number(notes, "rest_ns")
        reason = str(notes.get("reason", state.failure))
        found.append(Degraded(state.name, reason, max(_number(notes, "failures"), 1), until))
    return found


def _is_resting(notes: Mapping[str, Any], now_ns: int) -> bool:
    """A clock that was set back must not prolong the pause."""
    since = now_ns - _number(notes, "tried_at_ns")
    return 0 <= since < min(_number(notes, "rest_ns"), _LONGEST_NS)


def _number(notes: Mapping[str, Any], key: str) -> int:
    value = notes.get(key, 0)
    return value if type(value) is int else 0

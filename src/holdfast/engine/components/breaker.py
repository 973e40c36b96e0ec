"""A breaker around components that talk to something outside, such as a database server.

    tried ── failures in a row ──► left alone, ten times as long as the last try took
    ── then one try ── success ──► tried as before

What does not answer must not hold up every save. The state of a breaker stands in the checkpoint
that HEAD stands on, in the notes of the component that failed: every process sees it, and nothing
is written for it alone. Guarantee: what a restore saves first is always tried, and a component that
is left alone says so in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import ComponentState
from holdfast.engine.components.manifests import read_states
from holdfast.engine.vault import Vault
from holdfast.ports.component import Component
from holdfast.values.classes import dataclass, replace

FAILURES = 3
_SHARE = 10
_SHORTEST_NS = 5_000_000_000
_LONGEST_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Degraded:
    """A component that the last checkpoint has not, and why; after so many `failures` in a row it
    is left alone until a time, None when it is tried with every save."""

    name: str
    reason: str
    failures: int
    left_alone_until_ns: int | None


def is_guarded(component: Component) -> bool:
    """Whether it depends on something outside of this machine's files; a plug-in that does not say
    may."""
    return bool(getattr(component, "outside", True))


def at_rest(known: ComponentState | None, now_ns: int) -> ComponentState | None:
    """What a save takes instead of trying, if the component is to be left alone now."""
    if known is None or known.failure is None:
        return None
    notes = known.notes
    if _number(notes, "failures") < FAILURES or not _is_resting(notes, now_ns):
        return None
    said = f"left alone for a while after {_number(notes, 'failures')} failures in a row"
    return replace(known, failure=f"{said}, the last: {notes.get('reason')}")


def failed(
    name: str, reason: str, known: ComponentState | None, *, now_ns: int, took_ns: int
) -> ComponentState:
    """The state of a component that has just failed, one failure more than before."""
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
    """Components that a checkpoint is without, with the state of their breakers."""
    found = []
    for state in () if checkpoint is None else read_states(vault.objects, checkpoint):
        if state.failure is None:
            continue
        notes, until = state.notes, None
        if _number(notes, "failures") >= FAILURES and _is_resting(notes, vault.clock.now_ns()):
            until = _number(notes, "tried_at_ns") + _number(notes, "rest_ns")
        reason = str(notes.get("reason", state.failure))
        found.append(Degraded(state.name, reason, max(_number(notes, "failures"), 1), until))
    return found


def _is_resting(notes: Mapping[str, Any], now_ns: int) -> bool:
    """A clock that was set back must not make it last."""
    since = now_ns - _number(notes, "tried_at_ns")
    return 0 <= since < min(_number(notes, "rest_ns"), _LONGEST_NS)


def _number(notes: Mapping[str, Any], key: str) -> int:
    value = notes.get(key, 0)
    return value if type(value) is int else 0

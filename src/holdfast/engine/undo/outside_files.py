"""Files outside the workspace in an undo: only those that the undone tool calls named.

    a checkpoint before a tool call says which paths outside it holds for that call
    → they are not as it has them now? then the call has changed them, and undo brings them back

Calls can overlap: one that was running at a checkpoint may have changed its files later. Other
files outside the workspace are not part of the undo, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import BELOW, SOME
from holdfast.domain.external_paths import key_of
from holdfast.domain.paths import from_text
from holdfast.engine.components.manifests import state_of
from holdfast.engine.components.selection import changed_parts
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import LONGEST_CALL_NS, name_digest
from holdfast.values.classes import NamedTuple

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


class CallsInProgress:
    """Which tool calls had not ended at a checkpoint, by the log of tools. A call without an end
    counts for ten minutes. If its agent never reports an end, the next call of the session ends it.
    Where the log does not go back that far, no call is known."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._calls: dict[str, list[_Call]] | None = None

    def includes(self, before: Checkpoint, at: Checkpoint) -> bool:
        """Whether a call that began at the checkpoint `before` was in progress at another one."""
        calls = self._by_beginning().get(before.id, ())
        return before.sequence < at.sequence and any(one.is_in_progress(at) for one in calls)

    def begun_before(self, at: Checkpoint) -> list[Checkpoint]:
        """The checkpoints at which calls began that were in progress at this one."""
        if state_of(self._vault.objects, at, EXTERNAL) is None:
            return []  # no call has named anything outside
        found = [
            self._vault.catalog.checkpoint(None, beginning)
            for beginning, calls in self._by_beginning().items()
            if any(one.is_in_progress(at) for one in calls)
        ]
        return [one for one in found if one is not None and one.sequence < at.sequence]

    def _by_beginning(self) -> dict[str, list[_Call]]:
        if self._calls is None:
            self._calls = {}
            logged = self._vault.tool_log.calls()
            reporting = {call.session for call in logged if call.is_end_reported}
            next_begin_ns: dict[str, int] = {}
            for call in reversed(logged):
                end_ns = call.begun_ns + LONGEST_CALL_NS if call.ended_ns is None else call.ended_ns
                reports = call.session in reporting
                if not reports:
                    end_ns = min(end_ns, next_begin_ns.get(call.session, end_ns))
                next_begin_ns[call.session] = call.begun_ns
                found = _Call(call.session, reports, call.begun_ns, end_ns)
                self._calls.setdefault(call.at, []).append(found)
        return self._calls


class _Call(NamedTuple):
    """`session` is a digest of its id; `reports`: its agent tells when a call has ended."""

    session: str
    reports: bool
    begun_ns: int
    end_ns: int

    def is_in_progress(self, at: Checkpoint) -> bool:
        if not self.begun_ns <= at.created_at_ns < self.end_ns:
            return False
        return self.reports or self.session != name_digest(at.session_id.encode())


def changed_between(vault: Vault, before: Checkpoint, after: Checkpoint) -> bool:
    """Whether what tools named outside differs between two checkpoints."""
    if before.components is None or before.components == after.components:
        return False
    return changed_parts(vault, EXTERNAL, before, after)


def outside_step(vault: Vault, target: Checkpoint, since: Iterable[Checkpoint]) -> OutsideStep:
    """What an undo back to `target` brings back outside; `since` are the checkpoints from it on,
    and those before calls that were in progress then."""
    keys = keys_outside(since)
    if not keys or EXTERNAL not in vault.settings.components:
        return OutsideStep()
    state = state_of(vault.objects, target, EXTERNAL)
    if state is None or state.failure is not None:
        return OutsideStep()
    from holdfast.engine.components.restore import plan_components

    (step,) = plan_components(vault, target, ((EXTERNAL, f"{BELOW}:{','.join(sorted(keys))}"),))
    chosen = ",".join(key for key, _ in step.choices)
    return OutsideStep(f"{SOME}:{chosen}" if chosen else None, step.blocked)

"""Files outside the workspace in an undo: only those that the undone tool calls changed.

    a checkpoint before a tool call says which paths outside it holds for that call
    → what was saved, or found unchanged, first after the call has them otherwise? then the call has
      changed them, and undo brings them back

While a call is in progress, its files as they are now are what it made of them. If nothing was
saved since it ended, it is not known who changed them: undo leaves them alone, and says so.

Calls can overlap: one that was running at a checkpoint may have changed its files later. Other
files outside the workspace are not part of the undo, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import BELOW, SOME
from holdfast.domain.external_paths import key_of
from holdfast.domain.ids import CheckpointId
from holdfast.domain.paths import from_text
from holdfast.engine.components.manifests import state_of
from holdfast.engine.components.selection import changed_parts, differing_parts
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import LONGEST_CALL_NS, name_digest
from holdfast.values.classes import NamedTuple

EXTERNAL = "external"


class OutsideStep(NamedTuple):
    """`mode` restores what the calls changed, None if that is nothing; `blocked` says what of it
    cannot come back, `unknown` what others may have changed instead."""

    mode: str | None = None
    blocked: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


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

    def ends_of(self, before: Checkpoint) -> list[int | None]:
        """When each call ended that began at a checkpoint, None for one that is in progress. If no
        call is known, it had ended at once."""
        now_ns = self._vault.clock.now_ns()
        calls = self._by_beginning().get(before.id, ())
        ends = [None if one.end_ns > now_ns else one.end_ns for one in calls]
        return ends or [before.created_at_ns]

    def begun_before(self, at: Checkpoint) -> list[Checkpoint]:
        """The checkpoints at which calls began that were in progress at this one."""
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
    return bool(changed_parts(vault, EXTERNAL, before, after))


def is_changed_now(vault: Vault, since: Checkpoint) -> bool:
    """Whether what tools named outside has changed since a checkpoint; called with the lock
    held."""
    before = state_of(vault.objects, since, EXTERNAL)
    if before is None:
        return False
    from holdfast.engine.components.captured import capture_components

    checkpoint = CheckpointId(vault.ids.new_id())
    found = capture_components(vault, checkpoint, since, only=(EXTERNAL,), thorough=False)
    now = next((state for state in found.states if state.name == EXTERNAL), None)
    return bool(differing_parts(vault, EXTERNAL, before, now))


class _Changed(NamedTuple):
    """What calls changed, as keys; `whole`: one is in progress, so anything that it named may be
    its doing; `unknown`: nothing was saved since one ended."""

    keys: frozenset[str]
    whole: bool
    unknown: bool


class OutsideChanges:
    """What tool calls changed outside, by what was saved before and after them."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._calls = CallsInProgress(vault)

    def step(self, target: Checkpoint, since: Sequence[Checkpoint]) -> OutsideStep:
        """What an undo back to `target` brings back; `since` are the checkpoints from it on."""
        if EXTERNAL not in self._vault.settings.components:
            return OutsideStep()
        state = state_of(self._vault.objects, target, EXTERNAL)
        if state is None or state.failure is not None:
            return OutsideStep()
        begun = (*self._calls.begun_before(target), *since)
        naming = [one for one in begun if keys_outside((one,))]
        from holdfast.engine.components.restore import plan_components

        chosen: set[str] = set()
        blocked: dict[str, None] = {}
        others: dict[str, str] = {}
        for before in naming:
            changed = self._changed_by_calls(before, since)
            if not changed.keys and not changed.whole and not changed.unknown:
                continue
            named = f"{BELOW}:{','.join(sorted(keys_outside((before,))))}"
            (step,) = plan_components(self._vault, target, ((EXTERNAL, named),))
            for key, line in step.choices:
                if changed.whole or key in changed.keys:
                    chosen.add(key)
                elif changed.unknown:
                    others[key] = line
            blocked |= dict.fromkeys(step.blocked)
        unknown = [line for key, line in others.items() if key not in chosen]
        mode = f"{SOME}:{','.join(sorted(chosen))}" if chosen else None
        return OutsideStep(mode, tuple(blocked), tuple(unknown))

    def _changed_by_calls(self, before: Checkpoint, since: Sequence[Checkpoint]) -> _Changed:
        keys: set[str] = set()
        ends = self._calls.ends_of(before)
        unknown = False
        for end_ns in ends:
            after = None if end_ns is None else self._first_after(before, end_ns, since)
            if after is not None:
                keys.update(changed_parts(self._vault, EXTERNAL, before, after))
            elif end_ns is not None:
                unknown = True
        return _Changed(frozenset(keys), None in ends, unknown)

    def _first_after(
        self, before: Checkpoint, end_ns: int, since: Sequence[Checkpoint]
    ) -> Checkpoint | None:
        """The first checkpoint with what there was when a call had ended."""
        looks = [(at_ns, seen) for at_ns, seen in self._vault.tool_log.looks() if at_ns >= end_ns]
        saves = [
            (one.created_at_ns, str(one.id))
            for one in since
            if one.sequence > before.sequence and one.created_at_ns >= end_ns
        ]
        for _, identifier in sorted(looks[:1] + saves[:1]):
            found = self._vault.catalog.checkpoint(None, identifier)
            if found is not None:
                return found
        return None

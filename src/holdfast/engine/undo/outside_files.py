"""Files outside the workspace in an undo: only those that the undone tool calls changed.

    a checkpoint before a tool call lists the outside paths that it holds for that call
    → do they differ in the first state saved, or found unchanged, after the call? then the call
      changed them, and undo restores them

While a call is in progress, the current files are its result. If nothing was saved since it ended,
it is unknown who changed them. Undo then leaves them alone, and says so.

Calls can overlap: one that was running at a checkpoint may have changed its files later. Other
files outside the workspace are not part of the undo, and stay as they are.

A file that the calls changed may have been edited again since, by the user or another program. Undo
restores it anyway, because the safety checkpoint has the edit; but it names the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.component_states import BELOW, SOME
from holdfast.domain.external_paths import key_of
from holdfast.domain.ids import CheckpointId
from holdfast.domain.paths import from_text
from holdfast.engine.components.manifests import state_of
from holdfast.engine.components.selection import changed_parts, differing_parts
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import LONGEST_CALL_NS, id_digest
from holdfast.values.classes import NamedTuple, replace

if TYPE_CHECKING:
    from holdfast.domain.restore.plan import ComponentStep
    from holdfast.engine.restore.records import RestoreRequest

EXTERNAL = "external"


Planned = tuple[str, str]
"""A file outside, as a key, and what a restore would do with it."""


class OutsideStep(NamedTuple):
    """`mode` restores the changes of the calls, None if there are none. `blocked` lists files that
    cannot be restored, `unknown` files that others may have changed, and `edited` those to be
    restored that others changed after the calls."""

    mode: str | None = None
    blocked: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    edited: tuple[Planned, ...] = ()


def without_blocked_outside(
    vault: Vault, request: RestoreRequest, mode: str, since: Checkpoint | None
) -> RestoreRequest:
    """The request without the outside files that cannot be restored, such as a directory in which
    others have files now. They are listed in it, and so are files edited since."""
    step = plan_outside(vault, request.target, mode)
    components = request.components
    if step.blocked:
        mode = _only(dict(step.choices))
        others = [one for one in components if one[0] != EXTERNAL]
        components = tuple(sorted([*others, (EXTERNAL, mode)] if step.choices else others))
    edited = _edited_since(vault, request.target, mode, since) if step.choices else ()
    return replace(
        request, components=components, edited_outside=edited, blocked_outside=step.blocked
    )


def _edited_since(
    vault: Vault, target: Checkpoint, mode: str, since: Checkpoint | None
) -> tuple[Planned, ...]:
    """The files that a restore of `target` in this mode would change, and that are no longer as
    they were at `since`."""
    if since is None:
        return ()
    now = plan_outside(vault, since, mode)
    changed = {key for key, _ in now.choices}
    return tuple(one for one in plan_outside(vault, target, mode).choices if one[0] in changed)


def plan_outside(vault: Vault, target: Checkpoint, mode: str) -> ComponentStep:
    from holdfast.engine.components.restore import plan_components

    (step,) = plan_components(vault, target, ((EXTERNAL, mode),))
    return step


def keys_outside(checkpoints: Iterable[Checkpoint]) -> frozenset[str]:
    """The outside paths that tool calls named, as keys."""
    found = set()
    for one in checkpoints:
        for call in one.intent.tool_calls:
            named = call.get(EXTERNAL, ()) if isinstance(call, Mapping) else ()
            if isinstance(named, list | tuple):
                found |= {key_of(from_text(path)) for path in named if isinstance(path, str)}
    return frozenset(found)


class CallsInProgress:
    """The tool calls in progress at a checkpoint, from the tool log. A call without a recorded end
    counts for ten minutes. If its agent never reports ends, the session's next call ends it. If the
    log does not go back that far, no call is known."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._calls: dict[str, list[_Call]] | None = None

    def includes(self, before: Checkpoint, at: Checkpoint) -> bool:
        """Whether a call that began at the checkpoint `before` was in progress at `at`."""
        calls = self._by_beginning().get(before.id, ())
        return before.sequence < at.sequence and any(one.is_in_progress(at) for one in calls)

    def ends_of(self, before: Checkpoint) -> list[int | None]:
        """The end times of the calls that began at a checkpoint, None if in progress. If no call is
        known, it counts as ended at once."""
        now_ns = self._vault.clock.now_ns()
        calls = self._by_beginning().get(before.id, ())
        ends = [None if one.end_ns > now_ns else one.end_ns for one in calls]
        return ends or [before.created_at_ns]

    def begun_before(self, at: Checkpoint) -> list[Checkpoint]:
        """The checkpoints at which calls began that were in progress at `at`."""
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
    """`session` is a digest of its id; `reports`: its agent reports the end of calls."""

    session: str
    reports: bool
    begun_ns: int
    end_ns: int

    def is_in_progress(self, at: Checkpoint) -> bool:
        if not self.begun_ns <= at.created_at_ns < self.end_ns:
            return False
        return self.reports or self.session != id_digest(at.session_id.encode())


def changed_between(vault: Vault, before: Checkpoint, after: Checkpoint) -> bool:
    """Whether outside files that tools named differ between two checkpoints."""
    if before.components is None or before.components == after.components:
        return False
    return bool(changed_parts(vault, EXTERNAL, before, after))


def is_changed_now(vault: Vault, since: Checkpoint) -> bool:
    """Whether outside files that tools named have changed since a checkpoint; called with the lock
    held."""
    before = state_of(vault.objects, since, EXTERNAL)
    if before is None:
        return False
    from holdfast.engine.components.component_snapshot import capture_components

    checkpoint = CheckpointId(vault.ids.new_id())
    found = capture_components(vault, checkpoint, since, only=(EXTERNAL,), thorough=False)
    now = next((state for state in found.states if state.name == EXTERNAL), None)
    return bool(differing_parts(vault, EXTERNAL, before, now))


class _Changed(NamedTuple):
    """Keys of files that calls changed. `whole`: a call is in progress, so it may have changed
    everything it named. `unknown`: nothing was saved since a call ended. `until` is the sequence
    number of the first checkpoint after them, None if there is none."""

    keys: frozenset[str]
    whole: bool
    unknown: bool
    until: int | None


class _Span(NamedTuple):
    """When calls may have changed which files. `until` is None if they still may."""

    begin: int
    until: int | None
    keys: frozenset[str]

    def covers(self, key: str, begin: int, end: int | None) -> bool:
        ended = self.until is not None and (end is None or end > self.until)
        return key in self.keys and self.begin <= begin and not ended


def _only(keys: Iterable[str]) -> str:
    return f"{SOME}:{','.join(sorted(keys))}"


class OutsideChanges:
    """Outside files changed by tool calls, from the checkpoints before and after them."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._calls = CallsInProgress(vault)

    def step(self, target: Checkpoint, since: Sequence[Checkpoint]) -> OutsideStep:
        """What an undo to `target` restores; `since` are the checkpoints from it on."""
        if EXTERNAL not in self._vault.settings.components:
            return OutsideStep()
        state = state_of(self._vault.objects, target, EXTERNAL)
        if state is None or state.failure is not None:
            return OutsideStep()
        begun = (*self._calls.begun_before(target), *since)
        naming = [one for one in begun if keys_outside((one,))]
        chosen: dict[str, str] = {}
        spans: list[_Span] = []
        blocked: dict[str, None] = {}
        others: dict[str, str] = {}
        for before in naming:
            changed = self._changed_by_calls(before, since)
            if not changed.keys and not changed.whole and not changed.unknown:
                continue
            named = f"{BELOW}:{','.join(sorted(keys_outside((before,))))}"
            step = plan_outside(self._vault, target, named)
            for key, line in step.choices:
                if changed.whole or key in changed.keys:
                    chosen[key] = line
                elif changed.unknown:
                    others[key] = line
            blocked |= dict.fromkeys(step.blocked)
            keys = frozenset(key for key, _ in step.choices)
            spans.append(_Span(before.sequence, changed.until, keys))
        unknown = [line for key, line in others.items() if key not in chosen]
        if chosen:  # a directory created by a call stays if others have put files into it since
            alone = plan_outside(self._vault, target, _only(chosen))
            blocked |= dict.fromkeys(alone.blocked)
            chosen = dict(alone.choices)
        if not chosen:
            return OutsideStep(None, tuple(blocked), tuple(unknown))
        mode = _only(chosen)
        edited = set(self._edited(mode, since, spans))
        again = tuple(one for one in chosen.items() if one[0] in edited)
        return OutsideStep(mode, tuple(blocked), tuple(unknown), again)

    def _edited(
        self, mode: str, since: Sequence[Checkpoint], spans: Sequence[_Span]
    ) -> Iterator[str]:
        """The keys of files that changed while no call that named them was in progress."""
        known = [(one, state_of(self._vault.objects, one, EXTERNAL)) for one in since]
        saved = [(one, state) for one, state in known if state and state.failure is None]
        for (one, before), (later, after) in pairwise(saved):
            for key in differing_parts(self._vault, EXTERNAL, before, after):
                if not any(s.covers(key, one.sequence, later.sequence) for s in spans):
                    yield key
        last = saved[-1][0]
        for key, _ in plan_outside(self._vault, last, mode).choices:
            if not any(span.covers(key, last.sequence, None) for span in spans):
                yield key

    def _changed_by_calls(self, before: Checkpoint, since: Sequence[Checkpoint]) -> _Changed:
        keys: set[str] = set()
        ends = self._calls.ends_of(before)
        unknown, until = False, before.sequence
        for end_ns in ends:
            after = None if end_ns is None else self._first_after(before, end_ns, since)
            if after is not None:
                keys.update(changed_parts(self._vault, EXTERNAL, before, after))
                until = max(until, after.sequence)
            elif end_ns is not None:
                unknown = True
        whole = None in ends
        return _Changed(frozenset(keys), whole, unknown, None if whole or unknown else until)

    def _first_after(
        self, before: Checkpoint, end_ns: int, since: Sequence[Checkpoint]
    ) -> Checkpoint | None:
        """The first checkpoint that shows the state after a call."""
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

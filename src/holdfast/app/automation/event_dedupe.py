"""Recent events, so that an event delivered twice counts once.

Two settings files of one agent, or two agents that read one file, deliver an event twice, at the
same time. The second delivery finds the note of the first, under the store's lock. Notes are hints
in one small file of the store. They hold digests only, and may be lost.

Some agents restart the numbering of tool calls with each answer, so an id is not unique. A note is
valid for a few seconds, until the call ends, or until another call with the same id begins.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from holdfast.app.automation.json_notes import read_hint, write_hint
from holdfast.domain.agent_events import AgentEvent, EventKind

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.ports.store import Hints

NAME = "hook-events"
_MOST = 64
_VALID_NS = 10 * 1_000_000_000
_TYPED_AGAIN_NS = 2 * 1_000_000_000


class EventDedupe:
    """The notes of one store; the caller holds its lock."""

    def __init__(self, hints: Hints, now_ns: int) -> None:
        self._hints = hints
        self._now_ns = now_ns
        self._notes = _read(hints)

    @classmethod
    def of(cls, opened: OpenWorkspace) -> EventDedupe:
        """The current notes."""
        return cls(opened.engine.vault.parts.hints, opened.engine.vault.clock.now_ns())

    def earlier_checkpoint(self, event: AgentEvent) -> str | None:
        """The checkpoint that the same event caused a moment ago; empty if it caused none."""
        note = self._notes["events"].get(_key(event) or "")
        if note is None or not 0 <= self._now_ns - note[1] < _VALID_NS:
            return None
        return str(note[0])

    def checkpoint_before(self, event: AgentEvent) -> str | None:
        """The checkpoint with the state before this tool call."""
        return self._notes["uses"].get(_calls(event)[0])

    def forget_checkpoint(self, event: AgentEvent) -> None:
        """A tool call begins without a checkpoint, so an earlier call's must not be used for it."""
        known = [self._notes["uses"].pop(call, None) for call in _calls(event)]
        if any(known):
            self._keep()

    def is_superseded(self, event: AgentEvent) -> bool:
        """Whether the session's next step was saved since this event arrived. Changes saved now may
        then belong to that step. Notes from the future are ignored: the clock was set back."""
        latest = self._notes["before"].get(_digest(event.agent, event.session), 0)
        return bool(event.received_ns < latest <= self._now_ns)

    def is_repeated_message(self, event: AgentEvent) -> bool:
        """Whether this message was already noted. Without an id, the same words count as a repeat
        if a person could not have typed them twice."""
        note = self._notes["said"].get(_prompt_digest(event))
        if note is None:
            return False
        turn, at_ns = note
        if event.turn_id and turn:
            return bool(turn == event.turn_id)
        return bool(abs(event.received_ns - at_ns) < _TYPED_AGAIN_NS)

    def note_message(self, event: AgentEvent) -> None:
        self._notes["said"].pop(_prompt_digest(event), None)
        self._notes["said"][_prompt_digest(event)] = [event.turn_id or "", event.received_ns]
        self._keep()

    def ended(self, event: AgentEvent) -> None:
        """The tool call is over; if the same one begins again, it is a new call."""
        if event.kind is EventKind.AFTER_TOOL and self._drop_beginnings(event):
            self._keep()

    def _drop_beginnings(self, event: AgentEvent) -> bool:
        use, events = _use(event), self._notes["events"]
        known = [key for key, note in events.items() if use is not None and note[2] == use]
        for key in known:
            del events[key]
        return bool(known)

    def note(self, event: AgentEvent, checkpoint: str | None, *, before: bool) -> None:
        key, use = _key(event), _use(event)
        if before and use is not None:
            # An earlier call with this id, and its end, say nothing about this one.
            self._drop_beginnings(event)
            self._notes["events"].pop(_key(event._replace(kind=EventKind.AFTER_TOOL)) or "", None)
        if key is not None:
            self._notes["events"].pop(key, None)
            begun = use if before and use is not None else ""
            self._notes["events"][key] = [checkpoint or "", self._now_ns, begun]
        for call in _calls(event) if before and event.tool and checkpoint is not None else ():
            self._notes["uses"].pop(call, None)
            self._notes["uses"][call] = checkpoint
        if before:
            session = _digest(event.agent, event.session)
            self._notes["before"].pop(session, None)
            self._notes["before"][session] = self._now_ns
        self._keep()

    def _keep(self) -> None:
        for name in self._notes:
            kept = list(self._notes[name].items())[-_MOST:]
            self._notes[name] = dict(kept)
        write_hint(self._hints, NAME, self._notes)


def _key(event: AgentEvent) -> str | None:
    """None for an event that cannot be distinguished from the next of its kind."""
    identity = event.tool_use_id or ("" if event.tool else event.turn_id)
    if not identity:
        return None
    kind, given = event.kind.value, event.fingerprint
    return _digest(event.agent, event.session, kind, identity, event.tool, given, event.prompt)


def _use(event: AgentEvent) -> str | None:
    """A key for the tool call, the same before and after it; None without an id."""
    return None if event.tool_use_id is None else _calls(event)[0]


def _calls(event: AgentEvent) -> tuple[str, ...]:
    """Keys for the call: by its id, if it has one, and as the session's latest. Agents that do not
    send ids with each event run one call at a time."""
    ids = filter(None, (event.tool_use_id,))
    return tuple(_digest(event.agent, event.session, each) for each in (*ids, ""))


def _prompt_digest(event: AgentEvent) -> str:
    return _digest(event.agent, event.session, event.prompt)


def _digest(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(joined).hexdigest()[:32]


def _read(hints: Hints) -> dict[str, dict[str, Any]]:
    notes = read_hint(hints, NAME)
    try:
        events = {str(k): [str(v[0]), int(v[1]), str(v[2])] for k, v in notes["events"].items()}
        before = {str(k): int(v) for k, v in notes["before"].items()}
        uses = {str(k): str(v) for k, v in notes["uses"].items()}
        said = {str(k): [str(v[0]), int(v[1])] for k, v in notes["said"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return {"events": {}, "before": {}, "uses": {}, "said": {}}
    return {"events": events, "before": before, "uses": uses, "said": said}

"""Collects events for the numbered stream, from the operation log and from the story.

    nothing new since the last time → done (a few small reads)
    else, batch by batch: continue each source where it was left, merge by time
    → add in one transaction with the new read positions

Operations, messages, annotations and edits keep their own order; between sources, time decides.
Guarantee: each of these acknowledged before the start is in the stream, once.

Settings and statuses keep no history, except that archiving is an operation. So the current values
are compared with the last known ones. Not guaranteed: values that were replaced between two
readings are not in the stream.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from holdfast.domain.events import (
    Event,
    NewEvent,
    of_annotation,
    of_edit,
    of_message,
    of_operation,
    of_setting,
    of_status,
)
from holdfast.domain.ids import SessionId
from holdfast.domain.operations import OperationKind, mark_of
from holdfast.domain.sessions import Session, SessionStatus
from holdfast.domain.story import ActivityKind, ActivityStatus
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.conversation.conversation import BestEffortStory
from holdfast.engine.sessions.overview import is_deleted
from holdfast.engine.vault import Vault
from holdfast.ports.event_log import EventCursors, EventsLost

_AT_ONCE = 1_000
_TRIES = 3
_DELETED = "deleted"


def events_after(vault: Vault, number: int, limit: int) -> Sequence[Event]:
    """Recorded events after a number, in order. A number above all others comes from a lost log;
    then everything is delivered."""
    log = vault.events
    with suppress(EventsLost):
        return log.after(0 if number > log.newest() else number, limit)
    return ()


def record_events(vault: Vault) -> None:
    """Bring the stream up to date; `Busy` if another process does so and does not finish."""
    for attempt in range(_TRIES):
        try:
            while _record_batch(vault):
                pass
        except EventsLost:
            if attempt == _TRIES - 1:
                raise
        else:
            return


def _record_batch(vault: Vault) -> bool:
    """Returns whether there may be more."""
    log = vault.events
    if _Batch(vault, log.cursors()).is_empty():
        return False
    with log.exclusive():
        batch = _Batch(vault, log.cursors())
        log.ingest(batch.events, batch.cursors)
    return not batch.is_last


class _Batch:
    """The next events of every source, and the resulting read positions."""

    def __init__(self, vault: Vault, cursors: EventCursors) -> None:
        self._vault = vault
        self._story = BestEffortStory(vault)
        self._known = cursors
        self._now_ns = vault.clock.now_ns()
        self.cursors = cursors
        self.is_last = True
        sources = [self._operations(), *self._of_story(), self._statuses(), self._settings()]
        ordered = (_with_rising_times(number, found) for number, found in enumerate(sources))
        self.events = [event for *_, event in heapq.merge(*ordered)]

    def is_empty(self) -> bool:
        return self.cursors == self._known

    def _operations(self) -> list[NewEvent]:
        catalog, known = self._vault.catalog, self._known
        if known.operation:
            read = catalog.operations_after(known.operation - 1, 1)
            if not read or mark_of(read[0]) != known.operation_mark:
                known = replace(
                    known, operation=0
                )  # another log: delivered events are not repeated
        found = catalog.operations_after(known.operation, _AT_ONCE)
        self._reached(found)
        if found:
            newest = found[-1]
            self.cursors = replace(
                self.cursors, operation=newest.sequence, operation_mark=mark_of(newest)
            )
        return [of_operation(operation) for operation in found]

    def _of_story(self) -> Iterator[list[NewEvent]]:
        generation = self._story.generation()
        if generation != self._known.story:
            # Rows may have new numbers; delivered events are not repeated.
            self._known = replace(self._known, message=0, annotation=0, activity=0, open_edits=())
            self.cursors = replace(self.cursors, story=generation)
        known = self._known
        messages = self._story(lambda story: story.messages_after(known.message, _AT_ONCE))
        notes = self._story(lambda story: story.annotations_after(known.annotation, _AT_ONCE))
        begun = self._story(lambda story: story.activities_after(known.activity, _AT_ONCE))
        for found in (messages, notes, begun):
            self._reached(found)
        opened_before = self._story(
            lambda story: [story.activity(number) for number in known.open_edits]
        )
        edits = [edit for edit in opened_before if edit is not None] + [*begun]
        edits = [edit for edit in edits if edit.kind is ActivityKind.EDIT]
        still_open = tuple(edit.number for edit in edits if edit.status is ActivityStatus.OPEN)
        self.cursors = replace(
            self.cursors,
            message=messages[-1][0] if messages else known.message,
            annotation=notes[-1].sequence if notes else known.annotation,
            activity=begun[-1].number if begun else known.activity,
            open_edits=still_open,
        )
        yield [of_message(message) for _, message in messages]
        yield [of_annotation(note) for note in notes]
        ended = [edit for edit in edits if edit.status is not ActivityStatus.OPEN]
        yield [of_edit(edit) for edit in sorted(ended, key=lambda edit: edit.ended_at_ns or 0)]

    def _statuses(self) -> list[NewEvent]:
        before = self._known.sessions
        now: dict[str, str] = {}
        changed = []
        for session in self._vault.catalog.sessions():
            known = before.get(session.id)
            status, at_ns = self._status_of(session)
            if status == _DELETED and known != _DELETED and not self.is_last:
                # Its log entries come first.
                now |= {} if known is None else {session.id: known}
                continue
            now[session.id] = status
            if status != known and not self._is_in_log(session, status):
                changed.append(of_status(session.id, status, at_ns))
        self.cursors = replace(self.cursors, sessions=now)
        gone = [key for key, status in before.items() if key not in now and status != _DELETED]
        return [*changed, *(of_status(SessionId(key), _DELETED, self._now_ns) for key in gone)]

    def _status_of(self, session: Session) -> tuple[str, int]:
        """The current status, and the time of the change as far as it is known."""
        if is_deleted(self._vault, session):
            latest = self._vault.catalog.latest_operation(session.id, other_than=())
            return _DELETED, self._now_ns if latest is None else latest.at_ns
        is_new = session.id not in self._known.sessions
        return session.status.value, session.created_at_ns if is_new else self._now_ns

    def _is_in_log(self, session: Session, status: str) -> bool:
        """Whether an operation reports this status, so that a comparison must not."""
        kinds = (OperationKind.ARCHIVE,)
        return status == SessionStatus.ARCHIVED and bool(
            self._vault.catalog.operations(session.id, kinds=kinds)
        )

    def _settings(self) -> list[NewEvent]:
        values = self._vault.catalog.settings()
        now = {key: digest_of(value.encode()).hex()[:16] for key, value in values.items()}
        before = self._known.settings
        self.cursors = replace(self.cursors, settings=now)
        names = sorted(key for key in now.keys() | before.keys() if now.get(key) != before.get(key))
        return [of_setting(name, self._now_ns) for name in names]

    def _reached(self, found: Sequence[object]) -> None:
        self.is_last = self.is_last and len(found) < _AT_ONCE


def _with_rising_times(
    source: int, found: Sequence[NewEvent]
) -> Iterator[tuple[int, int, int, NewEvent]]:
    """With times that never go back, even if the clock was set meanwhile."""
    latest = 0
    for place, event in enumerate(found):
        latest = max(latest, event.at_ns)
        yield latest, source, place, event

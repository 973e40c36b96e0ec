"""The event stream of a workspace, whichever process causes the events.

    one thread per workspace: the listener wakes → new events get numbers → followers wake
    each follower:            reads from its own number, at its own pace

Guarantees: every event once, in order, from any number, even after a restart. Events of other
processes arrive within 300 ms on a machine that is not overloaded. Nothing is written while a save
runs.

Not guaranteed: every value of a setting or status. The store keeps current values only, so events
of settings and status report the value found at reading. Intermediate values can be missing, except
that archiving is always reported.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from holdfast.api import arguments
from holdfast.domain.errors import Busy, Refused, UsageError
from holdfast.domain.events import Event
from holdfast.engine.history.events import events_after, record_events

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.ports.event_log import ChangeListener

_AT_ONCE = 500
_LOOK_S = 5.0
"""A follower must not wait for ever if the listener missed an event."""


class EventFeed:
    """The stream of one open workspace, for any number of followers."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._opened = opened
        self._woken = threading.Condition()
        self._rounds = 0
        self._listener: ChangeListener | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._trouble: Exception | None = None

    def events(
        self, after: int = 0, *, follow: bool = False, timeout_s: float | None = None
    ) -> Iterator[Event]:
        """Events after that number, oldest first. With `follow`, continue with new events until
        none has happened for `timeout_s`, or until the workspace is closed."""
        if isinstance(after, bool) or not isinstance(after, int) or after < 0:
            raise UsageError(
                f"{after!r} is not an event number", hint="leave it out to start from the beginning"
            )
        patience_s = arguments.optional(arguments.seconds, "timeout_s", timeout_s)
        if arguments.flag("follow", follow):
            return self._followed(after, patience_s)
        return self._present(after)

    def close(self) -> None:
        with self._woken:
            self._closed = True
            self._woken.notify_all()
        if self._listener is not None:
            self._listener.stop()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def _present(self, after: int) -> Iterator[Event]:
        record_events(self._opened.engine.vault)
        while found := events_after(self._opened.engine.vault, after, _AT_ONCE):
            yield from found
            after = found[-1].number

    def _followed(self, after: int, timeout_s: float | None) -> Iterator[Event]:
        self._listen()
        with self._woken:  # until earlier events have their numbers
            self._woken.wait_for(partial(self._is_news, 0))
        while True:
            with self._woken:
                seen = self._rounds
            found = events_after(self._opened.engine.vault, after, _AT_ONCE)
            if found:
                yield from found
                after = found[-1].number
                continue
            with self._woken:
                rang = self._woken.wait_for(partial(self._is_news, seen), timeout_s)
                if self._trouble is not None:
                    raise self._trouble
                if self._closed or not rang:
                    return

    def _is_news(self, seen: int) -> bool:
        return self._closed or self._trouble is not None or self._rounds != seen

    def _listen(self) -> None:
        with self._woken:
            if self._closed:
                raise UsageError("the workspace is closed", hint="open it again")
            if self._thread is not None and self._trouble is None:
                return
            if self._listener is not None:
                self._listener.close()
            self._listener = self._thread = self._trouble = None
            self._listener = (
                self._opened.store.open_change_listener()
            )  # before the first read, so that no event is missed
            self._thread = threading.Thread(
                target=self._run, args=(self._listener,), name="holdfast events", daemon=True
            )
            self._thread.start()

    def _run(self, listener: ChangeListener) -> None:
        try:
            while not self._closed:
                if self._opened.store.was_replaced():
                    # Raises if the store is missing, because it was moved.
                    with suppress(Busy, Refused), self._opened.store.hold(read_only=True):
                        pass
                    raise Refused(
                        "the store was repaired while this process followed it",
                        hint="open the workspace again; event numbers continue",
                    )
                with suppress(Busy):  # then another process collects them
                    record_events(self._opened.engine.vault)
                with self._woken:
                    self._rounds += 1
                    self._woken.notify_all()
                listener.wait(_LOOK_S)
        except Exception as error:  # without this thread, followers would wait in vain
            with self._woken:
                self._trouble = error
                self._woken.notify_all()

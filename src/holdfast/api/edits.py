"""Guarded edits and attempts: some files, or the whole workspace, are rolled back on failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.domain.story import ActivityKind
from holdfast.engine.edits import attempts
from holdfast.engine.edits import guard as edit_guard
from holdfast.engine.edits.open_activities import enter, inside, leave, newest

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.api.guarded_blocks import Attempt, Editing
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import SessionId
    from holdfast.domain.story import Activity


class Edits:
    """Edits and attempts in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def start(self, session_id: SessionId, paths: Iterable[str | Path], reason: str | None) -> int:
        """Save files before a tool changes them. Returns the edit's number."""
        activity = edit_guard.start_edit(
            self._engine, session_id, paths, reason, inside=inside(self._vault)
        )
        enter(self._vault, activity.number)
        return activity.number

    def finalize(self, session_id: SessionId, number: int | None) -> Activity:
        """Keep the edit's changes and record their diff. Without a number: the newest edit."""
        with self._ending(session_id, number) as ending:
            return edit_guard.finalize_edit(self._vault, ending)

    def abort(self, session_id: SessionId, number: int | None, why: str | None) -> Activity:
        """Restore the edit's files, and no others. Without a number: the newest edit."""
        with self._ending(session_id, number) as ending:
            return edit_guard.abort_edit(self._engine, ending, why)

    def editing(
        self, session_id: SessionId, paths: Iterable[str | Path], reason: str | None
    ) -> Editing:
        from holdfast.api.guarded_blocks import Editing

        return Editing(self._engine, session_id, paths, reason)

    def attempt(
        self, session_id: SessionId, reasoning: str, kind: ActivityKind = ActivityKind.ATTEMPT
    ) -> Attempt:
        from holdfast.api.guarded_blocks import Attempt

        return Attempt(self._engine, session_id, reasoning, kind)

    def begin_attempt(self, session_id: SessionId, reasoning: str) -> Activity:
        """Save the workspace before a caller's own code runs. Later, keep the attempt or roll it
        back."""
        return attempts.begin_attempt(
            self._engine, session_id, reasoning, inside=inside(self._vault)
        )

    def keep_attempt(self, number: int) -> None:
        attempts.keep_attempt(self._vault, number)

    def roll_back_attempt(self, number: int, why: str) -> None:
        """Restore the workspace to before the attempt, and record the reason."""
        attempts.roll_back_attempt(self._engine, number, why)

    def keep_interrupted(self, session_id: SessionId) -> list[Activity]:
        """Close interrupted edits and attempts, and leave the workspace as it is."""
        return list(attempts.keep_interrupted(self._vault, session_id))

    def interrupted(self, session_id: SessionId) -> list[Activity]:
        """Edits and attempts whose process ended before they were kept or rolled back."""
        return list(attempts.interrupted_activities(self._vault, session_id))

    def activities(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> list[Activity]:
        """Every edit, attempt and guarded call of the session, in order, with its result."""
        if not self._vault.has_story():
            return []
        return list(self._vault.story.activities(session_id, after=after, limit=limit))

    def diff(self, session_id: SessionId, number: int) -> str | None:
        """The changes of a finished edit as a unified diff; None if it is open or was rolled back,
        and for attempts."""
        from holdfast.engine.edits.diff import unpacked_diff

        edit_guard.own_activity(self._vault, session_id, number)
        data = self._vault.story.diff_of(number)
        return None if data is None else unpacked_diff(data)

    @contextmanager
    def _ending(self, session_id: SessionId, number: int | None) -> Iterator[int]:
        ending = newest(self._vault) if number is None else number
        edit_guard.own_activity(self._vault, session_id, ending)
        yield ending
        leave(self._vault, ending)

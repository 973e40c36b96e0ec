"""What a session offers around risky work: guarded edits, attempts, and functions made safe."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.api.session_parts.guarded_blocks import Attempt, Editing
    from holdfast.domain.activities import Activity
    from holdfast.domain.ids import SessionId
    from holdfast.engine.engine import Engine

P = ParamSpec("P")
T = TypeVar("T")


class Guarding:
    """Part of `SessionCheckpointer`."""

    _engine: Engine
    _id: SessionId

    def start_edit(self, paths: Iterable[str | Path], reason: str | None = None) -> int:
        """Keep files as they are before a tool changes them; the number of the edit."""
        from holdfast.engine.edit_guard import start_edit
        from holdfast.engine.running import enter

        activity = start_edit(self._engine, self._id, paths, reason)
        enter(self._engine.vault, activity.number)
        return activity.number

    def finalize_edit(self, number: int | None = None) -> Activity:
        """Keep what the edit made, and record its diff; without a number, the edit begun last."""
        from holdfast.engine.edit_guard import finalize_edit

        with self._ending(number) as ending:
            return finalize_edit(self._engine.vault, ending)

    def abort_edit(self, number: int | None = None, *, why: str | None = None) -> Activity:
        """Put the files of the edit back, and no other; without a number, the edit begun last."""
        from holdfast.engine.edit_guard import abort_edit

        with self._ending(number) as ending:
            return abort_edit(self._engine, ending, why)

    def editing(self, paths: Iterable[str | Path], reason: str | None = None) -> Editing:
        """`with session.editing(["a.py"]):` puts the files back if the block fails; also with
        `async with`."""
        from holdfast.api.session_parts.guarded_blocks import Editing

        return Editing(self._engine, self._id, paths, reason)

    def open_edits(self) -> list[Activity]:
        """Edits that were cut off: their process is gone, and nobody decided about them yet."""
        return [a for a in self._cut_off() if a.kind.value == "edit"]

    def open_attempts(self) -> list[Activity]:
        """Attempts that were cut off in the same way."""
        return [a for a in self._cut_off() if a.kind.value != "edit"]

    def activities(self, *, after: int = 0, limit: int | None = None) -> list[Activity]:
        """Every edit, attempt and guarded call of the session, in order, with how it ended."""
        vault = self._engine.vault
        if not vault.access.has_story():
            return []
        return list(vault.story.activities(self._id, after=after, limit=limit))

    def edit_diff(self, number: int) -> str | None:
        """What a finished edit changed, as a unified diff; None for one that is open or was put
        back, and for attempts."""
        from holdfast.engine.edit_diff import unpacked_diff
        from holdfast.engine.edit_guard import own_activity

        own_activity(self._engine.vault, self._id, number)
        data = self._engine.vault.story.diff_of(number)
        return None if data is None else unpacked_diff(data)

    def attempt(self, reasoning: str) -> Attempt:
        """`with session.attempt("why") as a:` saves first; a block that fails, or calls
        `a.reject(why)`, is taken back and recorded. Also with `async with`."""
        from holdfast.api.session_parts.guarded_blocks import Attempt

        return Attempt(self._engine, self._id, reasoning)

    def guarded(self, reasoning: str | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """A decorator that makes every call of a function an attempt; for functions and coroutine
        functions alike."""
        from holdfast.api.session_parts.guarded_blocks import Attempt
        from holdfast.domain.activities import ActivityKind
        from holdfast.domain.errors import UsageError

        def decorate(function: Callable[P, T]) -> Callable[P, T]:
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise UsageError(
                    f"{function.__name__} is a generator: its work is done after the call",
                    hint="use session.attempt() around the loop that runs it",
                )
            why = reasoning or f"Before {function.__name__}"

            def call() -> Attempt:
                return Attempt(self._engine, self._id, why, ActivityKind.TOOL)

            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def run_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                    async with call():
                        return await function(*args, **kwargs)

                return cast("Callable[P, T]", run_async)

            @functools.wraps(function)
            def run(*args: P.args, **kwargs: P.kwargs) -> T:
                with call():
                    return function(*args, **kwargs)

            return run

        return decorate

    def _cut_off(self) -> list[Activity]:
        from holdfast.engine.attempts import cut_off

        return list(cut_off(self._engine.vault, self._id))

    @contextmanager
    def _ending(self, number: int | None) -> Iterator[int]:
        from holdfast.engine.edit_guard import own_activity
        from holdfast.engine.running import leave, newest_own

        vault = self._engine.vault
        ending = newest_own(vault) if number is None else number
        own_activity(vault, self._id, ending)
        yield ending
        leave(vault, ending)

"""Blocks of code that are rolled back if they fail: guarded edits and attempts.

Every exception counts as a failure, including `KeyboardInterrupt` and task cancellation, and is
re-raised after the rollback. If the rollback fails, its error is raised with the original one as
its cause. The edit or attempt then stays open, and is offered again at the next start.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from holdfast.domain.errors import UsageError
from holdfast.domain.story import Activity, ActivityKind
from holdfast.engine.edits.open_activities import enter, inside, leave

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from holdfast.domain.ids import SessionId
    from holdfast.engine.engine import Engine

P = ParamSpec("P")
T = TypeVar("T")


class GuardedBlock:
    """The common part: begin before the block, then keep or roll back."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._activity: Activity | None = None

    @property
    def number(self) -> int:
        """The number of the edit or attempt in the session's activities."""
        return self._begun.number

    @property
    def checkpoint(self) -> str:
        """The checkpoint that a rollback restores."""
        return self._begun.checkpoint

    @property
    def _begun(self) -> Activity:
        if self._activity is None:
            raise RuntimeError("the block has not started")
        return self._activity

    def _begin(self) -> Activity:
        raise NotImplementedError

    def _end(self, error: BaseException | None) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._activity = self._begin()
        enter(self._engine.vault, self.number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._finish(error)
        finally:
            leave(self._engine.vault, self.number)

    async def __aenter__(self) -> Self:
        beginning = asyncio.ensure_future(asyncio.to_thread(self._begin))
        try:
            self._activity = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            # The block never runs, so its edit or attempt is ended as soon as it exists.
            beginning.add_done_callback(self._drop)
            raise
        enter(self._engine.vault, self.number, thread=threading.get_ident())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await _to_the_end(lambda: self._finish(error))
        finally:
            leave(self._engine.vault, self.number)

    def _finish(self, error: BaseException | None) -> None:
        try:
            self._end(error)
        except BaseException as failure:
            raise failure from error

    def _drop(self, beginning: asyncio.Future[Activity]) -> None:
        from holdfast.engine.edits.attempts import keep_attempt

        if not beginning.cancelled() and beginning.exception() is None:
            keep_attempt(self._engine.vault, beginning.result().number)


class Editing(GuardedBlock):
    """Some files, rolled back if the block fails."""

    def __init__(
        self,
        engine: Engine,
        session_id: SessionId,
        paths: Iterable[str | Path],
        reason: str | None,
    ) -> None:
        super().__init__(engine)
        self._session_id = session_id
        self._paths = paths
        self._reason = reason

    def _begin(self) -> Activity:
        from holdfast.engine.edits.guard import start_edit

        vault = self._engine.vault
        return start_edit(
            self._engine, self._session_id, self._paths, self._reason, inside=inside(vault)
        )

    def _end(self, error: BaseException | None) -> None:
        from holdfast.engine.edits.guard import abort_edit, finalize_edit

        if error is None:
            finalize_edit(self._engine.vault, self.number)
        else:
            abort_edit(self._engine, self.number, _words(error))


class Attempt(GuardedBlock):
    """The whole workspace, rolled back if the block fails or is rejected."""

    def __init__(
        self,
        engine: Engine,
        session_id: SessionId,
        reasoning: str,
        kind: ActivityKind = ActivityKind.ATTEMPT,
    ) -> None:
        super().__init__(engine)
        self._session_id = session_id
        self._reasoning = reasoning
        self._kind = kind
        self.rejected: str | None = None
        """The reason, if it was rejected."""

    def reject(self, why: str) -> None:
        """Roll everything back at the end of the block, even if it succeeds."""
        self.rejected = why

    def _begin(self) -> Activity:
        from holdfast.engine.edits.attempts import begin_attempt

        own = inside(self._engine.vault)
        return begin_attempt(
            self._engine, self._session_id, self._reasoning, kind=self._kind, inside=own
        )

    def _end(self, error: BaseException | None) -> None:
        from holdfast.engine.edits.attempts import keep_attempt, roll_back_attempt

        if error is not None:
            roll_back_attempt(self._engine, self.number, _words(error))
        elif self.rejected is not None:
            roll_back_attempt(self._engine, self.number, self.rejected)
        else:
            keep_attempt(self._engine.vault, self.number)


def guarded(
    attempt: Callable[[str], Attempt], reasoning: str | None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator that turns every call of a function or coroutine function into an attempt.
    `attempt` creates one from the reasoning."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(
                f"{function.__name__} is a generator, which runs after the call returns",
                hint="use session.attempt() around the loop that runs it",
            )
        why = reasoning or f"Before {function.__name__}"

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                async with attempt(why):
                    return await function(*args, **kwargs)

            return cast("Callable[P, T]", run_async)

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            with attempt(why):
                return function(*args, **kwargs)

        return run

    return decorate


def _words(error: BaseException) -> str:
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


async def _to_the_end(work: Callable[[], T]) -> T:
    """Run on a thread, to the end even if the task is cancelled. Then re-raise the cancellation."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if running.cancelled():
            raise
        await asyncio.wait([running])
        running.result()
        raise

"""Attempts: the workspace is saved first, rolled back if they fail, kept if they do not."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import InvalidIntent, UsageError
from holdfast.domain.operations import OperationKind
from holdfast.domain.story import ActivityStatus
from holdfast.engine.retention.cleanup import plan_cleanup
from tests.behind_the_api import engine_of
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("CP-9")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("0")
    (workspace / "b.txt").write_text("b")
    return workspace


class Broken(Exception):
    pass


def fail(session: SessionCheckpointer, error: BaseException) -> None:
    """An attempt that wrecks the workspace."""
    with session.attempt("try async refactor"):
        (session.workspace / "a.txt").unlink()
        (session.workspace / "c").mkdir()
        (session.workspace / "c" / "c.txt").write_text("c")
        raise error


def fail_twice(session: SessionCheckpointer) -> None:
    with session.attempt("outer"), session.attempt("inner"):
        (session.workspace / "a.txt").write_text("both")
        raise Broken


def notes(session: SessionCheckpointer) -> list[str | None]:
    vault = engine_of(session).vault
    done = vault.catalog.operations(session._id, kinds=(OperationKind.RESTORE,))
    return [operation.note for operation in done]


def test_an_attempt_that_works_is_kept(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with session.attempt("try it") as attempt:
            (workspace / "a.txt").write_text("1")
        assert (workspace / "a.txt").read_text() == "1"
        assert get_snapshot(session, attempt.checkpoint).intent.reasoning == "try it"
        assert [a.status for a in session.activities()] == [ActivityStatus.KEPT]
        assert notes(session) == []


@pytest.mark.parametrize("error", [Broken("it broke"), KeyboardInterrupt(), SystemExit(3)])
def test_an_attempt_that_fails_is_rolled_back_and_recorded(
    workspace: Path, error: BaseException
) -> None:
    before = describe(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(type(error)):
            fail(session, error)
        assert describe(workspace) == before
        (note,) = notes(session)
        assert note is not None
        assert "try async refactor" in note
        assert type(error).__name__ in note
        (activity,) = session.activities()
        assert activity.status is ActivityStatus.PUT_BACK
        session.undo()
        assert (workspace / "c" / "c.txt").read_text() == "c"


def test_a_rejected_attempt_is_rolled_back_at_the_end_of_its_block(workspace: Path) -> None:
    before = describe(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        with session.attempt("try it") as attempt:
            (workspace / "a.txt").write_text("1")
            attempt.reject("it is slower")
            (workspace / "b.txt").write_text("after the rejection")
        assert describe(workspace) == before
        assert notes(session) == ["attempt failed: try it: it is slower"]


def test_a_failed_attempt_that_changed_nothing_is_recorded_too(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with session.attempt("try it") as attempt:
            attempt.reject("no idea how")
        assert notes(session) == ["attempt failed: try it: no idea how"]


def test_attempts_nest(workspace: Path) -> None:
    a, b = workspace / "a.txt", workspace / "b.txt"
    with SessionCheckpointer(workspace, "s") as session:
        with session.attempt("outer"):
            a.write_text("outer")
            with session.attempt("inner") as inner:
                b.write_text("inner")
                inner.reject("worse")
            assert (a.read_text(), b.read_text()) == ("outer", "b")
            with session.attempt("inner again"):
                b.write_text("better")
        assert (a.read_text(), b.read_text()) == ("outer", "better")
        with pytest.raises(Broken):
            fail_twice(session)
        assert (a.read_text(), b.read_text()) == ("outer", "better")


def test_an_attempt_needs_a_reason(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(InvalidIntent):
            session.attempt("  ").__enter__()
        assert session.activities() == []


def test_an_attempt_in_a_coroutine_is_rolled_back_when_it_is_cancelled(workspace: Path) -> None:
    async def story(session: SessionCheckpointer) -> None:
        async def attempt(reached: asyncio.Event) -> None:
            async with session.attempt("try it"):
                (workspace / "a.txt").write_text("1")
                reached.set()
                await asyncio.Event().wait()

        reached = asyncio.Event()
        task = asyncio.create_task(attempt(reached))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with SessionCheckpointer(workspace, "s") as session:
        asyncio.run(story(session))
        assert (workspace / "a.txt").read_text() == "0"
        (note,) = notes(session)
        assert "CancelledError" in str(note)


def test_a_guarded_function_is_rolled_back_when_it_raises(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:

        @session.guarded(reasoning="before the tool writes")
        def write(text: str, *, fail: bool = False) -> int:
            """Write a file."""
            (workspace / "a.txt").write_text(text)
            if fail:
                raise Broken("refused")
            return len(text)

        assert write.__name__ == "write"
        assert write("good") == 4
        with pytest.raises(Broken):
            write("bad", fail=True)
        assert (workspace / "a.txt").read_text() == "good"
        assert notes(session) == ["attempt failed: before the tool writes: Broken: refused"]


def test_a_guarded_coroutine_function_is_rolled_back_when_it_raises(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:

        @session.guarded()
        async def write(text: str) -> str:
            (workspace / "a.txt").write_text(text)
            await asyncio.to_thread(lambda: None)
            if text == "bad":
                raise Broken
            return text

        async def story() -> None:
            assert await write("good") == "good"
            with pytest.raises(Broken):
                await write("bad")

        asyncio.run(story())
        assert (workspace / "a.txt").read_text() == "good"
        assert session.activities()[0].reason == "Before write"


def test_a_generator_cannot_be_guarded_and_the_error_says_why(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:

        def steps():  # type: ignore[no-untyped-def]
            yield 1

        with pytest.raises(UsageError, match="generator"):
            session.guarded()(steps)


DYING = """
import os, signal, sys
from pathlib import Path
from holdfast import SessionCheckpointer
project = Path(sys.argv[1])
session = SessionCheckpointer(project, "s")
with session.attempt("a daring plan"):
    (project / "a.txt").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.requirement("CP-9", "ST-2", "RL-1")
def test_an_attempt_whose_process_died_is_offered_back(workspace: Path) -> None:
    child = subprocess.run([sys.executable, "-c", DYING, str(workspace)], check=False)
    assert child.returncode == -signal.SIGKILL
    with SessionCheckpointer(workspace, "s") as session:
        (left,) = session.open_attempts()
        assert left.reason == "a daring plan"
        for number in range(3):
            (workspace / "b.txt").write_text(str(number))
            session.checkpoint("others go on")
        decided = {d.checkpoint.id: d for d in plan_cleanup(engine_of(session)).decisions}
        assert decided[left.checkpoint].keep
        session.restore(left.checkpoint)
        assert (workspace / "a.txt").read_text() == "0"
        assert session.open_attempts() == []

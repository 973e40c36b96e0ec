"""Automatic checkpoints by the server alone: no hooks, no daemon, nothing configured."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from holdfast import SessionCheckpointer
from holdfast.api.stores import store_directory
from holdfast.domain.errors import Busy
from holdfast.interfaces.mcp import automatic_checkpoints
from holdfast.interfaces.mcp.automatic_checkpoints import AutomaticCheckpoints
from holdfast.interfaces.mcp.sessions import ServedSessions
from tests.behind_the_api import engine_of
from tests.components.git.repositories import commit, git
from tests.support.hostile_trees import fill
from tests.support.mcp_servers import stdio_client

pytestmark = pytest.mark.requirement("AU-4", "MC-1")

PATIENCE_S = 60
CALMS_S = (1, 2, 4, 8, 15, 30)
"""After each burst of work: changes are saved once there have been none for a second. The first
bursts may come before watching has begun, which takes longer on a busy machine."""


def now() -> datetime:
    return datetime.now().astimezone()


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process nothing is answered first. Servers of their own keep the delay."""
    monkeypatch.setattr(automatic_checkpoints, "_DEBOUNCE_S", 0.05)


@contextmanager
def automatic(
    sessions: ServedSessions, local_time: Callable[[], datetime] = now
) -> Iterator[list[Exception]]:
    missed: list[Exception] = []
    running = AutomaticCheckpoints(
        sessions, os.environ, local_time, lambda path, session, error: missed.append(error)
    )
    running.start()
    try:
        yield missed
    finally:
        running.end()


@contextmanager
def automatic_that_looked(sessions: ServedSessions) -> Iterator[list[Exception]]:
    """Every workspace has been looked at once: then the time until the next look is asked for."""
    has_looked = threading.Event()

    def local_time() -> datetime:
        has_looked.set()
        return now()

    with automatic(sessions, local_time) as missed:
        assert has_looked.wait(PATIENCE_S)
        yield missed


async def automatic_kinds(client: Client, workspace: Path) -> set[str]:
    """The kinds of automatic checkpoints, as soon as there are some. Five more files come again
    and again, because changes count only once watching has begun."""
    with anyio.fail_after(PATIENCE_S):
        for calm_s in CALMS_S:
            for number in range(5):
                name = f"new-{calm_s}-{number}.txt"
                fill(workspace / name, b"made by an agent without hooks\n")
            until = time.monotonic() + calm_s
            while time.monotonic() < until:
                found: Any = await client.call_tool("checkpoint_list", {"checkpoint_type": "auto"})
                if rows := found.structured_content["checkpoints"]:
                    return {row["kind"] for row in rows}
                await anyio.sleep(0.2)
    raise AssertionError


def test_five_changed_files_are_saved_by_a_server_with_default_settings(workspace: Path) -> None:
    async def walk() -> None:
        async with stdio_client(workspace) as client:
            await client.call_tool("checkpoint_create", {"description": "the work begins"})
            assert await automatic_kinds(client, workspace) == {"threshold"}

    anyio.run(walk)


def wait_for(workspace: Path, kind: str, work: Callable[[], object] = lambda: None) -> None:
    """Until the session has a checkpoint of this kind; `work` goes on meanwhile."""
    for calm_s in CALMS_S:
        work()
        until = time.monotonic() + calm_s
        while time.monotonic() < until:
            with SessionCheckpointer(workspace, "agent") as session:
                if kind in [one.kind for one in session.summaries(limit=5)]:
                    return
            time.sleep(0.1)
    pytest.fail(f"no checkpoint of kind {kind} after {sum(CALMS_S)} seconds")


def test_one_changed_file_is_saved_when_the_interval_is_over(
    workspace: Path, sessions: ServedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_AUTO_INTERVAL", "0.01")
    with SessionCheckpointer(workspace, "agent") as session:
        session.checkpoint("the work begins")
    numbers = iter(range(1_000))
    with automatic(sessions) as missed:
        wait_for(
            workspace, "interval", lambda: fill(workspace / "notes.txt", b"%d\n" % next(numbers))
        )
    assert not missed


def test_the_end_of_the_day_is_saved(workspace: Path, sessions: ServedSessions) -> None:
    with SessionCheckpointer(workspace, "agent") as session:
        session.checkpoint("the work begins")
    with automatic(sessions, lambda: now() + timedelta(days=1)):
        wait_for(workspace, "end-of-day")


def test_a_merge_into_the_main_branch_is_saved(
    workspace: Path, sessions: ServedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_AUTO_FILES", "0")
    git(workspace, "init", "-q", "-b", "main")
    commit(workspace, "base.txt", "base\n")
    with SessionCheckpointer(workspace, "agent") as session:
        session.checkpoint("the work begins")
    numbers = iter(range(1_000))

    def merge_another_branch() -> None:
        branch = f"feature-{next(numbers)}"
        git(workspace, "checkout", "-qb", branch)
        commit(workspace, f"{branch}.txt", "new\n")
        git(workspace, "checkout", "-q", "main")
        git(workspace, "merge", "-q", branch)

    with automatic(sessions) as missed:
        wait_for(workspace, "merge", merge_another_branch)
    assert not missed


def test_a_session_without_a_checkpoint_gets_its_first(
    workspace: Path, sessions: ServedSessions
) -> None:
    with SessionCheckpointer(workspace, "yesterday") as session:
        session.checkpoint("the store is there")
    with automatic(sessions):
        wait_for(workspace, "initial")


def wait_until(fulfilled: Callable[[], object]) -> None:
    for _ in range(PATIENCE_S * 10):
        if fulfilled():
            return
        time.sleep(0.1)
    pytest.fail(f"still waiting after {PATIENCE_S} seconds")


def test_a_save_that_fails_is_reported_and_made_again_without_another_event(
    workspace: Path, sessions: ServedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic_checkpoints, "_RETRY_S", 0.1)
    monkeypatch.setenv("HOLDFAST_AUTO_INTERVAL", "0.01")
    monkeypatch.setenv("HOLDFAST_LOCK_TIMEOUT", "0.1")
    with SessionCheckpointer(workspace, "agent") as session:
        session.checkpoint("the work begins")
        fill(workspace / "notes.txt", b"before the server starts\n")
        with automatic(sessions) as missed:
            with engine_of(session).vault.lock.hold():
                wait_until(lambda: missed)  # the first look fails
            wait_for(workspace, "interval")
            saved = len(session.summaries())
            missed.clear()
            with engine_of(session).vault.lock.hold():
                fill(workspace / "notes.txt", b"while it is watched\n")
                wait_until(lambda: missed)  # the due save fails
            wait_until(lambda: len(session.summaries()) > saved)
    assert {type(error) for error in missed} == {Busy}


def test_a_project_without_a_store_is_protected_from_the_start(workspace: Path) -> None:
    fill(workspace / "pyproject.toml", b"")

    async def walk() -> None:
        async with stdio_client(workspace) as client:
            with anyio.fail_after(PATIENCE_S):
                while store_directory(workspace) is None:
                    await anyio.sleep(0.2)
                listed: Any = None
                while listed is None or not listed.structured_content["checkpoints"]:
                    listed = await client.call_tool("checkpoint_list", {})
                    await anyio.sleep(0.2)
            (first,) = listed.structured_content["checkpoints"]
            assert first["kind"] == "initial"
            assert await automatic_kinds(client, workspace) == {"threshold"}

    anyio.run(walk)


def test_a_project_is_left_alone_when_every_trigger_is_off(
    workspace: Path, sessions: ServedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace / "pyproject.toml", b"")
    for name, value in (("FILES", "0"), ("INTERVAL", "0"), ("MERGE", "")):
        monkeypatch.setenv(f"HOLDFAST_AUTO_{name}", value)
    monkeypatch.setenv("HOLDFAST_END_OF_DAY", "")
    with automatic_that_looked(sessions) as missed:
        pass
    assert store_directory(workspace) is None
    assert not missed


def test_a_directory_that_is_no_project_is_left_alone(
    workspace: Path, sessions: ServedSessions
) -> None:
    with automatic_that_looked(sessions) as missed:
        pass
    assert store_directory(workspace) is None
    assert not missed

"""A daemon without requests sleeps, and keeps no memory that it does not need."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from holdfast.app.automation.watched_workspace import WatchedWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.retention.cleanup import cleanup
from holdfast.interfaces.daemon import server
from holdfast.interfaces.daemon.client import ask
from holdfast.ports.progress import NoProgress
from tests.support.clocks import pass_days
from tests.support.composition import configure
from tests.support.daemons import daemon_here, save_by_daemon

pytestmark = [pytest.mark.requirement("AU-6"), pytest.mark.usefixtures("patience")]


def test_memory_is_given_back_once_when_requests_have_ended(
    runtime: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(workspace, end_of_day="")
    given, happened = list[int](), threading.Event()

    def give_back() -> None:
        given.append(daemon.requests)
        happened.set()

    monkeypatch.setattr(server, "release_memory", give_back)
    monkeypatch.setattr(server, "_QUIET_S", 0.01)
    with daemon_here(idle_s=1800) as daemon:
        for number in (1, 2):
            save_by_daemon(workspace)
            assert happened.wait(60)
            happened.clear()
            assert given[-1] == daemon.requests == number
            assert daemon._next_wakeup_s() > 60


def test_an_unused_store_keeps_no_pages_in_memory(
    runtime: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(workspace, end_of_day="")
    used, happened = list[int](), threading.Event()
    rest = WatchedWorkspace.rest

    def resting(self: WatchedWorkspace) -> None:
        used.append(apsw.memory_used())
        rest(self)
        used.append(apsw.memory_used())

    for number in range(500):
        (workspace / f"a file with a name {number}").write_text(f"{number}")
    monkeypatch.setattr(WatchedWorkspace, "rest", resting)
    monkeypatch.setattr(server, "release_memory", happened.set)
    monkeypatch.setattr(server, "_QUIET_S", 0.01)
    with daemon_here(idle_s=1800):
        for _ in (1, 2):
            save_by_daemon(workspace)
            assert happened.wait(60)
            happened.clear()
    first_before, first_after = used[:2]
    assert first_before - first_after > 100_000
    assert len(used) == 4


@pytest.mark.requirement("AU-4")
def test_idle_means_asleep(runtime: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(workspace, end_of_day="")
    monkeypatch.setattr(server, "_QUIET_S", 300.0)
    with daemon_here(idle_s=1800) as daemon:
        save_by_daemon(workspace)
        assert daemon.workspaces.until_due_s() is None
        assert daemon._next_wakeup_s() > 60
        watcher = daemon.workspaces._watcher
        before = (daemon.wakeups, watcher.wakeups)  # type: ignore[attr-defined]
        for _ in range(50):
            ask("ping")
        # Fifty connections are fifty reasons to wake up; a workspace at rest is none.
        assert daemon.wakeups - before[0] <= 60
        assert watcher.wakeups - before[1] <= 2  # type: ignore[attr-defined]


@pytest.mark.requirement("ST-2")
def test_once_a_day_it_cleans_up_without_requests(
    runtime: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(workspace, end_of_day="")
    with pytest.MonkeyPatch.context() as past, open_workspace(workspace, create=True) as opened:
        pass_days(past, -9)
        for number in range(5):
            (workspace / "made").write_text(f"{number}")
            opened.engine.save(SessionId("old"), make_intent(f"{number}"), kind=Kind.TOOL)
        pass_days(past, 7.5)
        cleanup(opened.engine, NoProgress(), asked=False)
    cleaned, happened, rested = list[Path](), threading.Event(), threading.Event()
    clean_up = server.Daemon._clean_up

    def counted(self: server.Daemon, place: Path) -> None:
        clean_up(self, place)
        cleaned.append(place)
        happened.set()

    monkeypatch.setattr(server.Daemon, "_clean_up", counted)
    monkeypatch.setattr(server, "_QUIET_S", 0.01)
    with daemon_here(idle_s=1800):
        save_by_daemon(workspace, "why")
        assert happened.wait(60)
        new = ["Start of the session with claude-code", "Before user message: why"]
        assert _kept(workspace) == ["0", "4", *new]  # the first one, HEAD, and the new ones
        monkeypatch.setattr(server, "release_memory", rested.set)
        save_by_daemon(workspace)
        assert rested.wait(60)
    assert cleaned == [workspace]


def _kept(workspace: Path) -> list[str]:
    with open_workspace(workspace, create=False) as opened:
        found = opened.engine.vault.catalog.checkpoints_after(0, 10)
        return [one.intent.reasoning for one in found]

"""A workspace that is deleted, moved, replaced, covered, or changed a million times under the eyes
of the daemon: the agent goes on, and what is saved is what is there."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.local.inotify import InotifyWatcher
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import send, tool_call
from tests.support.daemons import daemon_here
from tests.support.forked_commands import call_hook
from tests.support.real_mounts import can_mount, mounted
from tests.support.workspace_state import state_of

pytestmark = [pytest.mark.requirement("HK-2", "AU-6"), pytest.mark.usefixtures("runtime")]


@pytest.fixture(params=["alone", "with the daemon"], autouse=True)
def daemon(
    request: pytest.FixtureRequest, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    with contextlib.ExitStack() as ended:
        if request.param == "alone":
            monkeypatch.setenv("HOLDFAST_DAEMON", "off")
        else:
            ended.enter_context(daemon_here())
        yield


def _unprotected(holdfast_home: Path) -> str:
    log = holdfast_home / "hooks.log"
    return log.read_text() if log.exists() else ""


def _saved(cli: CommandLine, project: Path) -> None:
    """What the newest checkpoint holds is what is there."""
    there = state_of(project)
    newest = cli.json("log", "--session", "s1")[0]["id"]
    for path, (kind, _, _) in there.items():
        if kind == "file":
            (project / path).write_bytes(b"wrecked")
    cli.json("restore", newest, "--session", "s1", "--yes")
    assert state_of(project) == there


def test_one_that_was_deleted_is_reported_in_the_log(project: Path, holdfast_home: Path) -> None:
    send(project, tool_call(project, "t1"))
    event = tool_call(project, "t2")
    elsewhere = project.parent
    shutil.rmtree(project)
    home = Path(os.environ["HOME"])
    answer = call_hook("claude-code", event, home)
    assert (answer.status, "not protected" in answer.out) == (0, True)
    assert str(elsewhere / "shop") in _unprotected(holdfast_home)


def test_one_that_was_moved_is_saved_where_it_is_now(
    project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    send(project, tool_call(project, "t1"))
    moved = project.with_name("moved")
    project.rename(moved)
    (moved / "notes.txt").write_text("after the move\n")
    send(moved, tool_call(moved, "t2"))
    assert _unprotected(holdfast_home) == ""
    there = CommandLine(moved)
    assert [made["kind"] for made in there.json("log", "--session", "s1")] == [
        "risky",
        "risky",
        "initial",
    ]
    there.json("config", "set", "include", '[".env"]')
    send(moved, tool_call(moved, "t3"))
    _saved(there, moved)


@pytest.mark.parametrize("how", ["replaced", "covered"] if can_mount() else ["replaced"])
def test_one_in_whose_place_is_another_is_saved_as_that(
    how: str, project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    send(project, tool_call(project, "t1"))
    with contextlib.ExitStack() as undone:
        if how == "covered":
            undone.enter_context(mounted(project))
        else:
            project.rename(project.with_name("away"))
            project.mkdir()
        (project / "other.txt").write_text("another directory\n")
        send(project, tool_call(project, "t2"))
        newest = cli.json("log", "--session", "s1")[0]
        assert (newest["kind"], newest["files"]) == ("risky", 1)
        _saved(cli, project)
    if how == "covered":
        # The agent is notified of the restore, too.
        assert call_hook("claude-code", tool_call(project, "t3"), project).status == 0
        assert cli.json("log", "--session", "s1")[0]["files"] >= 5
    assert _unprotected(holdfast_home) == ""


@pytest.mark.linux
def test_more_changes_than_the_system_tells_are_saved_anyway(
    project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchers: list[InotifyWatcher] = []
    init = InotifyWatcher.open

    def opened(self: InotifyWatcher, *arguments: object, **options: object) -> object:
        watchers.append(self)
        return init(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(InotifyWatcher, "open", opened)
    cli.json("config", "set", "include", '[".env"]')
    for number in range(3):
        send(project, tool_call(project, f"t{number}"))
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with contextlib.ExitStack() as held:
        for watcher in set(watchers):
            held.enter_context(watcher.lock)  # the queue is not read meanwhile
        for number in range(most // 2 + 10):
            name = project / f"src/{number % 50}"
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
            if number % 3:
                os.unlink(name)
    (project / "src/app.py").write_text("price = 3\n")
    send(project, tool_call(project, "t9"))
    _saved(cli, project)

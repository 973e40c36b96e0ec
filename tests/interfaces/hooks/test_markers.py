"""The marker in a workspace: from another machine, of a lost store, deleted, or in the way of
another file. Agents stay protected, and people are notified."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import tool_call
from tests.support.daemons import daemon_here
from tests.support.forked_commands import call_hook

pytestmark = pytest.mark.requirement("CP-16", "HK-2")


@pytest.fixture(params=["alone", "with the daemon"])
def daemon(
    request: pytest.FixtureRequest, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    with contextlib.ExitStack() as ended:
        if request.param == "alone":
            monkeypatch.setenv("HOLDFAST_DAEMON", "off")
        else:
            ended.enter_context(daemon_here())
        yield


def send(project: Path, use: str) -> str:
    """What an agent hears before a command."""
    answer = call_hook("claude-code", tool_call(project, use), project)
    assert (answer.status, answer.err) == (0, "")
    return json.dumps(answer.json)


def marker(project: Path) -> Path:
    return project / ".holdfast" / "workspace.json"


def restored(project: Path) -> bool:
    """Whether the newest checkpoint of the agent brings a deleted file back."""
    (project / "src/app.py").unlink()
    CommandLine(project).json("restore", "HEAD", "--session", "s1", "--yes")
    return (project / "src/app.py").read_text() == "price = 2\n"


def from_another_machine(project: Path) -> None:
    marker(project).parent.mkdir()
    marker(project).write_text('{"id": "0123456789abcdef0123"}')


@pytest.mark.usefixtures("daemon")
def test_a_marker_of_another_machine_gets_a_new_store_and_the_agent_is_notified_once(
    project: Path,
) -> None:
    from_another_machine(project)
    assert "names a store that is not on this machine" in send(project, "t1")
    assert send(project, "t2") == "{}"
    assert restored(project)


def test_a_marker_that_is_committed_does_not_part_a_workspace_from_its_store(
    project: Path, tmp_path: Path
) -> None:
    from_another_machine(project)
    subprocess.run(["git", "add", "-f", ".holdfast"], cwd=project, check=True)
    subprocess.run(["git", "commit", "-qm", "marker"], cwd=project, check=True)
    send(project, "t1")
    store = CommandLine(project).json("status")["store"]
    subprocess.run(["git", "checkout", "-q", "--", ".holdfast"], cwd=project, check=True)
    assert send(project, "t2") == "{}"
    assert CommandLine(project).json("status")["store"] == store
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(project), str(clone)], check=True)
    send(clone, "t3")
    assert CommandLine(clone).json("status")["store"] != store


def test_a_checkpoint_by_hand_makes_the_new_store_too(project: Path, cli: CommandLine) -> None:
    from_another_machine(project)
    assert cli("log").status == 6, "who only looks is told"
    made = cli("checkpoint", "why")
    assert (made.status, "not on this machine" in made.err) == (0, True)


def test_a_copied_workspace_gets_a_store_of_its_own(project: Path, tmp_path: Path) -> None:
    send(project, "t1")
    copy = tmp_path / "copy"
    shutil.copytree(project, copy, symlinks=True)
    send(copy, "t2")
    assert restored(copy)
    stores = {CommandLine(place).json("status")["store"] for place in (project, copy)}
    assert len(stores) == 2


@pytest.mark.usefixtures("daemon")
def test_after_its_store_was_lost_an_agent_is_protected_in_a_new_one(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    send(project, "t1")
    store = Path(cli.json("status")["store"])
    store.rename(tmp_path / "away")
    assert cli("checkpoint", "by hand").status == 6, "a person is asked"
    assert "Earlier checkpoints are not available" in send(project, "t2")
    assert restored(project)
    for arguments in (("log",), ("restore", "HEAD", "--session", "s1", "--yes")):
        assert (
            f"earlier checkpoints are in the store {store}, which is missing" in cli(*arguments).err
        )
    assert any("which is missing" in text for text in cli.json("status")["warnings"])
    (tmp_path / "away").rename(store)
    assert "holdfast init --former-store" in cli("status").err
    assert cli.json("init", "--former-store")["store"] == str(store)
    assert cli.json("status")["store"] == str(store)
    assert len(cli.json("log", "--session", "s1")) == 2


@pytest.mark.usefixtures("daemon")
def test_a_marker_that_was_cleaned_away_is_written_again_by_the_next_event(
    project: Path,
) -> None:
    send(project, "t1")
    send(project, "t2")
    store = CommandLine(project).json("status")["store"]
    subprocess.run(["git", "clean", "-qfdx"], cwd=project, check=True)
    assert not marker(project).exists()
    send(project, "t3")
    assert marker(project).exists()
    moved = project.with_name("moved")
    project.rename(moved)
    send(moved, "t4")
    assert CommandLine(moved).json("status")["store"] == store


@pytest.mark.usefixtures("daemon")
def test_an_event_in_the_middle_of_a_git_clean_does_not_make_it_fail(project: Path) -> None:
    send(project, "t1")
    send(project, "t2")
    directory = marker(project).parent
    for file in directory.iterdir():
        file.unlink()
    send(project, "t3")
    directory.rmdir()  # the next step of `git clean -fdx`, which fails if anything is there


@pytest.mark.usefixtures("daemon")
def test_a_marker_that_has_been_gone_for_a_while_is_written_into_its_directory(
    project: Path,
) -> None:
    send(project, "t1")
    marker(project).unlink()
    os.utime(marker(project).parent, (0, 0))
    send(project, "t2")
    assert marker(project).exists()


@pytest.mark.requirement("RL-6", "RL-7")
@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("kind", ["file", "pipe", "link", "dangling link"])
@pytest.mark.parametrize("when", ["from the first", "later"])
def test_something_in_the_place_of_the_marker_directory_does_not_end_protection(
    project: Path, tmp_path: Path, kind: str, when: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    if when == "later":
        send(project, "t1")
        shutil.rmtree(project / ".holdfast")
    in_the_way = project / ".holdfast"
    if kind == "file":
        in_the_way.write_text("mine\n")
    elif kind == "pipe":
        os.mkfifo(in_the_way)
    else:
        in_the_way.symlink_to(outside if kind == "link" else tmp_path / "nowhere")
    before = _seen(in_the_way)
    send(project, "t2")
    assert restored(project)
    CommandLine(project).json("undo", "--session", "s1", "--yes")
    assert _seen(in_the_way) == before
    assert list(outside.iterdir()) == []
    assert not list(project.glob(".holdfast-staging-*"))


def _seen(path: Path) -> Any:
    status = path.lstat()
    return status.st_mode, status.st_ino, os.readlink(path) if path.is_symlink() else None

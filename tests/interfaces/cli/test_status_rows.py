"""`status` on a terminal of 80 columns: eight rows, and the most urgent step is the next one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.components.git.repositories import git
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("CL-8")

AGENT = "8c1f2a7e-5d0b-4a1e-9f57-2f1f0c5be901"


def rows(cli: CommandLine, columns: int = 80) -> list[str]:
    """What a terminal shows, row by row: a longer line takes more of them."""
    with Screen(cli.workspace, "status", columns=columns) as screen:
        lines = Screen.plain(screen.finish())
    cut = [line[at : at + columns] for line in lines for at in range(0, max(len(line), 1), columns)]
    return [row for row in cut if row]


def event(place: Path, name: str, **more: Any) -> None:
    told = {"session_id": AGENT, "cwd": str(place), "hook_event_name": name, **more}
    call_hook("claude-code", told, place)


@pytest.fixture
def repository(cli: CommandLine) -> CommandLine:
    """A repository with a checkpoint, in which some files are ignored."""
    place = cli.workspace
    git(place, "init", "-q", "-b", "main")
    (place / ".gitignore").write_text(".env\nbuild/\n")
    (place / ".env").write_text("SECRET=1\n")
    for number in range(4):
        (place / "src" / f"a_module_with_a_rather_long_name_{number}.py").write_text("pass\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    cli.json("checkpoint", "the state before anything else happened to the billing module")
    return cli


@pytest.fixture
def worked(repository: CommandLine) -> CommandLine:
    """The same after an agent's edit."""
    place = repository.workspace
    event(place, "UserPromptSubmit", prompt="Please add VAT to every invoice and tidy the module")
    call = {"tool_name": "Edit", "tool_input": {"file_path": str(place / "src" / "app.py")}}
    event(place, "PreToolUse", **call)
    (place / "src" / "app.py").write_text("print('VAT')\n")
    event(place, "PostToolUse", **call, tool_response={})
    return repository


def wreck(cli: CommandLine) -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": "rm -rf src"}}
    event(cli.workspace, "PreToolUse", **call)
    shutil.rmtree(cli.workspace / "src")
    event(cli.workspace, "PostToolUse", **call, tool_response={})


def test_a_fresh_project(repository: CommandLine) -> None:
    shown = rows(repository)
    assert len(shown) <= 8, shown
    assert shown[-1].startswith("next      protect an agent: holdfast install")


def test_after_an_agents_work(worked: CommandLine) -> None:
    shown = rows(worked)
    assert len(shown) == 8, shown
    labels = [row.split()[0] for row in shown]
    assert labels == ["workspace", "session", "HEAD", "unsaved", "last", "agents", "left", "next"]
    assert "Please add VAT" in shown[1]
    assert "holdfast undo" in shown[4]


def test_right_after_an_agent_deleted_the_sources(worked: CommandLine) -> None:
    wreck(worked)
    shown = rows(worked)
    assert len(shown) == 8, shown
    assert 'last      the Bash call "rm -rf src" by claude-code' in shown[4]
    assert "NOT protected" in shown[5]
    assert shown[-1].startswith("next      restore ")
    assert shown[-1].endswith(" deleted files: holdfast undo")
    assert worked.json("status")["next"] == shown[-1].removeprefix("next      ")
    assert worked("undo", "--yes").status == 0
    assert "protect claude-code" in rows(worked)[-1]


def test_right_after_a_person_deleted_the_sources(worked: CommandLine) -> None:
    shutil.rmtree(worked.workspace / "src")
    shown = rows(worked)
    assert len(shown) == 8, shown
    assert shown[-1].endswith(" deleted files: holdfast undo")


def test_what_was_moved_or_replaced_is_no_wreck(repository: CommandLine) -> None:
    place = repository.workspace
    (place / "src").rename(place / "lib")
    assert "deleted" not in rows(repository)[-1]


def test_what_came_after_an_undo_is_not_laid_to_the_undone_call(worked: CommandLine) -> None:
    wreck(worked)
    assert worked("undo", "--yes").status == 0
    (worked.workspace / "README.md").unlink()
    assert worked.json("status")["last"]["what"].startswith("the unsaved changes since")


def test_without_git_with_other_sessions_and_a_store_that_is_nearly_full(
    cli: CommandLine,
) -> None:
    cli.json("checkpoint", "one", "--session", "one")
    cli.json("checkpoint", "two", "--session", "two")
    cli.json("checkpoint", "three", "--session", "three")
    (cli.workspace / "README.md").write_text("unsaved\n")
    size = cli.json("status")["store_bytes"]
    cli.json("config", "set", "budget", str(int(size * 1.1)))
    shown = rows(cli)
    assert len(shown) <= 8, shown
    assert any(row.startswith("session   three") and "2 other sessions" in row for row in shown)
    assert any(row.startswith("store     ") for row in shown)
    assert shown[-1] == "next      free space in the store: holdfast cleanup"


@pytest.mark.requirement("GT-1")
def test_git_is_shown_as_it_is_now(repository: CommandLine) -> None:
    place = repository.workspace
    git(place, "checkout", "-qb", "feature")
    (place / "README.md").write_text("changed\n")
    git(place, "commit", "-qam", "second")
    (place / "README.md").write_text("changed again\n")
    (place / "src" / "app.py").unlink()
    commit = git(place, "rev-parse", "--short=7", "HEAD").strip()
    assert repository.json("status")["git"] == f"feature@{commit}, 2 dirty"
    assert rows(repository)[0].endswith(f"feature@{commit}, 2 dirty")


def test_at_a_checkpoint_of_another_session_nothing_is_unsaved(worked: CommandLine) -> None:
    assert worked("checkpoint", "by a person", "--name", "mine", "--session", "another").status == 0
    wreck(worked)
    assert worked("restore", "another:mine", "--yes").status == 0
    assert worked.json("status")["approval"]["unsaved"] is False
    assert not any("unsaved changes" in row for row in rows(worked))


def delete(cli: CommandLine, name: str) -> None:
    call = {"tool_name": "Bash", "tool_input": {"command": f"rm {name}"}, "tool_use_id": name}
    event(cli.workspace, "PreToolUse", **call)
    (cli.workspace / name).unlink()
    event(cli.workspace, "PostToolUse", **call, tool_response={})


def test_a_wreck_in_several_calls_of_a_turn_is_brought_back_with_the_turn(
    worked: CommandLine,
) -> None:
    for number in range(3):
        delete(worked, f"src/a_module_with_a_rather_long_name_{number}.py")
    shown = rows(worked)
    assert len(shown) == 8, shown
    assert shown[4].endswith("(holdfast undo)")
    assert shown[-1] == "next      restore 3 deleted files: holdfast undo --turn"
    assert worked("undo", "--turn", "--yes").status == 0
    assert len(list((worked.workspace / "src").glob("a_module*"))) == 4


def test_a_person_who_deletes_after_the_agent_is_offered_just_that(worked: CommandLine) -> None:
    for number in range(2):
        delete(worked, f"src/a_module_with_a_rather_long_name_{number}.py")
    (worked.workspace / "README.md").unlink()
    assert rows(worked)[-1] == "next      restore 1 deleted file: holdfast undo"


def test_an_emptied_project_is_said_to_be_empty(cli: CommandLine) -> None:
    cli.save("all of it")
    for place in cli.workspace.iterdir():
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    cli.save("nothing is left")
    (unsaved,) = [row for row in rows(cli) if row.startswith("unsaved")]
    assert unsaved == "unsaved   no files left in the project; nothing changed since HEAD"


def test_after_an_undo_the_redo_is_named_until_something_changes(worked: CommandLine) -> None:
    wreck(worked)
    assert worked.json("status")["redo"] is None
    assert worked("undo", "--yes").status == 0
    last = next(row for row in rows(worked) if row.startswith("last"))
    assert last == 'last      undid the Bash call "rm -rf src" by claude-code  (holdfast redo)'
    (worked.workspace / "README.md").write_text("changed since\n")
    assert worked.json("status")["redo"] is None


def test_both_ends_of_a_long_command_stay_and_so_does_the_way_back(worked: CommandLine) -> None:
    command = "python3 -c 'print(1)' && " + "true && " * 20 + "touch made"
    call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "long"}
    event(worked.workspace, "PreToolUse", **call)
    (worked.workspace / "made").touch()
    event(worked.workspace, "PostToolUse", **call, tool_response={})
    last = next(row for row in rows(worked) if row.startswith("last"))
    assert last.startswith('last      the Bash call "python3')
    assert last.endswith(" by claude-code  (holdfast undo)")
    agents = next(row for row in rows(worked) if row.startswith("agents"))
    assert agents == "agents    claude-code NOT protected: its hooks were removed from its settings"

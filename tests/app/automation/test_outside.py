"""Files outside the workspace that tools name are in the checkpoint, and come back when asked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.components.external import named_paths
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.composition import configure
from tests.support.daemon_calls import tool_call
from tests.support.daemons import daemon_here, runtime_directory
from tests.support.hooks_here import call_hook
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.requirement("CP-13")

SESSION = ("--session", "s1")


@pytest.fixture
def outside(project: Path) -> Path:
    """A directory of the user's beside the project."""
    directory = project.parent / "dotfiles"
    (directory / "bin").mkdir(parents=True)
    (directory / "rc").write_text("alias ll='ls -l'\n")
    (directory / "rc").chmod(0o600)
    (directory / "bin" / "run").write_text("#!/bin/sh\n")
    return directory


@pytest.fixture(params=["off", "on"])
def behind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Without and with a daemon behind the hooks."""
    monkeypatch.setenv("HOLDFAST_DAEMON", request.param)
    if request.param == "off":
        yield "off"
        return
    with runtime_directory(), daemon_here():
        yield "on"


def _edit(project: Path, use: str, path: Path | str) -> dict[str, Any]:
    event = tool_call(project, use)
    return {**event, "tool_name": "Write", "tool_input": {"file_path": str(path), "content": "x"}}


def _send(project: Path, event: dict[str, Any]) -> None:
    answer = call_hook("claude-code", event, project)
    assert (answer.status, answer.err) == (0, "")


def _external(cli: CommandLine, reference: str) -> dict[str, Any]:
    shown = cli.json("show", reference, *SESSION)["components"]
    (state,) = [component for component in shown if component["name"] == "external"]
    facts: dict[str, Any] = state["facts"]
    return facts


@pytest.mark.usefixtures("behind")
@pytest.mark.requirement("BX-7", "RB-10")
def test_a_file_that_a_tool_edits_outside_comes_back_only_when_asked(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    _send(project, _edit(project, "t1", outside / "rc"))
    before = cli.json("log", *SESSION)[0]["id"]
    sound = state_of(outside)
    (outside / "rc").write_text("wrecked\n")
    (project / "src" / "app.py").write_text("changed\n")
    assert _external(cli, "HEAD")["paths"] == [str(outside / "rc")]
    assert f"external    {outside}/rc" in cli("show", "HEAD", *SESSION).out

    done = cli.json("restore", "HEAD", "--yes", *SESSION)
    assert (outside / "rc").read_text() == "wrecked\n"
    left = f"differs, and is not restored without --external: write {outside}/rc"
    assert left in "".join(done["warnings"])
    planned = cli("restore", before, "--external", "--dry-run", *SESSION).out
    assert f"files outside the workspace (exact): write {outside}/rc" in planned

    cli.json("restore", before, "--external", "--yes", *SESSION)
    assert state_of(outside) == sound
    cli.json("undo", "--yes", *SESSION)
    assert (outside / "rc").read_text() == "wrecked\n"
    cli.json("redo", "--yes", *SESSION)
    assert state_of(outside) == sound


def test_files_in_the_memory_disk_are_saved_like_others(
    project: Path, memory_directory: Path, cli: CommandLine
) -> None:
    built = memory_directory / "built"
    built.mkdir()
    edited, deleted = built / "edited", built / "deleted"
    for file in (edited, deleted):
        file.write_text("sound\n")
    sound = state_of(built)
    _send(project, _edit(project, "t1", edited))
    _send(project, tool_call(project, "t2", f"rm {deleted}"))
    edited.write_text("wrecked\n")
    deleted.unlink()
    cli.json("restore", "HEAD", "--external", "--yes", *SESSION)
    assert state_of(built) == sound


def test_shared_memory_of_running_programs_is_left_alone(
    project: Path, outside: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_paths, "MEMORY_DISK", str(outside))
    segment, built = outside / "psm_1", outside / "built" / "file"
    built.parent.mkdir()
    for file in (segment, built):
        file.write_text("sound\n")
    _send(project, tool_call(project, "t1", f"rm {segment} {built} {outside}/psm_2"))
    before = segment.stat()
    for file in (built, outside / "psm_2"):
        file.write_text("wrecked\n")
    cli("undo", "--yes")
    cli("restore", "HEAD", "--external", "--yes", *SESSION)
    assert segment.stat().st_ino == before.st_ino
    assert (outside / "psm_2").read_text() == "wrecked\n"


@pytest.mark.usefixtures("behind")
def test_what_a_command_destroys_outside_comes_back(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    _send(project, tool_call(project, "t1", "cd ../dotfiles && rm -rf bin/* && mv rc /nowhere/x"))
    sound = state_of(outside)
    shutil.rmtree(outside / "bin")
    (outside / "rc").unlink()
    cli.json("restore", "HEAD", "--external", "--yes", *SESSION)
    assert state_of(outside) == sound


def test_a_new_file_outside_is_taken_away_again(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    _send(project, _edit(project, "t1", outside / "new"))
    (outside / "new").write_text("made by the tool")
    cli.json("restore", "HEAD", "--external", "--yes", *SESSION)
    assert not (outside / "new").exists()
    cli.json("undo", "--yes", *SESSION)
    assert (outside / "new").read_text() == "made by the tool"


def test_the_file_behind_a_link_is_what_is_kept(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    link = project.parent / "rc-link"
    link.symlink_to(outside / "rc")
    _send(project, _edit(project, "t1", link))
    assert set(_external(cli, "HEAD")["paths"]) == {str(link), str(outside / "rc")}
    (outside / "rc").write_text("written through the link")
    cli.json("restore", "HEAD", "--external", "--yes", *SESSION)
    assert (outside / "rc").read_text() == "alias ll='ls -l'\n"
    assert os.readlink(link) == str(outside / "rc")


@pytest.mark.requirement("BX-7")
def test_what_is_not_kept_is_listed_with_the_tool_call(project: Path, cli: CommandLine) -> None:
    command = "rm -rf /proc/x $SOMEWHERE/x ~nobody/x / && tee ~/notes < /dev/null"
    _send(project, tool_call(project, "t1", command))
    (call,) = cli.json("show", "HEAD", *SESSION)["tool_calls"]
    assert call["not_captured"].keys() == {"/proc/x", "$SOMEWHERE/x", "~nobody/x", "/"}
    assert _external(cli, "HEAD")["paths"] == [f"{Path.home().resolve()}/notes"]


def test_a_file_inside_is_not_an_external_one(project: Path, cli: CommandLine) -> None:
    _send(project, _edit(project, "t1", project / "src" / "app.py"))
    _send(project, tool_call(project, "t2", "rm -rf src/../src"))
    names = [c["name"] for c in cli.json("show", "HEAD", *SESSION)["components"]]
    assert "external" not in names


@pytest.mark.usefixtures("behind")
@pytest.mark.requirement("RB-10")
def test_a_workspace_that_the_agent_came_to_by_a_link_is_not_outside_itself(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    link = project.parent / "way"
    link.symlink_to(project)
    _send(link, _edit(link, "t1", link / "src" / "app.py"))
    assert cli.json("log", *SESSION)[0]["reasoning"] == "Before Write: src/app.py"
    command = f"rm -rf {link}/src {link}/$X/y {link}/*.md > {link}/new; rm {outside}/rc"
    _send(link, tool_call(link, "t2", command))
    shown = cli.json("show", "HEAD", *SESSION)
    assert shown["tool_calls"][0]["outside"] == [str(outside / "rc")]
    assert "not_captured" not in shown["tool_calls"][0]
    assert _external(cli, "HEAD")["paths"] == [str(outside / "rc")]
    shutil.rmtree(project / "src")
    cli.json("restore", "HEAD", "--yes", *SESSION)
    answer = call_hook("claude-code", tool_call(link, "t3", "make"), link)
    told = answer.json["hookSpecificOutput"]["additionalContext"]
    assert f"your tools used {outside}/rc: this was not restored" in told
    assert str(link) not in told.partition("Outside the workspace")[2]


def test_a_file_that_a_link_inside_leads_to_is_an_external_one(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    (project / "linked").symlink_to(outside)
    _send(project, _edit(project, "t1", project / "linked" / "rc"))
    (outside / "rc").write_text("wrecked\n")
    assert _external(cli, "HEAD")["paths"] == [str(outside / "rc")]
    cli.json("restore", "HEAD", "--external", "--yes", *SESSION)
    assert (outside / "rc").read_text() == "alias ll='ls -l'\n"


@pytest.mark.parametrize("path", ["a\0b", "/a\0b", "\ud800", "~nobody/x", "$X/y", "x" * 5_000])
def test_a_name_that_leads_nowhere_does_not_hinder_the_checkpoint(
    project: Path, cli: CommandLine, path: str
) -> None:
    _send(project, _edit(project, "t1", path))
    assert cli.json("log", *SESSION)[0]["kind"] == "tool"
    assert cli.json("status", *SESSION)["unprotected"] == []


def test_nothing_is_kept_when_that_is_turned_off(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    configure(project, components=["git"])
    _send(project, _edit(project, "t1", outside / "rc"))
    shown = cli.json("show", "HEAD", *SESSION)
    assert [component["name"] for component in shown["components"]] == ["git"]
    assert shown["tool_calls"][0]["not_captured"] == {
        str(outside / "rc"): "external files are not captured"
    }


@pytest.mark.requirement("RB-8")
def test_each_file_is_asked_for_separately(project: Path, outside: Path, cli: CommandLine) -> None:
    _send(project, tool_call(project, "t1", "rm ../dotfiles/rc ../dotfiles/bin/run"))
    for path in ("rc", "bin/run"):
        (outside / path).write_text("wrecked\n")
    assert cli("restore", "HEAD", "--external", "--json", *SESSION).status == 5
    assert (outside / "rc").read_text() == "wrecked\n"
    with Screen(project, "restore", "HEAD", "--external", *SESSION) as screen:
        screen.read_until(f"write {outside}/bin/run? [y/N]")
        screen.type("n\n")
        screen.read_until(f"write {outside}/rc? [y/N]")
        screen.type("y\n")
        screen.read_until("Restore? [y/N]")
        screen.type("y\n")
        screen.finish()
    assert screen.status == 0
    assert (outside / "rc").read_text() == "alias ll='ls -l'\n"
    assert (outside / "bin" / "run").read_text() == "wrecked\n"


def test_a_refused_file_stops_the_restore_unless_the_rest_is_wanted(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    _send(project, tool_call(project, "t1", "rm ../dotfiles/rc ../dotfiles/bin/run"))
    (outside / "bin" / "run").write_text("wrecked\n")
    (outside / "rc").unlink()
    (outside / "rc").symlink_to("bin/run")
    refused = cli("restore", "HEAD", "--external", "--yes", "--json", *SESSION)
    assert refused.status == 5
    assert "it was a file and is a link now" in refused.error["message"]
    assert (outside / "bin" / "run").read_text() == "wrecked\n"
    rest = cli("restore", "HEAD", "--external", "--yes", "--best-effort", *SESSION)
    assert rest.status == 3
    assert "it was a file and is a link now" in rest.err
    assert (outside / "bin" / "run").read_text() == "#!/bin/sh\n"
    assert os.readlink(outside / "rc") == "bin/run"


@pytest.mark.requirement("RB-10", "BX-7")
def test_the_agent_is_notified_which_paths_outside_were_not_rolled_back(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    _send(project, tool_call(project, "t1", "rm ../dotfiles/rc"))
    (project / "src" / "app.py").write_text("changed\n")
    cli.json("restore", "HEAD", "--yes", *SESSION)
    answer = call_hook("claude-code", tool_call(project, "t2", "make"), project)
    told = answer.json["hookSpecificOutput"]["additionalContext"]
    assert "Outside the workspace, your tools used ../dotfiles/rc" in told


@pytest.mark.requirement("RB-3")
def test_files_inside_return_when_one_outside_cannot_be_written(
    project: Path, outside: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.components.external import restore as restoring

    _send(project, tool_call(project, "t1", "rm ../dotfiles/rc"))
    (outside / "rc").write_text("wrecked\n")
    (project / "src" / "app.py").write_text("changed\n")
    before = state_of(project)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(restoring, "_write_file", full)
    answer = cli("restore", "HEAD", "--external", "--yes", "--json", *SESSION)
    assert answer.status != 0
    assert "No space left" in answer.error["message"]
    assert state_of(project) == before
    assert state_of(outside)["rc"][2] == b"wrecked\n"


@pytest.mark.requirement("RB-2")
def test_an_undo_reverts_just_what_the_restore_has_touched_outside(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    (outside / "other").write_text("mine\n")
    _send(project, tool_call(project, "t1", "rm ../dotfiles/rc ../dotfiles/other ../dotfiles/new"))
    (outside / "rc").write_text("wrecked\n")
    (outside / "new").write_text("made by the tool\n")
    wrecked = state_of(outside)
    cli.json("restore", "HEAD", "--external", "--yes", *SESSION)
    assert not (outside / "new").exists()
    (outside / "other").write_text("worked on since\n")
    worked_on = state_of(outside)["other"]
    shown = cli("undo", "--dry-run", *SESSION).out
    assert f"write {outside}/rc" in shown
    assert f"{outside}/other" not in shown
    cli.json("undo", "--yes", *SESSION)
    assert state_of(outside) == {**wrecked, "other": worked_on}
    cli.json("redo", "--yes", *SESSION)
    assert (outside / "rc").read_text() == "alias ll='ls -l'\n"
    assert not (outside / "new").exists()
    assert state_of(outside)["other"] == worked_on


@pytest.mark.requirement("RB-2")
def test_an_undo_brings_back_the_one_file_that_was_agreed_to(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    _send(project, tool_call(project, "t1", "rm ../dotfiles/rc ../dotfiles/bin/run"))
    for path in ("rc", "bin/run"):
        (outside / path).write_text("wrecked\n")
    with Screen(project, "restore", "HEAD", "--external", *SESSION) as screen:
        screen.read_until(f"write {outside}/bin/run? [y/N]")
        screen.type("n\n")
        screen.read_until(f"write {outside}/rc? [y/N]")
        screen.type("y\n")
        screen.read_until("Restore? [y/N]")
        screen.type("y\n")
        screen.finish()
    (outside / "bin" / "run").write_text("worked on since\n")
    cli.json("undo", "--yes", *SESSION)
    assert (outside / "rc").read_text() == "wrecked\n"
    assert (outside / "bin" / "run").read_text() == "worked on since\n"


@pytest.mark.requirement("RB-2", "RB-8")
def test_an_undo_and_a_redo_ask_for_each_file_again(
    project: Path, outside: Path, cli: CommandLine
) -> None:
    _send(project, tool_call(project, "t1", "rm ../dotfiles/rc ../dotfiles/bin/run"))
    for path in ("rc", "bin/run"):
        (outside / path).write_text("wrecked\n")
    cli.json("restore", "HEAD", "--external", "--yes", *SESSION)
    assert cli("undo", "--json", *SESSION).status == 5
    assert (outside / "rc").read_text() == "alias ll='ls -l'\n"
    with Screen(project, "undo", *SESSION) as screen:
        screen.read_until(f"write {outside}/bin/run? [y/N]")
        screen.type("n\n")
        screen.read_until(f"write {outside}/rc? [y/N]")
        screen.type("y\n")
        screen.read_until("Undo? [y/N]")
        screen.type("y\n")
        screen.finish()
    assert screen.status == 0
    assert (outside / "rc").read_text() == "wrecked\n"
    assert (outside / "bin" / "run").read_text() == "#!/bin/sh\n"
    (outside / "rc").write_text("edited by hand\n")
    with Screen(project, "redo", *SESSION) as screen:
        screen.read_until(f"write {outside}/rc, replacing a later edit? [y/N]")
        screen.type("y\n")
        screen.read_until("Redo? [y/N]")
        screen.type("y\n")
        screen.finish()
    assert (outside / "rc").read_text() == "alias ll='ls -l'\n"
    assert (outside / "bin" / "run").read_text() == "#!/bin/sh\n"

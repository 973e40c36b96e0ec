"""An ignored file that a tool names is in the checkpoint before it is changed, and in all later."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure
from tests.support.daemon_calls import after, tool_call
from tests.support.daemons import daemon_here, runtime_directory
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("CP-13")


@pytest.fixture(params=["off", "on"])
def behind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without and with a daemon behind the hooks."""
    monkeypatch.setenv("HOLDFAST_DAEMON", request.param)
    if request.param == "off":
        yield
        return
    with runtime_directory(), daemon_here():
        yield


def _write(project: Path, use: str, path: Path | str) -> dict[str, Any]:
    given = {"file_path": str(path), "content": "x"}
    return {**tool_call(project, use), "tool_name": "Write", "tool_input": given}


def _run(project: Path, use: str, command: str) -> dict[str, Any]:
    given = {"command": command}
    return {**tool_call(project, use), "tool_name": "Bash", "tool_input": given}


def _send(project: Path, event: dict[str, Any]) -> str:
    """The notice to the agent."""
    answer = call_hook("claude-code", event, project)
    assert (answer.status, answer.err) == (0, "")
    said = json.loads(answer.out or "{}").get("hookSpecificOutput", {})
    return str(said.get("additionalContext", ""))


@pytest.mark.usefixtures("behind", "patience")
def test_the_checkpoint_before_a_write_holds_the_ignored_file_and_says_so_once(
    project: Path, cli: CommandLine
) -> None:
    told = _send(project, _write(project, "t1", project / ".env"))
    assert ".env, although it is ignored (.gitignore:1: .env)" in told
    assert "capture_named_ignored" in told
    (project / ".env").write_text("lost\n")
    assert _send(project, _write(project, "t2", project / ".env")) == ""
    (project / ".env").unlink()
    assert _send(project, _run(project, "t3", "ls")) == ""
    skipped = cli("status", "--skipped").out
    assert "captured because a tool named it" not in skipped  # it is gone
    cli("restore", "HEAD~2", "--yes")
    assert (project / ".env").read_text() == "KEY=price\n"
    assert (project / ".env").stat().st_mode & 0o777 == 0o600
    assert "captured because a tool named it" in cli("status", "--skipped").out


@pytest.mark.parametrize(
    "command",
    [
        "echo KEY=1 > .env",
        "echo KEY=1 >> .env",
        "sed -i s/price/cost/ .env",
        "cd src && rm ../.env",
        "bash -c 'cp src/app.py .env'",
        "truncate -s 0 .env",
        "python3 tool.py --env-file=.env",
        "mytool .env",
        "(cd src; tee ../.env < app.py)",
    ],
)
def test_a_command_that_names_an_ignored_file_captures_it_first(
    project: Path, cli: CommandLine, command: str
) -> None:
    assert "now captures .env," in _send(project, _run(project, "t1", command))
    (project / ".env").unlink()
    cli("restore", "HEAD", "--yes")
    assert (project / ".env").read_text() == "KEY=price\n"


def test_a_file_that_a_tool_makes_is_in_the_next_checkpoint(
    project: Path, cli: CommandLine
) -> None:
    (project / ".env").unlink()
    assert "now captures .env," in _send(project, _write(project, "t1", ".env"))
    (project / ".env").write_text("made by the agent\n")
    _send(project, _run(project, "t2", "ls"))
    (project / ".env").unlink()
    cli("restore", "HEAD", "--yes")
    assert (project / ".env").read_text() == "made by the agent\n"


def test_a_rule_is_named_only_if_it_is_that_of_every_file(project: Path) -> None:
    (project / ".gitignore").write_text(".env\n*.key\n")
    (project / "a.key").write_text("secret\n")
    (project / "b.key").write_text("secret\n")
    told = _send(project, _run(project, "t1", "rm a.key b.key"))
    assert "although they are ignored (.gitignore:2: *.key), because" in told
    (project / "c.key").write_text("secret\n")
    told = _send(project, _run(project, "t2", "rm .env c.key"))
    assert "although they are ignored, because" in told


def test_a_program_in_an_ignored_directory_is_not_captured_but_an_edit_of_one_file_is(
    project: Path, cli: CommandLine
) -> None:
    tool = project / "node_modules" / "x" / "cli.js"
    tool.parent.mkdir(parents=True)
    tool.write_text("code\n")
    (tool.parent / "other.js").write_text("other\n")
    assert _send(project, _run(project, "t1", "node node_modules/x/cli.js")) == ""
    told = _send(project, _run(project, "t2", "rm -rf node_modules"))
    assert "does not save node_modules" in told
    told = _send(project, _write(project, "t3", tool))
    assert "now captures node_modules/x/cli.js," in told
    tool.write_text("changed\n")
    cli("restore", "HEAD", "--yes")
    assert tool.read_text() == "code\n"


@pytest.mark.parametrize(
    "command",
    ["mkdir -p node_modules/p", "mkdir build.env", "cp -r src .env", "git clone x node_modules/p"],
)
def test_a_directory_that_a_command_makes_is_not_said_to_be_captured(
    project: Path, cli: CommandLine, command: str
) -> None:
    (project / ".env").unlink()
    (project / ".gitignore").write_text(".env\nbuild.env\n")
    before = _run(project, "t1", command)
    assert "now captures" not in _send(project, before)
    made = project / command.split()[-1]
    made.mkdir(parents=True)
    (made / "file").write_text("x\n")
    assert "now captures" not in _send(project, after(before))
    _send(project, _run(project, "t2", "ls"))
    files = cli.json("show", "HEAD", "--session", "s1", "--files")["entries"]
    assert not [one for one in files if one["path"].endswith("/file")]


def test_a_file_that_a_command_makes_is_reported_when_it_is_there(project: Path) -> None:
    (project / ".env").unlink()
    before = _run(project, "t1", "cp src/app.py .env")
    assert _send(project, before) == ""
    (project / ".env").write_text("made\n")
    _send(project, after(before))
    again = _run(project, "t2", "cp src/app.py .env")
    assert "now captures .env," in _send(project, again)  # the first answer that the model reads
    assert _send(project, after(again)) == ""
    assert _send(project, _run(project, "t3", "ls")) == ""


def test_a_named_file_that_is_too_large_is_not_said_to_be_captured(project: Path) -> None:
    configure(project, max_file_size=1000)
    (project / ".env").write_text("x" * 2000)
    assert "now captures .env," not in _send(project, _write(project, "t1", project / ".env"))


def test_one_file_of_a_huge_ignored_directory_is_captured_alone(
    project: Path, cli: CommandLine
) -> None:
    packages = project / "node_modules"
    for number in range(200):
        (packages / f"p{number}").mkdir(parents=True)
        (packages / f"p{number}" / "index.js").write_text("code\n")
    edited = packages / "p7" / "index.js"
    assert "now captures node_modules/p7/index.js," in _send(project, _write(project, "t1", edited))
    edited.write_text("changed\n")
    files = cli.json("show", "HEAD", "--session", "s1", "--files")["entries"]
    inside = [one["path"] for one in files if one["path"].startswith("node_modules/p")]
    assert [path for path in inside if path.endswith(".js")] == ["node_modules/p7/index.js"]
    cli("restore", "HEAD", "--yes")
    assert edited.read_text() == "code\n"
    assert len(list(packages.glob("*/index.js"))) == 200


def test_with_the_setting_off_nothing_is_captured_or_reported(
    project: Path, cli: CommandLine
) -> None:
    configure(project, capture_named_ignored="off")
    assert _send(project, _write(project, "t1", project / ".env")) == ""
    (project / ".env").write_text("lost\n")
    cli("restore", "HEAD", "--yes")
    assert (project / ".env").read_text() == "lost\n"


@pytest.mark.requirement("CP-13", "BX-7")
def test_a_directory_beside_the_workspace_comes_back_whole(project: Path, cli: CommandLine) -> None:
    sib = project.parent / "sib"
    for number in range(250):
        (sib / f"d{number % 5}").mkdir(parents=True, exist_ok=True)
        (sib / f"d{number % 5}" / f"{number}").write_text(str(number))
    assert _send(project, _run(project, "t1", "rm -rf ../sib")) == ""
    shutil.rmtree(sib)
    cli.json("restore", "HEAD", "--yes", "--external")
    assert len([path for path in sib.rglob("*") if path.is_file()]) == 250


@pytest.mark.requirement("CP-13", "BX-7")
def test_what_is_not_kept_of_a_directory_beside_the_workspace_is_reported_and_makes_it_partial(
    project: Path, cli: CommandLine
) -> None:
    sib = project.parent / "sib"
    sib.mkdir()
    with open(sib / "model.bin", "wb") as large:
        large.truncate(150_000_000)
    (sib / "small").write_text("kept\n")
    told = _send(project, _run(project, "t1", "rm -rf ../sib"))
    assert "model.bin: it has 150,000,000 bytes" in told
    shown = cli.json("show", "HEAD")
    assert shown["partial"] is True


@pytest.mark.requirement("AU-3")
def test_new_files_are_no_risk_and_a_headline_names_the_gravest_part(
    project: Path, cli: CommandLine
) -> None:
    _send(project, _run(project, "t1", "echo hi > new.txt"))
    assert cli.json("show", "HEAD")["kind"] == "tool"
    _send(project, _run(project, "t2", "echo hi > notes.txt"))
    assert cli.json("show", "HEAD")["kind"] == "risky"
    (project / "notes.txt").write_text("hi\n")
    _send(project, _run(project, "t3", "cd src && git status && rm -rf deep"))
    head = cli.json("show", "HEAD")
    assert head["reasoning"].startswith("Before Bash: rm -rf deep (risky: deletes deep")


def test_an_agent_that_hears_nothing_before_a_tool_is_notified_after_it(
    project: Path, cli: CommandLine
) -> None:
    call = {"toolName": "write_file", "toolArgs": {"path": ".env"}, "cwd": str(project)}
    event = {"hookEventName": "preToolUse", "sessionId": "s1", **call}
    answer = call_hook("copilot", event, project)
    assert ".env" not in answer.out
    assert "captured because a tool named it" in cli("status", "--skipped").out
    after = {**event, "hookEventName": "postToolUse", "toolResult": {"resultType": "success"}}
    assert "now captures .env," in call_hook("copilot", after, project).out


@pytest.mark.parametrize("spelling", ["~/shop/.env", "$HOME/shop/.env", '"${HOME}/shop/.env"'])
def test_an_ignored_file_that_is_spelled_by_way_of_the_home_directory_is_captured(
    project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    told = _send(project, _run(project, "t1", f"echo x > {spelling}"))
    assert "now captures .env," in told
    files = cli.json("show", "HEAD", "--session", "s1", "--files")["entries"]
    assert ".env" in {entry["path"] for entry in files}

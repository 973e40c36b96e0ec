"""The settings file of a project, which may have come with a clone: what of it is taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.domain.settings.schema import FROM_PROJECT, FromProject
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemon_calls import tool_call
from tests.support.hooks_here import call_hook

pytestmark = pytest.mark.requirement("CP-16", "HK-2")
OFF = 'ignore = ["*"]\nauto_shell = "off"\nauto_edit = "off"\nmax_file_size = 1\nbudget = 1\n'


def settings_file(project: Path, text: str) -> Path:
    file = project / ".holdfast" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def saved_by_hook(cli: CommandLine, use: str) -> list[str]:
    """What the checkpoint before an agent's command holds."""
    call_hook("claude-code", tool_call(cli.workspace, use, "rm -rf src"), cli.workspace)
    kinds = [made["kind"] for made in cli.json("log", "--session", "s1")]
    assert kinds == ["risky", "initial"]
    shown = cli.json("show", "HEAD", "--session", "s1", "--files")
    return [entry["path"] for entry in shown["entries"]]


def test_a_cloned_project_cannot_turn_protection_off(cli: CommandLine) -> None:
    settings_file(cli.workspace, OFF)
    assert "src/app.py" in saved_by_hook(cli, "t1")
    for key in ("ignore", "auto_shell", "auto_edit", "max_file_size", "budget"):
        assert cli.json("config", "get", key)["origin"] == "default"


def test_status_doctor_and_config_name_what_is_not_applied(cli: CommandLine) -> None:
    file = settings_file(cli.workspace, OFF)
    cli.save()
    told = f"{file} sets ignore, auto_shell, auto_edit, max_file_size, budget"
    assert told in cli("status").err
    assert cli.json("status")["warnings"][0].startswith(told)
    doctor = cli("doctor")
    assert told in doctor.out
    assert "holdfast config trust" in doctor.out
    assert "holdfast config trust" in cli("config", "list").err


def test_after_a_yes_the_file_is_taken_as_long_as_it_stays_the_same(cli: CommandLine) -> None:
    file = settings_file(cli.workspace, 'ignore = ["data.bin"]\n')
    before = cli.json("checkpoint", "all")["files"]
    trusted = cli.json("config", "trust")
    assert trusted == {"file": str(file), "applied": {"ignore": ["data.bin"]}}
    assert cli.json("config", "get", "ignore")["origin"] == str(file)
    assert cli.json("checkpoint", "less")["files"] == before - 1
    assert cli.json("status")["warnings"] == []
    file.write_text('ignore = ["*"]\n')
    assert cli.json("checkpoint", "all again")["files"] == before
    assert "not applied" in cli("status").err


def test_a_yes_is_for_one_project(cli: CommandLine, tmp_path: Path) -> None:
    settings_file(cli.workspace, 'ignore = ["*"]\n')
    cli.json("config", "trust")
    other = CommandLine(tmp_path / "other")
    other.workspace.mkdir()
    settings_file(other.workspace, 'ignore = ["*"]\n')
    (other.workspace / "file").write_text("1\n")
    assert other.json("checkpoint", "why")["files"] == 1


def test_what_a_project_includes_is_added_to_what_the_user_includes(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "holdfast").mkdir()
    (tmp_path / "holdfast" / "config.toml").write_text('include = [".env"]\n')
    settings_file(cli.workspace, 'include = ["*.log"]\n')
    assert cli.json("config", "get", "include")["value"] == [".env", "*.log"]


@pytest.mark.parametrize("kind", ["not TOML", "unknown key", "wrong value", "link", "pipe"])
def test_a_file_that_makes_no_sense_does_not_end_protection(
    cli: CommandLine, tmp_path: Path, kind: str
) -> None:
    file = settings_file(cli.workspace, "")
    if kind == "link":
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        file.unlink()
        os.mkfifo(file)
    else:
        file.write_text({"not TOML": "{", "unknown key": "x = 1\n"}.get(kind, "budget = -1\n"))
    assert "src/app.py" in saved_by_hook(cli, "t1")
    assert "not applied" in cli("status").err


def test_who_edits_the_file_through_the_command_trusts_it(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file(cli.workspace, 'setuid = "restore"\n')
    monkeypatch.setenv("EDITOR", "sed -i s/restore/drop/")
    assert cli("config", "edit", "--project").status == 0
    assert cli.json("config", "get", "setuid")["value"] == "drop"


def test_a_holdfastignore_that_leaves_out_most_is_named(cli: CommandLine) -> None:
    cli.save()
    assert cli.json("status")["warnings"] == []
    (cli.workspace / ".holdfastignore").write_text("*\n!/.gitignore\n")
    (warning,) = cli.json("status")["warnings"]
    assert warning.startswith(".holdfastignore excludes")
    assert warning in cli("status").err
    findings = cli("--json", "doctor").json["findings"]
    (found,) = [one for one in findings if one["subject"] == "protection"]
    assert (found["status"], found["finding"]) == ("warning", warning)


def test_just_keys_that_can_only_protect_more_are_taken_from_any_file() -> None:
    taken = {key for key, source in FROM_PROJECT.items() if source is FromProject.ALWAYS}
    assert taken == {"include", "accept_template"}

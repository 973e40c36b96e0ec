"""Which workspace a command means, by the directory that it was called in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.fixture
def ruled(cli: CommandLine) -> CommandLine:
    """A workspace with a store, whose rules leave something out."""
    (cli.workspace / ".gitignore").write_text("build/\n.worktrees/\n")
    (cli.workspace / "build" / "deep").mkdir(parents=True)
    (cli.workspace / "build" / "deep" / "work").write_text("1\n")
    cli.save()
    return cli


def _repository(place: Path) -> Path:
    (place / "deep").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    (place / "deep" / "work").write_text("not committed\n")
    return place


@pytest.mark.requirement("CP-1", "CL-1")
def test_a_repository_that_the_workspace_leaves_out_is_saved_separately(ruled: CommandLine) -> None:
    place = _repository(ruled.workspace / ".worktrees" / "feature")
    below = CommandLine(place / "deep")
    before = ruled.json("log")
    made = below.json("checkpoint", "why")
    assert (made["files"], made["warnings"]) == (1, [])
    assert below.json("status")["workspace"] == str(place)
    (place / "deep" / "work").unlink()
    below.json("restore", made["id"], "--yes")
    assert (place / "deep" / "work").read_text() == "not committed\n"
    assert ruled.json("log") == before


@pytest.mark.requirement("CL-1")
@pytest.mark.parametrize("how", ["from home", "by a link"])
def test_it_is_meant_however_it_is_named(
    ruled: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    place = _repository(ruled.workspace / ".worktrees" / "feature")
    monkeypatch.setenv("HOME", str(ruled.workspace.parent))
    (tmp_path / "link").symlink_to(place / "deep")
    from_home = f"~/{ruled.workspace.name}/.worktrees/feature/deep"
    named = from_home if how == "from home" else str(tmp_path / "link")
    assert ruled.json("-C", named, "checkpoint", "why")["files"] == 1
    assert CommandLine(place).json("status")["workspace"] == str(place)


@pytest.mark.requirement("CL-1")
def test_before_it_is_saved_nothing_else_is_restored_in_its_place(ruled: CommandLine) -> None:
    place = _repository(ruled.workspace / ".worktrees" / "feature")
    (ruled.workspace / "README.md").write_text("not to be touched from there\n")
    answer = CommandLine(place)("restore", "HEAD", "--yes")
    assert (answer.status, str(place) in answer.err) == (4, True)
    assert (ruled.workspace / "README.md").read_text() == "not to be touched from there\n"


@pytest.mark.requirement("CL-1")
def test_a_repository_in_such_a_repository_is_meant_where_that_leaves_it_out_too(
    ruled: CommandLine,
) -> None:
    outer = _repository(ruled.workspace / ".worktrees" / "feature")
    (outer / ".gitignore").write_text("vendor/\n")
    inner = _repository(outer / "vendor" / "inner")
    CommandLine(inner / "deep").save()
    assert CommandLine(inner).json("status")["workspace"] == str(inner)
    CommandLine(outer / "deep").save()
    assert CommandLine(outer).json("status")["workspace"] == str(outer)


@pytest.mark.requirement("CL-1")
def test_a_repository_that_the_workspace_saves_is_a_part_of_it(ruled: CommandLine) -> None:
    (ruled.workspace / "pyproject.toml").write_text("")
    place = _repository(ruled.workspace / "libraries" / "nested")
    below = CommandLine(place / "deep")
    made = below.json("checkpoint", "why")
    assert made["warnings"] == []
    assert below.json("status")["workspace"] == str(ruled.workspace)
    paths = [entry["path"] for entry in ruled.json("show", "--files")["entries"]]
    assert "libraries/nested/deep/work" in paths


@pytest.mark.requirement("CP-1", "CL-2")
def test_who_is_in_a_directory_that_is_left_out_is_notified(ruled: CommandLine) -> None:
    below = CommandLine(ruled.workspace / "build" / "deep")
    told = "nothing in build/deep is saved: ignore rules of "
    [warning] = below.json("checkpoint", "why")["warnings"]
    assert warning.startswith(told)
    for command in (["checkpoint", "why"], ["status"]):
        answer = below(*command)
        assert (answer.status, answer.err.startswith(f"warning: {told}")) == (0, True)
    ruled.json("config", "set", "include", '["build/deep/"]')
    assert below.json("checkpoint", "why")["warnings"] == []
    assert below("status").err == ""


def test_who_is_in_any_other_directory_gets_no_notice(ruled: CommandLine) -> None:
    for place in (ruled.workspace, ruled.workspace / "src"):
        assert CommandLine(place).json("checkpoint", "why")["warnings"] == []
        assert CommandLine(place)("status").err == ""

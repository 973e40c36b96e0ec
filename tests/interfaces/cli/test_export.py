"""`holdfast export`: a session, some checkpoints or everything, in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine, command, run
from tests.support.hostile_trees import git


@pytest.mark.requirement("ST-7", "CL-1")
def test_the_answer_says_what_is_in_the_file(cli: CommandLine, tmp_path: Path) -> None:
    cli.save("one")
    newest = cli.save("two")
    done = cli.json("export", str(tmp_path / "file"))
    assert done["checkpoints"] == 2
    assert done["latest"] == newest
    assert done["file_bytes"] == (tmp_path / "file").stat().st_size
    assert done["sessions"] == [cli.json("status")["session_id"]]
    assert "Exported 2 checkpoints of 1 session" in cli("export", str(tmp_path / "other")).out


@pytest.mark.requirement("ST-7")
def test_the_file_is_relative_to_where_one_stands(cli: CommandLine, project: Path) -> None:
    cli.save()
    cli.json("export", "../here.holdfast")
    assert (project.parent / "here.holdfast").exists()


def test_the_answer_names_the_file_without_detours(cli: CommandLine, tmp_path: Path) -> None:
    cli.save()
    place = (tmp_path / "work.holdfast").resolve()
    assert place.parent == cli.workspace.resolve().parent
    assert f" to {place}: " in cli("export", "../work.holdfast").out
    assert str(place) in cli("export", "../work.holdfast").err


@pytest.mark.requirement("ST-7", "CL-3")
def test_an_existing_file_is_replaced_only_by_force(cli: CommandLine, tmp_path: Path) -> None:
    cli.save()
    (tmp_path / "file").write_text("mine")
    refused = cli("export", str(tmp_path / "file"), "--json")
    assert (refused.status, refused.error["code"]) == (5, "refused")
    assert "--force" in refused.error["hint"]
    assert (tmp_path / "file").read_text() == "mine"
    cli.json("export", str(tmp_path / "file"), "--force")
    assert (tmp_path / "file").read_bytes().startswith(b"HFBUNDLE")


@pytest.mark.requirement("ST-7")
def test_standard_output_takes_the_same_bytes(
    cli: CommandLine, project: Path, tmp_path: Path
) -> None:
    import subprocess

    cli.save()
    piped = subprocess.run(command("export", "-"), cwd=project, capture_output=True, check=True)
    assert piped.stderr == b""
    (tmp_path / "piped").write_bytes(piped.stdout)
    assert cli.json("import", str(tmp_path / "piped"))["already_there"] == 1
    assert cli("export", "-", "--json").error["code"] == "usage"


@pytest.mark.requirement("ST-7")
def test_some_checkpoints_or_all_sessions_can_be_chosen(cli: CommandLine, tmp_path: Path) -> None:
    first = cli.save("one", "--name", "first")
    cli.save("two")
    cli("checkpoint", "elsewhere", "--session", "other")
    some = cli.json("export", str(tmp_path / "some"), "first")
    assert (some["checkpoints"], some["latest"]) == (1, first)
    assert cli.json("export", str(tmp_path / "all"), "--all")["checkpoints"] == 3
    other = cli.json("export", str(tmp_path / "other"), "--session", "other")
    assert other["sessions"] == ["other"]


@pytest.mark.requirement("CL-3")
def test_what_cannot_be_exported_is_reported_by_its_status(
    cli: CommandLine, tmp_path: Path
) -> None:
    assert cli("export", str(tmp_path / "x"), "--json").error["code"] == "not_found"
    cli.save()
    assert cli("export", "--json").error["code"] == "usage"
    assert cli("export", str(tmp_path), "--json").error["code"] == "usage"
    assert cli("export", str(tmp_path / "x"), "nothing", "--json").status == 4
    assert cli("export", str(tmp_path / "x"), "HEAD", "--all", "--json").status == 2
    assert not (tmp_path / "x").exists()
    assert run("export", "--help").status == 0


@pytest.mark.parametrize("kind", [(), ("--git-bundle",)], ids=["bundle", "git bundle"])
def test_an_export_into_the_workspace_is_refused(cli: CommandLine, kind: tuple[str, ...]) -> None:
    git(cli.workspace, "init", "-q")
    cli.save("one")
    for name in ("out.hold", "src/out.hold"):
        answer = cli("export", str(cli.workspace / name), *kind, "--json")
        assert answer.status == 5
        assert "is inside the workspace" in answer.error["message"]
        assert not (cli.workspace / name).exists()
    assert cli("export", str(cli.workspace / "out.hold"), *kind, "--force").status == 0
    assert cli("export", str(cli.workspace.parent / "out.hold"), *kind).status == 0

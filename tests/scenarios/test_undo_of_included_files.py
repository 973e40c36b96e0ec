"""A file that is saved only since it was included stays under the protection of undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("RB-11", "CP-12")
def test_a_file_included_later_comes_back_also_after_an_undo_to_before_that(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    secret, notes, cli = project / ".env", project / "notes.txt", CommandLine(project)
    (project / ".gitignore").write_text(".env\n")
    secret.write_text("KEY=1\n")
    notes.write_text("one")
    cli.save("one")
    assert cli("config", "add", "include", ".env").status == 0
    notes.write_text("two")
    cli.save("two")
    assert cli("undo", "--yes").status == 0
    assert (notes.read_text(), secret.read_text()) == ("one", "KEY=1\n")

    for _ in range(2):
        secret.unlink()
        undone = cli.json("undo", "--yes")
        assert [step["path"] for step in undone["operations"]] == [".env"]
        assert secret.read_text() == "KEY=1\n"
    assert cli("undo", "--yes").status == 4


@pytest.mark.requirement("RB-11", "CP-12")
def test_saving_after_such_an_undo_does_not_end_redo(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    secret, notes, cli = project / ".env", project / "notes.txt", CommandLine(project)
    (project / ".gitignore").write_text(".env\n")
    secret.write_text("KEY=1\n")
    notes.write_text("one")
    cli.save("one")
    assert cli("config", "add", "include", ".env").status == 0
    notes.write_text("two")
    cli.save("two")
    for _ in range(2):
        assert cli("undo", "--yes").status == 0
        assert notes.read_text() == "one"
        cli.save("the same once more")
        assert cli("redo", "--yes").status == 0
        assert (notes.read_text(), secret.read_text()) == ("two", "KEY=1\n")

"""HEAD follows undo and redo, even if work was approved in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("RB-11", "SE-5")
def test_undo_of_a_redo_returns_to_what_was_approved_before_it(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    notes, cli = project / "notes.txt", CommandLine(project)
    for text in ("one", "two"):
        notes.write_text(text)
        cli.save(text, "--name", text)
    notes.write_text("edited")
    assert cli("restore", "one", "--yes").status == 0
    assert cli("undo", "--yes").status == 0
    approved = cli.json("approve")["approved_commit"]
    for _ in range(2):
        assert cli("redo", "--yes").status == 0
        assert (notes.read_text(), cli.json("show", "HEAD")["name"]) == ("one", "one")
        assert cli("undo", "--yes").status == 0
        assert notes.read_text() == "edited"
        assert cli.json("show", "HEAD")["id"] == approved
    assert cli("approve").status == 5
    assert cli("undo", "--yes").status == 0
    assert notes.read_text() == "two"

"""A script overwrites ignored files that nobody named: undo says that these stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.support.scripted_agent import ScriptedAgent

_SCRIPT = "for name in a.py one.json two.json cache.pyc; do echo wrecked > $name; done\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "shop"
    project.mkdir()
    (project / ".gitignore").write_text("*.json\n")
    (project / "wreck.sh").write_text(_SCRIPT)
    for name in ("a.py", "one.json", "two.json", "quiet.json", "cache.pyc"):
        (project / name).write_text("good\n")
    return project


@pytest.mark.requirement("BX-7", "RB-11")
def test_undo_names_ignored_files_that_changed_and_were_in_no_checkpoint(project: Path) -> None:
    cli, agent = CommandLine(project), ScriptedAgent(project)
    agent.start()
    agent.run("sh wreck.sh")
    words = "one.json, two.json are ignored, so not saved and not restored"
    assert words in cli("undo", "--dry-run").out
    undone = cli.json("undo", "--yes")
    assert (project / "a.py").read_text() == "good\n"
    [remark] = [one for one in undone["remarks"] if "ignored" in one]
    assert remark.startswith(words)
    assert "holdfast config add include one.json two.json" in remark
    assert (project / "one.json").read_text() == "wrecked\n"


@pytest.mark.requirement("BX-7")
def test_nothing_is_said_about_ignored_files_that_did_not_change_or_are_saved_now(
    project: Path,
) -> None:
    cli = CommandLine(project)
    first = cli.save("good")
    (project / "a.py").write_text("wrecked\n")
    assert not any("ignored" in one for one in cli.json("restore", first)["remarks"])
    assert cli("config", "add", "include", "*.json").status == 0
    (project / "one.json").write_text("wrecked\n")
    (project / "a.py").write_text("wrecked\n")
    restored = cli.json("restore", first, "--yes")
    assert not any("ignored" in one for one in [*restored["remarks"], *restored["warnings"]])

"""`holdfast demo`: it proves what it shows, and leaves nothing behind."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.interfaces.cli.demonstration import (
    DELETION,
    SHELL_DAMAGE,
    Demonstration,
    contents,
    differences,
    make_project,
    tree_hash,
)
from tests.interfaces.cli.command_line import run


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


@pytest.mark.requirement("CL-1")
def test_every_check_of_the_demo_holds_and_nothing_is_left(
    temporary: Path, holdfast_home: Path
) -> None:
    answer = run("demo")
    assert (answer.status, answer.err) == (0, "")
    assert "✓ All 6 checks passed" in answer.out
    assert f"agent> {DELETION}\n" in answer.out
    assert "     create   .env\n" in answer.out
    assert list(temporary.iterdir()) == list(holdfast_home.iterdir()) == []


@pytest.mark.requirement("CL-1")
def test_the_steps_of_the_demo_are_data_too(temporary: Path) -> None:
    answer = run("demo", "--json").json
    assert answer["ok"] is True
    back = [step for step in answer["steps"] if "tree_hash" in step]
    assert [step["commands"] for step in back] == [
        ["holdfast undo --yes"],
        ["holdfast redo --yes"],
        ["holdfast undo --yes"],
        ["holdfast undo --turn --yes"],
    ]
    for step in back:
        assert step["verified"] is True
        assert step["tree_hash"] == step["expected_tree_hash"]
    undone, redone, again, turn = (step["tree_hash"] for step in back)
    assert undone == again == turn != redone


def test_the_demo_hides_no_step_and_its_numbers_agree(temporary: Path) -> None:
    steps = run("demo", "--json").json["steps"]
    deletion, turn = (step for step in steps if step["changes"])
    assert deletion["commands"] == [DELETION]
    assert {change["change"] for change in deletion["changes"]} == {"removed"}
    deleted = {change["path"] for change in deletion["changes"]}
    assert {".env", "src", "src/auth.py"} < deleted
    undone = steps[steps.index(deletion) + 1]["result"]
    listed = re.findall(r"^  (?:create|mkdir) +(.+)$", undone, re.MULTILINE)
    assert set(listed) == deleted
    assert f"{len(deleted) - 1} files created, 1 directory" in undone
    assert {change["change"] for change in turn["changes"]} == {"added", "modified", "removed"}
    assert turn["commands"][1:] == list(SHELL_DAMAGE)


def test_the_demo_reports_a_project_that_did_not_come_back(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Demonstration._holdfast

    def forgetful(
        self: Demonstration, *arguments: str, stdin: str = ""
    ) -> tuple[float, int, list[str]]:
        if arguments[0] == "redo":
            return 1.0, 0, ["✓ done"]
        return real(self, *arguments, stdin=stdin)

    monkeypatch.setattr(Demonstration, "_holdfast", forgetful)
    answer = run("demo")
    assert answer.status == 1
    assert "✗ Not identical to the independent copy." in answer.out
    assert " checks failed" in answer.out


def test_the_demo_takes_no_arguments() -> None:
    assert run("demo", "now").status == 2


def _shell(command: str) -> Callable[[Path], object]:
    return lambda root: subprocess.run(["/bin/sh", "-ec", command], cwd=root, check=True)


def test_the_second_opinion_sees_every_kind_of_difference(tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.mkdir()
    make_project(original)
    seen = {tree_hash(original)}
    changes: tuple[Callable[[Path], object], ...] = (
        lambda root: (root / "run.sh").chmod(0o700),
        lambda root: (root / "uploads").rmdir(),
        lambda root: (root / "current").unlink(),
        lambda root: (root / "logo.png").write_bytes(b"x"),
        lambda root: (root / ".env").rename(root / "env"),
        lambda root: (root / "new").touch(),
        *(_shell(command) for command in (DELETION, *SHELL_DAMAGE)),
    )
    for number, change in enumerate(changes):
        copy = tmp_path / str(number)
        shutil.copytree(original, copy, symlinks=True)
        assert tree_hash(copy) in seen
        assert differences(contents(original), contents(copy)) == []
        change(copy)
        assert tree_hash(copy) not in seen
        assert differences(contents(original), contents(copy))
        seen.add(tree_hash(copy))

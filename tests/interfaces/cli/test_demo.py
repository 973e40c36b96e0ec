"""`holdfast demo`: it proves what it shows, and leaves nothing behind."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from holdfast.interfaces.cli.demonstration import make_project, ruin, tree_hash
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
    assert "✓ All 5 checks held" in answer.out
    assert list(temporary.iterdir()) == list(holdfast_home.iterdir()) == []


@pytest.mark.requirement("CL-1")
def test_the_steps_of_the_demo_are_data_too(temporary: Path) -> None:
    told = run("demo", "--json").json
    assert told["ok"] is True
    back = [step for step in told["steps"] if "tree_hash" in step]
    assert [step["commands"] for step in back] == [
        ["holdfast restore logout --yes"],
        ["holdfast undo --yes"],
        ["holdfast redo --yes"],
    ]
    for step in back:
        assert step["verified"] is True
        assert step["tree_hash"] == step["expected_tree_hash"]
    assert back[0]["tree_hash"] == back[2]["tree_hash"] != back[1]["tree_hash"]
    ruined = next(step for step in told["steps"] if step["changes"])
    assert {change["change"] for change in ruined["changes"]} == {"added", "modified", "removed"}


def test_the_demo_hides_no_step_and_its_numbers_agree(temporary: Path) -> None:
    told = run("demo", "--json").json["steps"]
    assert told[1]["commands"] == ["holdfast config set include '[\".env\"]'"]
    files = re.match(r"(\d+) files;", told[0]["result"])
    assert files
    assert f": {files[1]} files, {files[1]} added" in told[2]["result"]
    ruined = next(step for step in told if step["changes"])
    taken_back = told[told.index(ruined) + 1]
    removed, changed, added = re.findall(r"(\d+) (?:removed|modified|added)", ruined["result"])
    assert f"({removed} created, {changed} rewritten, {added} deleted)" in taken_back["result"]


def test_the_demo_takes_no_arguments() -> None:
    assert run("demo", "now").status == 2


def test_the_second_opinion_sees_every_kind_of_difference(tmp_path: Path) -> None:
    original = tmp_path / "original"
    original.mkdir()
    make_project(original)
    seen = {tree_hash(original)}
    for number, change in enumerate(
        (
            lambda root: (root / "run.sh").chmod(0o700),
            lambda root: (root / "uploads").rmdir(),
            lambda root: (root / "current").unlink(),
            lambda root: (root / "logo.png").write_bytes(b"x"),
            lambda root: (root / ".env").rename(root / "env"),
            lambda root: (root / "new").touch(),
            ruin,
        )
    ):
        copy = tmp_path / str(number)
        shutil.copytree(original, copy, symlinks=True)
        assert tree_hash(copy) in seen
        change(copy)
        assert tree_hash(copy) not in seen
        seen.add(tree_hash(copy))

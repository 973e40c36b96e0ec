"""Restores of some paths: what is undone afterwards, in which order, and what HEAD means."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import Refused
from holdfast.engine.undo.undo import next_step
from tests.interfaces.cli.command_line import CommandLine
from tests.support.tree_hash import describe, differences

_LINES = [f"line {number}" for number in range(20)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "src" / "a.py").write_text("\n".join(_LINES) + "\n")
    (root / "b.txt").write_text("b\n")
    return root


@pytest.fixture
def cli(project: Path) -> CommandLine:
    """With two checkpoints, one and two; the workspace is as in the second."""
    cli = CommandLine(project)
    cli.save("first", "--name", "one")
    changed = ["changed", *_LINES[1:-1], "changed too"]
    (project / "src" / "a.py").write_text("\n".join(changed) + "\n")
    (project / "b.txt").write_text("bb\n")
    cli.save("second", "--name", "two")
    return cli


_RESTORES = {
    "path": ("one", "src/a.py"),
    "directory": ("one", "src"),
    "hunk": ("one", "src/a.py", "--hunk", "1"),
}


@pytest.mark.requirement("RB-11", "RB-7")
@pytest.mark.parametrize("chosen", _RESTORES.values(), ids=_RESTORES)
def test_edits_after_a_restore_of_some_paths_are_undone_before_it(
    cli: CommandLine, project: Path, chosen: tuple[str, ...]
) -> None:
    (project / "mine.txt").write_text("unsaved before\n")
    states = [describe(project)]
    cli.json("restore", *chosen, "--yes")
    states.append(describe(project))
    (project / "mine.txt").write_text("unsaved after\n")
    (project / "src" / "a.py").write_text("rewritten\n")
    states.append(describe(project))

    undone = [cli.json("undo", "--yes")["undone"]]
    assert differences(describe(project), states[1]) == []
    undone.append(cli.json("undo", "--yes")["undone"])
    assert differences(describe(project), states[0]) == []
    assert [one["type"] for one in undone] == ["edits", "restore"]
    assert f"the restore of {chosen[1]} from one" in undone[0]["what"].replace("parts of ", "")
    assert undone[1]["what"] in undone[0]["what"]

    for state in states[1:]:
        cli.json("redo", "--yes")
        assert differences(describe(project), state) == []


@pytest.mark.requirement("RB-11", "RB-7")
def test_edits_after_a_restore_of_some_paths_that_were_saved_are_a_step_too(
    cli: CommandLine, project: Path
) -> None:
    before = describe(project)
    cli.json("restore", "one", "b.txt", "--yes")
    restored = describe(project)
    (project / "b.txt").write_text("mine\n")
    cli.save("with my edit")
    cli.json("undo", "--yes")
    assert differences(describe(project), restored) == []
    cli.json("undo", "--yes")
    assert differences(describe(project), before) == []


@pytest.mark.requirement("RB-2", "RB-12", "CP-4")
@pytest.mark.parametrize("chosen", _RESTORES.values(), ids=_RESTORES)
def test_head_stays_where_it_is_after_a_restore_of_some_paths(
    cli: CommandLine, project: Path, chosen: tuple[str, ...]
) -> None:
    answer = cli("restore", *chosen, "--yes")
    assert "HEAD is still two" in answer.out

    def heads() -> set[str]:
        marked = [one["id"] for one in cli.json("log") if one["is_head"]]
        return {cli.json("status")["head"]["id"], cli.json("show", "HEAD")["id"], *marked}

    two = cli.json("show", "two")["id"]
    assert heads() == {two}
    assert [one["path"] for one in cli.json("diff")["changes"]] == ["src/a.py"]
    restored = describe(project)
    (project / "mine.txt").write_text("mine\n")
    cli.json("undo", "--yes")
    assert heads() == {two}
    cli.json("restore", "HEAD", "--yes")
    assert cli.json("diff")["changes"] == []
    cli.json("undo", "--yes")
    assert differences(describe(project), restored) == []
    cli.json("undo", "--yes")
    assert heads() == {two}
    assert cli.json("diff")["changes"] == []


@pytest.mark.requirement("RB-2")
def test_head_stays_where_it_is_when_the_checkpoint_that_paths_came_from_is_deleted(
    cli: CommandLine, project: Path
) -> None:
    cli.json("restore", "one", "b.txt", "--yes")
    cli.json("delete", "one", "--yes")
    assert cli.json("show", "HEAD")["name"] == "two"
    assert cli.json("status")["head"]["name"] == "two"
    session = cli.json("status")["session_id"]
    assert cli.json("--session", session, "show", "HEAD")["name"] == "two"
    cli.json("undo", "--yes")
    assert (project / "b.txt").read_text() == "bb\n"


@pytest.mark.requirement("RB-2", "RB-7")
def test_the_record_of_a_restore_of_some_paths_has_what_the_workspace_was(
    cli: CommandLine, project: Path
) -> None:
    (project / "mine.txt").write_text("unsaved\n")
    cli.json("restore", "one", "b.txt", "--yes")
    then = describe(project)
    record = cli.json("log", "--records")[0]["id"]
    cli.json("restore", "one", "--yes")
    cli.json("restore", record, "--yes")
    assert differences(describe(project), then) == []


@pytest.mark.requirement("RB-11")
@pytest.mark.parametrize("words", [("HEAD",), ("two",), ("HEAD", "b.txt")])
def test_undo_goes_on_after_a_restore_that_changed_nothing_was_undone_and_redone(
    cli: CommandLine, project: Path, words: tuple[str, ...]
) -> None:
    two = describe(project)
    cli.json("restore", *words, "--yes")
    (project / "b.txt").touch()
    (project / "mine.txt").write_text("mine\n")
    mine = describe(project)
    cli.json("undo", "--yes")
    assert differences(describe(project), two) == []
    cli.json("redo", "--yes")
    assert differences(describe(project), mine) == []
    seen = []
    for _ in range(3):
        seen.append(cli.json("undo", "--yes")["undone"]["type"])
    assert seen == ["edits", "restore", "edits"]
    assert (project / "b.txt").read_text() == "b\n"


@pytest.mark.requirement("RB-11")
def test_undo_goes_on_when_what_was_saved_before_a_restore_was_deleted(
    cli: CommandLine, project: Path
) -> None:
    two = describe(project)
    safety = cli.json("restore", "one", "--yes")["safety_checkpoint"]
    cli.json("delete", safety, "--yes")
    cli.json("undo", "--yes")
    assert differences(describe(project), two) == []
    cli.json("undo", "--yes")
    assert (project / "b.txt").read_text() == "b\n"


@pytest.mark.requirement("RB-11")
def test_undo_goes_on_backwards_when_what_it_went_back_to_was_deleted(
    cli: CommandLine, project: Path
) -> None:
    cli.json("restore", "one", "src", "--yes")
    cli.save("third", "--name", "three")
    (project / "b.txt").write_text("four\n")
    cli.save("fourth")
    cli.json("undo", "--yes")
    cli.json("delete", "three", "--yes")
    cli.json("undo", "--yes")
    assert (project / "b.txt").read_text() == "bb\n"
    assert "changed too" in (project / "src" / "a.py").read_text()


@pytest.mark.requirement("RB-11")
@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_what_another_process_did_after_the_look_is_not_undone(
    cli: CommandLine, project: Path, verb: str
) -> None:
    if verb == "redo":
        cli.json("undo", "--yes")
    with open_workspace(project, create=False) as opened:
        engine = opened.engine
        step = engine.last_step() if verb == "undo" else next_step(engine.vault)
        (project / "b.txt").write_text("by another\n")
        cli.save("by another", "--session", "another")
        with pytest.raises(Refused, match=f"nothing was {verb.replace('do', 'done')}") as refused:
            engine.restore(step.request)
    assert refused.value.hint == "see what changed: holdfast log"
    assert (project / "b.txt").read_text() == "by another\n"

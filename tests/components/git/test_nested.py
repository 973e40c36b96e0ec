"""The git state of submodules and nested clones: saved when asked for, and brought back exactly."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.components.git.nested_repositories import (
    facts_of,
    nested,
    pictures,
    references,
    with_nested,
)
from tests.components.git.repositories import (
    ACTIONS,
    Picture,
    commit,
    conflicted_merge,
    deletes_the_branch,
    git,
    mid_rebase,
    missing_objects,
    new_repository,
    picture,
    resets,
    with_history,
    write,
)
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure

EXACT = {"git": "exact"}


@pytest.mark.requirement("GT-1", "GT-2", "GT-6", "BX-6")
@pytest.mark.parametrize("action", ACTIONS)
def test_what_an_agent_does_in_nested_repositories_is_rolled_back_and_undone(
    tmp_path: Path, action: str
) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("before")
        assert saved.degraded == ()
        before = pictures(place)
        for repository in nested(place):
            ACTIONS[action](repository)
        after = pictures(place)
        assert after[1:] != before[1:]
        plan = session.plan_restore(saved.checkpoint.id, components=EXACT)
        lines = [line for step in plan.components for line in step.actions]
        assert any(line.startswith("lib: ") for line in lines), lines
        assert any(line.startswith("vendor/tool: ") for line in lines), lines
        assert pictures(place) == after, "a preview changes nothing"
        session.restore_checkpoint(saved.checkpoint.id, components=EXACT)
        for seen in zip(before, after, pictures(place), strict=True):
            require_exact(*seen)
        for repository in nested(place):
            assert missing_objects(repository) == ""
        session.undo()
        assert pictures(place) == after
        session.redo()
        for seen in zip(before, after, pictures(place), strict=True):
            require_exact(*seen)


def status(seen: Picture) -> list[str]:
    """Without the upstream of a branch, which is config, and goes with the branch."""
    signs = ("# branch.upstream", "# branch.ab")
    return [line for line in seen.status.splitlines() if not line.startswith(signs)]


def require_exact(before: Picture, after: Picture, now: Picture) -> None:
    """HEAD, its branch, index and operation as before; everything else as the agent left it."""
    assert (now.head, now.index, now.operation) == (before.head, before.index, before.operation)
    assert status(now) == status(before)
    assert now.untouched == after.untouched
    branch = before.head.removeprefix("ref: ").strip()
    assert now.refs.get(branch) == before.refs.get(branch)
    assert {**now.refs, branch: ""} == {**after.refs, branch: ""}, "other branches stay"


@pytest.mark.requirement("GT-1", "GT-2")
@pytest.mark.parametrize("scene", [conflicted_merge, mid_rebase])
def test_an_operation_under_way_in_a_nested_repository_goes_on(
    tmp_path: Path, scene: object
) -> None:
    place = with_history(tmp_path / "project")
    scene(place / "inner")  # type: ignore[operator]
    configure(place, git_nested="on")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("in the middle of it")
        before = picture(place / "inner")
        resets(place / "inner")
        session.restore_checkpoint(saved, components=EXACT)
        assert picture(place / "inner").operation == before.operation
        assert picture(place / "inner").status == before.status


@pytest.mark.requirement("GT-1")
def test_unless_asked_for_their_git_state_is_neither_saved_nor_touched(tmp_path: Path) -> None:
    place = with_nested(tmp_path / "project")
    configure(place, git_nested="off")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        commit(place / "lib", "code.txt", "an agent was here\n")
        now = picture(place / "lib")
        session.restore_checkpoint(saved, components=EXACT)
        seen = picture(place / "lib")
        assert (seen.head, seen.refs, seen.index) == (now.head, now.refs, now.index)
        assert (place / "lib/code.txt").read_text() == "ahead of what the index says\n"
    assert references(place / "lib") == []


@pytest.mark.requirement("GT-1", "PF-1")
def test_no_more_is_said_once_they_are_no_longer_asked_for(tmp_path: Path) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.save_checkpoint("with them").checkpoint
        again = session.save_checkpoint("nothing changed").checkpoint
        for _ in range(3):  # until the clock can tell the last change from a further one
            again = session.save_checkpoint("nothing changed").checkpoint
        assert first.components is not None
        assert "nested" in facts_of(session, again.id)
    configure(place, git_nested="off")
    with SessionCheckpointer(place, "s") as session:
        last = session.save_checkpoint("without them").checkpoint
        assert "nested" not in facts_of(session, last.id)
        commit(place / "lib", "code.txt", "an agent was here\n")
        session.restore_checkpoint(first.id, components=EXACT)
        assert "ahead" in git(place / "lib", "log", "-1", "--format=%s")
        session.undo()
        assert "an agent" in git(place / "lib", "log", "-1", "--format=%s")


@pytest.mark.requirement("GT-1", "ST-5")
def test_commits_are_kept_alive_there_and_released_with_the_last_checkpoint(tmp_path: Path) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("one")
        assert [len(references(at)) for at in (place, *nested(place))] == [1, 1, 1]
        write(place / "code.txt", "another file\n")
        session.checkpoint("nothing in git has changed")
        assert [len(references(at)) for at in (place, *nested(place))] == [1, 1, 1]
        lost = git(place / "lib", "rev-parse", "HEAD").strip()
        git(place / "lib", "reset", "-q", "--hard", "HEAD~1")
        session.checkpoint("after a reset")
        assert [len(references(at)) for at in (place, *nested(place))] == [1, 2, 1]
        git(place / "lib", "reflog", "expire", "--expire=now", "--all")
        git(place / "lib", "gc", "-q", "--prune=now")
        assert git(place / "lib", "cat-file", "-t", lost).strip() == "commit"
        session.purge(first, "HEAD~1", force=True)
        assert len(references(place / "lib")) == 1
        git(place / "lib", "gc", "-q", "--prune=now")
        assert git(place / "lib", "cat-file", "-t", lost, check=False) == ""
        # The working tree of a submodule may be gone when its checkpoints go.
        shutil.rmtree(place / "lib")
        modules = place / ".git/modules/lib"
        assert (
            list((modules / "refs/holdfast").rglob("*"))
            or "refs/holdfast" in (modules / "packed-refs").read_text()
        )
        session.purge("HEAD", force=True)
        assert [references(at) for at in (place, place / "vendor/tool")] == [[], []]
        assert not [path for path in (modules / "refs/holdfast").rglob("*") if path.is_file()]
        assert "refs/holdfast" not in (modules / "packed-refs").read_text()


@pytest.mark.requirement("GT-2", "RB-2")
def test_a_submodule_whose_directory_was_removed_is_one_again_and_undo_removes_it(
    tmp_path: Path,
) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        before = pictures(place)
        commit(place / "lib", "code.txt", "an agent was here\n")
        shutil.rmtree(place / "lib")
        modules = place / ".git/modules/lib"
        after = (picture_of_directory(modules), picture(place))
        plan = session.plan_restore(saved, components=EXACT)
        lines = [line for step in plan.components for line in step.actions]
        assert "lib: its .git file, now missing, is restored" in lines
        assert any("1 commit leaves" in line for line in lines), lines
        session.restore_checkpoint(saved, components=EXACT)
        assert pictures(place) == before
        session.undo()
        assert (picture_of_directory(modules), picture(place)) == after
        assert not (place / "lib").exists()
        session.redo()
        assert pictures(place) == before


@pytest.mark.requirement("GT-2")
def test_a_submodule_that_was_unregistered_is_not_said_to_have_lost_its_commits(
    tmp_path: Path,
) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        git(place, "submodule", "deinit", "-f", "lib")
        plan = session.plan_restore(saved, components=EXACT)
        lines = [line for step in plan.components for line in step.warnings]
        assert not [line for line in lines if "gone" in line], lines
        assert any("git submodule update --init" in line for line in lines), lines


def picture_of_directory(git_dir: Path) -> object:
    refs = git(git_dir, "--git-dir=.", "--work-tree=.", "for-each-ref", "refs/heads")
    return (git_dir / "HEAD").read_text(), (git_dir / "index").read_bytes(), refs


@pytest.mark.requirement("GT-2", "BX-7")
def test_a_clone_that_was_deleted_is_reported_and_the_rest_comes_back(tmp_path: Path) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        before = pictures(place)[:2]
        files = (place / "vendor/tool/docs/guide.txt").read_bytes()
        resets(place / "lib")
        shutil.rmtree(place / "vendor/tool")
        plan = session.plan_restore(saved, components=EXACT)
        gone, changed = sorted(text for text in plan.warnings if "vendor/tool" in text)
        assert "its commits are gone" in gone
        assert changed.endswith("in the repository vendor/tool")
        session.restore_checkpoint(saved, components=EXACT)
        seen = picture(place)
        assert (seen.head, seen.index, seen.refs) == (
            before[0].head,
            before[0].index,
            before[0].refs,
        )
        assert picture(place / "lib").head == before[1].head
        assert picture(place / "lib").refs == before[1].refs
        assert (place / "vendor/tool/docs/guide.txt").read_bytes() == files
        assert not (place / "vendor/tool/.git").exists()


@pytest.mark.requirement("GT-2")
@pytest.mark.parametrize("mode", ["branch", "revert"])
def test_other_modes_leave_them_alone_and_say_so(tmp_path: Path, mode: str) -> None:
    place = with_nested(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        saved = session.checkpoint("before")
        plan = session.plan_restore(saved, components={"git": mode})
        assert not any("kept as it is" in text for text in plan.warnings)
        deletes_the_branch(place / "lib")
        now = picture(place / "lib")
        plan = session.plan_restore(saved, components={"git": mode})
        (warning,) = [text for text in plan.warnings if "kept as it is" in text]
        assert warning == "git: the git state of lib is kept as it is; to restore it: --git exact"
        session.restore_checkpoint(saved, components={"git": mode})
        seen = picture(place / "lib")
        assert (seen.head, seen.refs, seen.index) == (now.head, now.refs, now.index)


@pytest.mark.requirement("GT-1", "GT-6")
def test_a_workspace_that_is_no_repository_itself_has_those_in_it(tmp_path: Path) -> None:
    place = tmp_path / "projects"
    for name in ("one", "two"):
        with_history(place / name)
    write(place / "notes.txt", "notes\n")
    configure(place, git_nested="on")
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("before")
        assert saved.degraded == ()
        before = [picture(place / "one"), picture(place / "two")]
        resets(place / "one")
        commit(place / "two", "code.txt", "an agent was here\n")
        after = [picture(place / "one"), picture(place / "two")]
        warnings = session.plan_restore(saved.checkpoint.id, components=EXACT).warnings
        assert [text for text in warnings if "repository" in text] == [
            f"this changes 1 file in the repository {name}" for name in ("one", "two")
        ]
        session.restore_checkpoint(saved.checkpoint.id, components=EXACT)
        for seen in zip(before, after, (picture(place / n) for n in ("one", "two")), strict=True):
            require_exact(*seen)
        session.undo()
        assert [picture(place / "one"), picture(place / "two")] == after
    cli = CommandLine(place)
    shown = cli("show", "--session", "s", saved.checkpoint.id).out
    assert "one: main@" in shown
    assert "two: main@" in shown


@pytest.mark.requirement("GT-6")
def test_a_workspace_without_any_repository_saves_as_before(tmp_path: Path) -> None:
    place = tmp_path / "plain"
    write(place / "notes.txt", "notes\n")
    configure(place, git_nested="on")
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("why")
        assert saved.degraded == ()
        new_repository(place / "inner")
        commit(place / "inner", "code.txt", "one\n")
        assert session.save_checkpoint("with one").degraded == ()
        session.restore_checkpoint(saved.checkpoint.id, components=EXACT)

"""A plan names its target, what is noted about it, and the content of each step on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused
from tests.support.hostile_trees import fill, git

pytestmark = [pytest.mark.requirement("RB-1"), pytest.mark.both_stores]


def test_a_plan_names_its_target_and_the_annotations_on_it(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        fill(workspace / "file", b"2")
        assert session.plan_restore(first).annotations == ()
        session.annotate(first, "the login works here")
        plan = session.plan_restore(first)
        assert plan.target is not None
        assert (plan.target.id, plan.annotations) == (first, ("the login works here",))


def test_a_plan_names_every_operation_the_files_their_sizes_and_uncommitted_changes(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "rewritten", b"12345")
    fill(workspace / "deleted", b"123")
    fill(workspace / "mode", b"1")
    (workspace / "link").symlink_to("here")
    (workspace / "empty").mkdir()
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "one")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        fill(workspace / "rewritten", b"other content")
        (workspace / "deleted").unlink()
        (workspace / "mode").chmod(0o755)
        (workspace / "link").unlink()
        (workspace / "link").symlink_to("there")
        (workspace / "empty").rmdir()
        fill(workspace / "new/file", b"new")
        plan = session.plan_restore(first)
    assert {(step.type.value, step.path) for step in plan.steps} == {
        ("restore", b"rewritten"),
        ("create", b"deleted"),
        ("chmod", b"mode"),
        ("relink", b"link"),
        ("mkdir", b"empty"),
        ("delete", b"new/file"),
        ("rmdir", b"new"),
    }
    assert set(plan.affected_files) == {b"rewritten", b"deleted", b"mode", b"link", b"new/file"}
    assert plan.bytes_to_write == len(b"12345") + len(b"123")
    assert [text for text in plan.warnings if "rewritten" in text and "git" in text]


def test_the_content_of_each_step_is_read_when_asked_for(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "changed", b"old")
    fill(workspace / "deleted", b"gone")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        fill(workspace / "changed", b"new")
        (workspace / "deleted").unlink()
        fill(workspace / "sub/made", b"made")
        plan = session.plan_restore(first)
        contents = {(s.type.value, s.path): session.step_contents(s) for s in plan.steps}
    assert contents == {
        ("restore", b"changed"): (b"old", b"new"),
        ("create", b"deleted"): (b"gone", None),
        ("delete", b"sub/made"): (None, b"made"),
        ("rmdir", b"sub"): (None, None),
    }
    assert set(plan.affected_files) == {b"changed", b"deleted", b"sub/made"}


@pytest.mark.requirement("CP-14")
def test_the_content_of_an_ignored_file_is_not_given(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "secret", b"old")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        fill(workspace / "secret", b"new")
        plan = session.plan_restore(first)
        fill(workspace / ".gitignore", b"secret\n")
        with pytest.raises(Refused, match="secret"):
            session.step_contents(plan.steps[0])

"""Work of checkpoints becomes one commit of git, and nothing else changes.

What was committed is read back with plain git; files are compared with a picture taken before.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused
from holdfast.domain.git.commits import LeftOut
from tests.components.git.accepted_work import committed, files, work_to_accept
from tests.components.git.repositories import (
    SCENES,
    commit,
    git,
    new_repository,
    picture,
    submodule,
    with_history,
    write,
)


@pytest.mark.requirement("GT-3")
def test_a_range_becomes_one_commit_and_no_file_is_touched(place: Path) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "code.txt", "three\n")
        session.checkpoint("Let the code count to three\n\nBecause two was not enough.")
        write(place / "new/added.txt", "added\n")
        (place / "other.txt").unlink()
        (place / "docs/guide.txt").chmod(0o755)
        session.checkpoint("Tidy up")
        before, before_files, head = picture(place), files(place), git(place, "rev-parse", "HEAD")
        done = session.accept()
    assert files(place) == before_files
    now = picture(place)
    assert (now.untouched, now.head) == (before.untouched, before.head)
    assert {r: o for r, o in now.refs.items() if r != "refs/heads/main"} == {
        r: o for r, o in before.refs.items() if r != "refs/heads/main"
    }
    assert git(place, "rev-parse", "HEAD", "HEAD~1").split() == [done.commit, head.strip()]
    assert committed(place) == {
        "code.txt": "M",
        "docs/guide.txt": "M",
        "new/added.txt": "A",
        "other.txt": "D",
    }
    assert git(place, "status", "--porcelain") == ""
    assert git(place, "log", "-1", "--format=%B").strip() == (
        "Tidy up\n\n- Let the code count to three\n  Because two was not enough.\n- Tidy up"
    )
    assert git(place, "log", "-1", "--format=%an %ae").strip() == "Test test@example.invalid"
    assert git(place, "fsck", "--strict") == ""
    git(place, *done.undo.split()[1:])
    assert git(place, "rev-parse", "HEAD") == head
    assert files(place) == before_files


@pytest.mark.requirement("GT-3")
def test_only_what_the_range_changed_is_committed(place: Path) -> None:
    write(place / "other.txt", "edited before anything was saved\n")
    with SessionCheckpointer(place, "s") as session:
        start = session.checkpoint("how it began")
        write(place / "code.txt", "three\n")
        middle = session.checkpoint("to three")
        write(place / "code.txt", "four\n")
        write(place / "late.txt", "late\n")
        session.checkpoint("to four")
        session.accept(f"{start}..{middle}")
        assert committed(place) == {"code.txt": "M"}
        assert git(place, "show", "HEAD:code.txt") == "three\n"
        assert (place / "code.txt").read_text() == "four\n"
        status = git(place, "status", "--porcelain").splitlines()
        assert status == [" M code.txt", " M other.txt", "?? late.txt"]
        done = session.accept()
        assert committed(place) == {"code.txt": "M", "late.txt": "A"}
        assert done.message == "to four\n", "the next one begins where the last one ended"


@pytest.mark.requirement("GT-3")
def test_without_a_range_it_begins_at_the_last_approval(place: Path) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "code.txt", "three\n")
        session.approve("three is good")
        write(place / "other.txt", "five\n")
        session.checkpoint("five")
        done = session.accept()
        assert committed(place) == {"other.txt": "M"}
        assert any("initial..HEAD" in warning for warning in done.warnings)
        session.accept("initial..HEAD")
        assert committed(place) == {"code.txt": "M"}


@pytest.mark.requirement("GT-3")
def test_an_approved_round_is_accepted_as_a_whole(place: Path) -> None:
    with work_to_accept(place, "three") as session:
        session.approve("three is good")
        assert session.accept().warnings == ()
        assert committed(place) == {"code.txt": "M"}


@pytest.mark.requirement("GT-3")
def test_what_is_staged_stays_staged_and_is_not_committed(place: Path) -> None:
    with work_to_accept(place, "three") as session:
        write(place / "docs/guide.txt", "staged by hand\n")
        write(place / "mine.txt", "staged by hand\n")
        git(place, "add", "docs/guide.txt", "mine.txt")
        git(place, "add", "code.txt")  # the same as in the checkpoint: no clash
        session.accept()
    assert committed(place) == {"code.txt": "M"}
    assert git(place, "diff", "--cached", "--name-status").splitlines() == [
        "M\tdocs/guide.txt",
        "A\tmine.txt",
    ]
    assert git(place, "show", ":docs/guide.txt") == "staged by hand\n"


@pytest.mark.requirement("GT-3")
@pytest.mark.parametrize("staged", ["content", "removal", "directory"])
def test_a_clash_with_what_is_staged_is_refused_and_nothing_changes(
    place: Path, staged: str
) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "code.txt", "three\n")
        write(place / "thing", "a file\n")
        session.checkpoint("three")
        if staged == "content":
            write(place / "code.txt", "something else\n")
            git(place, "add", "code.txt")
        elif staged == "removal":
            git(place, "rm", "-q", "--cached", "code.txt")
        else:
            (place / "thing").unlink()
            write(place / "thing/inside.txt", "a directory\n")
            git(place, "add", "thing/inside.txt")
        before = picture(place)
        with pytest.raises(Refused, match="staged with content that differs") as refused:
            session.accept()
        assert "git restore --staged" in (refused.value.hint or "")
        assert picture(place) == before
        planned = session.accept(dry_run=True).plan
        assert [o.reason for o in planned.obstacles] == [refused.value.message]


@pytest.mark.requirement("GT-3", "GT-6")
@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        ("conflicted_merge", "a merge is in progress"),
        ("mid_rebase", "a rebase is in progress"),
        ("bisecting", "a bisect is in progress"),
        ("detached", "HEAD is detached"),
    ],
)
def test_it_is_refused_with_the_way_out_where_a_commit_would_go_astray(
    tmp_path: Path, scene: str, reason: str
) -> None:
    place = tmp_path / "project"
    SCENES[scene](place)
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "fresh.txt", "fresh\n")
        session.checkpoint("fresh")
        before = picture(place)
        with pytest.raises(Refused, match=reason) as refused:
            session.accept()
        assert refused.value.hint
        assert picture(place) == before


@pytest.mark.requirement("GT-3", "GT-6")
def test_the_first_commit_of_a_repository_holds_everything(tmp_path: Path) -> None:
    place = new_repository(tmp_path / "project")
    write(place / ".gitignore", "*.log\n")
    write(place / "code.txt", "first\n")
    (place / "link").symlink_to("code.txt")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("A first state")
        done = session.accept()
        assert git(place, "log", "--format=%H %P %s").strip() == f"{done.commit}  A first state"
        assert git(place, "ls-files").split() == [".gitignore", "code.txt", "link"]
        assert git(place, "status", "--porcelain") == ""
        git(place, *done.undo.split()[1:])
        assert git(place, "rev-parse", "-q", "--verify", "HEAD", check=False) == ""
        assert (place / "code.txt").read_text() == "first\n"


@pytest.mark.requirement("GT-3")
def test_ignored_paths_are_left_out_and_listed(place: Path) -> None:
    write(place / ".gitignore", "*.log\n/secret/\n")
    commit(place, "tracked.log", "x\n")
    git(place, "add", "-f", "tracked.log")
    git(place, "commit", "-qm", "tracked although ignored")
    with SessionCheckpointer(place, "s") as session:
        session.opened.settings.set("include", ["*.log", "secret/**"])
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "run.log", "noise\n")
        write(place / "tracked.log", "y\n")
        write(place / "secret/key", "k\n")
        write(place / "code.txt", "three\n")
        session.checkpoint("three")
        done = session.accept()
    assert committed(place) == {"code.txt": "M", "tracked.log": "M"}
    left = {path.path: path.reason for path in done.plan.left_out}
    assert left == {b"run.log": LeftOut.IGNORED, b"secret/key": LeftOut.IGNORED}


@pytest.mark.requirement("GT-3", "GT-6")
def test_nested_repositories_and_submodules_are_left_out_and_listed(tmp_path: Path) -> None:
    place = tmp_path / "project"
    submodule(place)
    with_history(place / "nested")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "lib/code.txt", "in the submodule\n")
        write(place / "nested/code.txt", "in the nested one\n")
        write(place / "code.txt", "three\n")
        session.checkpoint("three")
        done = session.accept()
    assert committed(place) == {"code.txt": "M"}
    assert {path.path for path in done.plan.left_out} == {b"lib/code.txt", b"nested/code.txt"}
    assert "160000" in git(place, "ls-files", "-s", "lib")


@pytest.mark.requirement("GT-3")
def test_a_file_that_took_the_place_of_a_directory_is_committed_as_such(place: Path) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        shutil.rmtree(place / "docs")
        (place / "docs").symlink_to("code.txt")
        (place / "other.txt").unlink()
        write(place / "other.txt/inside.txt", "a directory now\n")
        session.checkpoint("the other way round")
        session.accept()
    assert committed(place) == {
        "docs": "A",
        "docs/guide.txt": "D",
        "other.txt": "D",
        "other.txt/inside.txt": "A",
    }
    assert git(place, "status", "--porcelain") == ""

"""Repositories that git itself has trouble with: files are saved, and the trouble has a name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.components.git.operation_files import put_files
from holdfast.domain.errors import RestoreConflict, RestoreFailed
from holdfast.domain.outcomes import SaveOutcome
from tests.components.git.repositories import (
    commit,
    copied,
    git,
    new_repository,
    picture,
    with_history,
    write,
)

EXACT = {"git": "exact"}


def saved(place: Path) -> SaveOutcome:
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("why")
        assert outcome.checkpoint.files > 0
        assert outcome.checkpoint.partial is bool(outcome.degraded)
        return outcome


@pytest.mark.requirement("GT-6")
def test_without_git_everything_that_can_be_read_is_saved_and_the_rest_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("why")
        (degraded,) = outcome.degraded
        assert degraded == (
            "git: git is not installed; install git, or turn its component off: "
            """holdfast config set components '["agents", "postgres", "external"]'"""
        )
        with pytest.raises(RestoreConflict, match="git is not installed"):
            session.restore_checkpoint(outcome.checkpoint.id, components=EXACT)
        write(place / "code.txt", "changed\n")
        assert session.restore(outcome.checkpoint.id) == 1
        monkeypatch.setenv("PATH", path)


@pytest.mark.requirement("GT-6")
def test_a_program_named_git_in_the_workspace_is_never_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    trap = tmp_path / "sprung"
    write(place / "git", f"#!/bin/sh\ntouch {trap}\n")
    (place / "git").chmod(0o755)
    monkeypatch.setenv("PATH", ".:" + os.environ["PATH"] + "::")
    monkeypatch.chdir(place)
    assert saved(place).degraded == ()
    assert not trap.exists()


@pytest.mark.requirement("GT-6")
@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("HEAD", None, "HEAD is missing"),
        ("HEAD", b"", "HEAD"),
        ("HEAD", b"garbage\n", "'HEAD' contains no commit id: 'garbage'"),
        ("HEAD", b"ref: ../../escape\n", "HEAD"),
        ("HEAD", b"x" * 100_000, "too large"),
        ("refs/heads/main", b"not a commit\n", "main"),
        ("refs/heads/main", b"0123456789012345678901234567890123456789\n", "git fsck"),
        ("index", b"DIRC garbage", "index"),
        ("index", b"", "index"),
        ("objects", None, "git"),
    ],
)
def test_a_damaged_repository_is_named_and_files_are_saved(
    tmp_path: Path, path: str, content: bytes | None, said: str
) -> None:
    place = with_history(tmp_path / "project")
    broken = place / ".git" / path
    if content is not None:
        broken.write_bytes(content)
    elif broken.is_dir():
        for inside in sorted(broken.rglob("*"), reverse=True):
            inside.rmdir() if inside.is_dir() else inside.unlink()
    else:
        broken.unlink()
    degraded = saved(place).degraded
    assert [text for text in degraded if said in text]
    assert all(text.startswith("git: ") and "b'" not in text for text in degraded)


@pytest.mark.requirement("GT-6")
def test_a_special_file_in_the_place_of_an_index_holds_nothing_up(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    (place / ".git/index").unlink()
    os.mkfifo(place / ".git/MERGE_HEAD")
    os.mkfifo(place / ".git/ORIG_HEAD.lock")
    assert saved(place).checkpoint.files == 3


@pytest.mark.requirement("GT-6")
def test_a_lock_that_a_crashed_git_left_is_named_and_stops_only_a_restore_of_git(
    tmp_path: Path,
) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        commit(place, "code.txt", "three\n")
        lock = place / ".git/index.lock"
        lock.write_bytes(b"")
        os.utime(lock, (1, 1))
        before = picture(place)
        assert "index.lock" in session.save_checkpoint("now").degraded[0]
        with pytest.raises(RestoreConflict, match=r"index\.lock"):
            session.restore_checkpoint(first, components=EXACT)
        assert picture(place) == before
        lock.unlink()
        session.restore_checkpoint(first, components=EXACT)
        assert git(place, "log", "--format=%s", "-1") == "code.txt: two\n"


@pytest.mark.requirement("GT-6")
def test_a_repository_of_another_user_is_refused_by_git_and_saved_by_us(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    for path in (place, *place.rglob("*")):
        os.lchown(path, 12345, 12345)
    (degraded,) = saved(place).degraded
    assert "dubious ownership" in degraded
    assert f"git config --global --add safe.directory {place}" in degraded


@pytest.mark.requirement("GT-6")
def test_a_repository_of_another_user_above_the_workspace_is_none_of_our_business(
    tmp_path: Path,
) -> None:
    above = with_history(tmp_path / "above")
    place = above / "inside"
    write(place / "code.txt", "x\n")
    assert saved(place).checkpoint.components is not None
    for path in (above / ".git", *(above / ".git").rglob("*")):
        os.lchown(path, 12345, 12345)
    outcome = saved(place)
    assert (outcome.degraded, outcome.checkpoint.components) == ((), None)


@pytest.mark.requirement("GT-6", "GT-2")
def test_a_workspace_below_the_top_of_its_repository_has_its_git_state(tmp_path: Path) -> None:
    top = with_history(tmp_path / "top")
    place = top / "docs"
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        before = picture(top)
        commit(top, "docs/guide.txt", "changed\n")
        session.restore_checkpoint(first, components=EXACT)
    after = picture(top)
    assert (after.head, after.refs, after.index) == (before.head, before.refs, before.index)
    assert (place / "guide.txt").read_text() == "guide\n"


@pytest.mark.requirement("GT-6")
def test_hostile_settings_and_filters_of_a_repository_run_nothing(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    trap = tmp_path / "sprung"
    run = f"touch {trap}"
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "diff.external",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "gpg.program",
        "sequence.editor",
        "alias.update-ref",
        "uploadpack.packObjectsHook",
    ):
        git(place, "config", key, run)
    git(place, "config", "log.showSignature", "true")
    for name in ("reference-transaction", "post-index-change", "post-checkout", "pre-commit"):
        hook = place / ".git/hooks" / name
        write(hook, f"#!/bin/sh\n{run}\n")
        hook.chmod(0o755)
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        write(place / ".gitattributes", "* filter=evil diff=evil\n")
        write(place / "code.txt", "six\n")
        (place / ".git/refs/heads/main").write_text(git(place, "rev-parse", "main~1"))
        second = session.save_checkpoint("touched")
        assert second.degraded == ()
        for mode in ("exact", "branch", "revert"):
            session.plan_restore(first, components={"git": mode})
            session.restore_checkpoint(first, components={"git": mode})
            session.undo()
    assert not trap.exists()


@pytest.mark.requirement("GT-6")
def test_odd_names_are_inert(tmp_path: Path) -> None:
    place = with_history(tmp_path / "pro ject;$(touch x)\n-rf:")
    for name in ("--help", "-rf", "new\nline", "quo'te\"", "$(id)", "ümläut"):
        write(place / name, name)
    (place / os.fsdecode(b"\xff\xfe")).write_bytes(b"not text")
    git(place, "add", "-A")
    branch = "feature/$(touch${IFS}y);'ü"
    git(place, "checkout", "-qb", branch)
    with SessionCheckpointer(place, "s") as session:
        before = picture(place)
        first = session.save_checkpoint("before; $(touch z)", name="; --force")
        assert first.degraded == ()
        git(place, "commit", "-qm", "--all\n\n-m x")
        git(place, "checkout", "-q", "main")
        git(place, "branch", "-qD", branch)
        session.restore_checkpoint(first.checkpoint.id, components=EXACT)
        after = picture(place)
    assert (after.head, after.index, after.refs) == (before.head, before.index, before.refs)
    assert sorted(path.name for path in tmp_path.iterdir()) == [place.name]


@pytest.mark.requirement("GT-6", "GT-2")
def test_a_branch_that_another_worktree_has_is_not_moved_under_it(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        commit(place, "code.txt", "three\n")
        git(place, "checkout", "-q", "--detach")
        git(place, "worktree", "add", "-q", str(tmp_path / "elsewhere"), "main")
        before = picture(place)
        with pytest.raises(RestoreConflict, match=r"main is checked out in .*elsewhere"):
            session.restore_checkpoint(first, components=EXACT)
        assert picture(place) == before
        session.restore_checkpoint(first, components={"git": "branch"})
        assert git(place, "rev-parse", "HEAD") == git(place, "rev-parse", "main~1")


@pytest.mark.requirement("GT-6")
def test_a_shallow_clone_is_saved_and_comes_back(tmp_path: Path) -> None:
    origin = with_history(tmp_path / "origin")
    place = tmp_path / "project"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", str(place))
    with SessionCheckpointer(place, "s") as session:
        before = picture(place)
        first = session.save_checkpoint("before")
        assert first.degraded == ()
        commit(place, "code.txt", "three\n")
        session.restore_checkpoint(first.checkpoint.id, components=EXACT)
        after = picture(place)
    assert (after.head, after.index, after.refs) == (before.head, before.index, before.refs)


@pytest.mark.requirement("GT-6")
def test_a_remote_is_never_asked_for_what_a_partial_clone_lacks(tmp_path: Path) -> None:
    origin = with_history(tmp_path / "origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    place = tmp_path / "project"
    git(tmp_path, "clone", "-q", "--filter=tree:0", "--no-checkout", f"file://{origin}", "project")
    write(place / "code.txt", "mine\n")
    git(place, "update-index", "--add", "code.txt")
    asked = tmp_path / "asked"
    git(place, "config", "remote.origin.uploadpack", f"touch {asked}; git-upload-pack")
    (degraded,) = saved(place).degraded
    assert "git" in degraded
    assert not asked.exists()


@pytest.mark.requirement("GT-6")
def test_fifty_thousand_references_are_no_trouble(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    tip = git(place, "rev-parse", "HEAD").strip()
    lines = [f"{tip} refs/heads/many/{number:05d}" for number in range(50_000)]
    packed = place / ".git/packed-refs"
    git(place, "pack-refs", "--all")
    text = packed.read_text().splitlines()
    header, known = text[:1], text[1:]
    packed.write_text("\n".join([*header, *sorted([*known, *lines], key=lambda x: x[41:])]) + "\n")
    with SessionCheckpointer(place, "s") as session:
        first = session.save_checkpoint("before")
        assert first.degraded == ()
        git(place, "commit", "-q", "--allow-empty", "-m", "more")
        session.restore_checkpoint(first.checkpoint.id, components=EXACT)
        assert git(place, "rev-parse", "main").strip() == tip


@pytest.mark.requirement("GT-2")
def test_commits_that_are_gone_for_good_stop_a_restore_before_anything_changes(
    tmp_path: Path,
) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        commit(place, "code.txt", "to be lost\n")
        first = session.checkpoint("before")
        git(place, "reset", "-q", "--hard", "HEAD~1")
        for ref in git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split():
            git(place, "update-ref", "-d", ref)
        git(place, "reflog", "expire", "--expire=now", "--all")
        git(place, "gc", "-q", "--prune=now")
        before = picture(place)
        with pytest.raises(RestoreConflict, match="no longer in the repository"):
            session.restore_checkpoint(first, components=EXACT)
        assert picture(place) == before
        done = session.restore_checkpoint(first, components=EXACT, best_effort=True)
        assert [component.status for component in done.components] == ["failed"]
        assert (place / "code.txt").read_text() == "to be lost\n"


def _no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.requirement("DB-3", "GT-2")
def test_a_git_restore_that_fails_half_way_takes_everything_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        git(place, "checkout", "-q", "side")
        commit(place, "code.txt", "three\n")
        before = picture(place)
        with monkeypatch.context() as patch:
            calls = iter([_no_space])
            patch.setattr(
                "holdfast.components.git.restore.put_files",
                lambda *given: next(calls, put_files)(*given),
            )
            with pytest.raises(RestoreFailed, match="No space left"):
                session.restore_checkpoint(first, components=EXACT)
        assert picture(place) == before
        assert (place / "code.txt").read_text() == "three\n"
        session.restore_checkpoint(first, components=EXACT)
        assert (place / "code.txt").read_text() == "two\n"


@pytest.mark.requirement("GT-2")
def test_a_preview_says_which_commits_leave_which_branch_and_changes_nothing(
    tmp_path: Path,
) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        commit(place, "code.txt", "three\n")
        commit(place, "code.txt", "four\n")
        everything = copied(place / ".git", tmp_path / "copy")
        (step,) = session.plan_restore(first, components=EXACT).components
        leaving = next(line for line in step.actions if "leave" in line)
        assert leaving.startswith("2 commits leave main (kept for undo): ")
        assert "code.txt: four" in leaving
        assert "code.txt: three" in leaving
        diff = ["diff", "-r", str(everything), str(place / ".git")]
        assert subprocess.run(diff, capture_output=True, check=False).stdout == b""


@pytest.mark.requirement("GT-1")
def test_many_processes_that_use_git_at_once_leave_checkpoints_of_one_moment(
    tmp_path: Path,
) -> None:
    place = new_repository(tmp_path / "project")
    commit(place, "code.txt", "0\n")
    program = (
        "import subprocess,sys\n"
        "for n in range(1, 41):\n"
        "    open('code.txt','w').write(str(n)+'\\n')\n"
        "    subprocess.run(['git','commit','-qam',str(n)],check=True)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", program], cwd=place)
    with SessionCheckpointer(place, "s") as session:
        found: list[str] = []
        while worker.poll() is None and len(found) < 45:
            outcome = session.save_checkpoint("meanwhile")
            if not outcome.degraded:
                found.append(outcome.checkpoint.id)
        assert worker.wait() == 0
        assert found
        for identifier in found[:3]:
            session.restore_checkpoint(identifier, components=EXACT)
            assert git(place, "diff", "--cached", "--name-only", "HEAD~0") in ("", "code.txt\n")
            git(place, "fsck", "--connectivity-only")

"""Accepted work is a commit of the user's: filters, hooks, signature, editor, identity, locks; and
whatever names and messages hold stays text."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused
from holdfast.domain.git.commits import LeftOut
from tests.components.git.accepted_work import committed, hook, work_to_accept
from tests.components.git.repositories import (
    autocrlf,
    clean,
    commit,
    git,
    git_directory,
    picture,
    with_history,
    write,
)


@pytest.mark.requirement("GT-3", "GT-6")
def test_filters_and_line_ends_are_those_of_git_add(tmp_path: Path) -> None:
    place = tmp_path / "project"
    autocrlf(place)
    git(place, "reset", "-q", "--hard")
    git(place, "config", "filter.shout.clean", "tr a-z A-Z")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "code.txt", "one\r\ntwo\r\n")
        write(place / ".gitattributes", "*.loud filter=shout\n")
        write(place / "deep/down/voice.loud", "hello\n")
        session.checkpoint("lines")
        session.accept()
    assert git(place, "cat-file", "blob", "HEAD:code.txt") == "one\ntwo\n"
    assert git(place, "cat-file", "blob", "HEAD:deep/down/voice.loud") == "HELLO\n"
    assert git(place, "status", "--porcelain") == ""


@pytest.mark.requirement("GT-3")
def test_hooks_run_and_may_refuse_and_may_change_the_message(place: Path) -> None:
    with work_to_accept(place, "three") as session:
        before = picture(place)
        hook(place, "pre-commit", "git diff --cached --name-only > ran.txt; echo too bad; exit 1")
        with pytest.raises(Refused, match="too bad"):
            session.accept()
        after = picture(place)
        assert (after.head, after.index, after.refs) == (before.head, before.index, before.refs)
        assert (place / "ran.txt").read_text() == "code.txt\n", "it saw what would be committed"
        (place / "ran.txt").unlink()
        hook(place, "pre-commit", "exit 0")
        hook(place, "commit-msg", 'echo "Signed-off-by: A Hook" >> "$1"')
        done = session.accept()
    assert done.message == "three\nSigned-off-by: A Hook\n"
    assert git(place, "status", "--porcelain") == ""


@pytest.mark.requirement("GT-3")
def test_a_hook_that_stages_more_is_respected(place: Path) -> None:
    with work_to_accept(place, "three") as session:
        write(place / "stamp.txt", "staged differently\n")
        git(place, "add", "stamp.txt")
        hook(place, "pre-commit", "echo made > made.txt; git add made.txt")
        session.accept()
    assert committed(place) == {"code.txt": "M", "made.txt": "A"}
    assert git(place, "status", "--porcelain").splitlines() == ["A  stamp.txt"]


@pytest.mark.requirement("GT-3")
def test_a_configured_signature_is_made_and_a_failing_one_stops_the_commit(
    place: Path, tmp_path: Path
) -> None:
    signer = tmp_path / "signer"
    write(signer, "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho SIGNED\n")
    signer.chmod(0o755)
    git(place, "config", "commit.gpgsign", "true")
    git(place, "config", "gpg.program", str(signer))
    with work_to_accept(place, "three") as session:
        head = git(place, "rev-parse", "HEAD")
        write(signer, "#!/bin/sh\nexit 1\n")
        with pytest.raises(Refused, match="gpg failed to sign"):
            session.accept()
        assert git(place, "rev-parse", "HEAD") == head
        write(signer, "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho SIGNED\n")
        session.accept()
    assert "gpgsig SIGNED" in git(place, "cat-file", "commit", "HEAD")


@pytest.mark.requirement("GT-3")
@pytest.mark.parametrize("comment", ["#", ";", "auto"])
def test_an_edited_message_loses_nothing_to_comments(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str
) -> None:
    git(place, "config", "core.commentChar", comment)
    editor = tmp_path / "editor"
    write(editor, f'#!/bin/sh\necho "added by hand" >> "$1"\ncp "$1" "{tmp_path}/seen"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("GIT_EDITOR", str(editor))
    with work_to_accept(place, "why") as session:
        message = "Subject\n\n# a heading\n; another\nplain"
        done = session.accept(message=message, edit=True)
    for line in ("# a heading", "; another", "plain", "added by hand"):
        assert line in done.message
    assert "Changes to be committed" not in done.message
    assert "Changes to be committed" in (tmp_path / "seen").read_text()


@pytest.mark.requirement("GT-3")
def test_an_emptied_message_makes_no_commit(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_EDITOR", "truncate -s 0")
    with work_to_accept(place, "why") as session:
        before = picture(place)
        with pytest.raises(Refused, match="git made no commit"):
            session.accept(edit=True)
        assert picture(place) == before


@pytest.mark.requirement("GT-3", "GT-6")
def test_hostile_messages_and_names_stay_text(place: Path, tmp_path: Path) -> None:
    hostile = (
        "--amend\n\x00\x1b[31m$(touch pwned)`touch pwned`\n\n# not a comment\n\nCo-authored-by: x"
    )
    names = [b"-rf", b"--force", b'quote"back\\slash', b"new\nline", b"\xff\xfe", b"$(touch pwned)"]
    names += [b":(glob)**", b"*", b"a b\tc", b"HEAD"]
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        for name in names:
            with open(os.path.join(os.fsencode(place), name), "wb") as file:
                file.write(name)
        session.checkpoint(hostile)
        done = session.accept()
        kept = git(place, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
        assert {os.fsencode(name) for name in kept} >= set(names)
        assert not list(tmp_path.rglob("pwned"))
        assert "\x00" not in done.message
        assert "\x1b" not in done.message
        assert done.message.startswith("--amend\n")
        assert "# not a comment" in done.message
        assert git(place, "rev-list", "--count", "HEAD", "--").strip() == "4"
        with pytest.raises(ValueError, match="co-author"):
            session.accept("initial..HEAD", co_authors=["x\nSigned-off-by: Boss <b@c>"])


@pytest.mark.requirement("GT-3", "GT-6")
def test_names_that_git_does_not_take_are_left_out_and_listed(place: Path) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / ".GIT/config", "[core]\n\tfsmonitor = touch pwned\n")
        write(place / "git~1", "short\n")
        write(place / "code.txt", "three\n")
        session.checkpoint("three")
        done = session.accept()
    assert committed(place) == {"code.txt": "M"}
    left = {path.path: path.reason for path in done.plan.left_out}
    assert left == {b".GIT/config": LeftOut.NAME, b"git~1": LeftOut.NAME}


@pytest.mark.requirement("GT-3")
def test_a_commit_made_since_is_not_rolled_back(place: Path) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "code.txt", "three\n")
        write(place / "other.txt", "same\n")
        session.checkpoint("three")
        commit(place, "code.txt", "a later commit\n")
        with pytest.raises(Refused, match=r"code\.txt is committed with different content since"):
            session.accept()
        write(place / "code.txt", "both\n")
        session.checkpoint("both")
        session.accept()
    assert committed(place) == {"code.txt": "M"}


@pytest.mark.requirement("GT-3")
def test_a_preview_writes_nothing_anywhere(place: Path) -> None:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("how it began")
        write(place / "code.txt", "never seen by git\n")
        session.checkpoint("three")
        before, objects = picture(place), git(place, "count-objects", "-v")
        names = sorted(str(p) for p in git_directory(place).rglob("*"))
        planned = session.accept(dry_run=True)
        assert planned.commit is None
        assert [(p.path, p.status) for p in planned.plan.paths] == [(b"code.txt", "M")]
        assert planned.plan.obstacles == ()
        assert picture(place) == before
        assert git(place, "count-objects", "-v") == objects
        assert sorted(str(p) for p in git_directory(place).rglob("*")) == names


@pytest.mark.requirement("GT-3", "GT-6")
def test_a_lock_of_another_git_stops_it_and_is_left_alone(place: Path) -> None:
    with work_to_accept(place, "three") as session:
        lock = place / ".git/index.lock"
        lock.touch()
        with pytest.raises(Refused, match=r"index\.lock") as refused:
            session.accept()
        assert "remove that file" in (refused.value.hint or "")
        assert lock.exists()
        lock.unlink()
        session.accept()
        assert not lock.exists()


@pytest.mark.requirement("GT-3", "GT-6")
def test_a_workspace_below_the_top_commits_its_own_paths_by_the_rules_above(place: Path) -> None:
    write(place / ".gitignore", "*.tmp\n")
    commit(place, "part/inside.txt", "inside\n")
    with SessionCheckpointer(place / "part", "s") as session:
        session.opened.settings.set("include", ["*.tmp"])
    with SessionCheckpointer(place / "part", "s") as session:
        session.checkpoint("how it began")
        write(place / "part/inside.txt", "changed\n")
        write(place / "part/x.tmp", "temporary\n")
        write(place / "code.txt", "not of the workspace\n")
        session.checkpoint("changed")
        done = session.accept()
    assert committed(place) == {"part/inside.txt": "M"}
    assert [path.path for path in done.plan.left_out] == [b"part/x.tmp"]


@pytest.mark.requirement("GT-3", "GT-6")
def test_a_linked_worktree_commits_to_its_own_branch(place: Path, tmp_path: Path) -> None:
    there = tmp_path / "linked"
    git(place, "worktree", "add", "-q", str(there), "side")
    with work_to_accept(there, "three") as session:
        main = git(place, "rev-parse", "main")
        done = session.accept()
    assert git(place, "rev-parse", "side").strip() == done.commit
    assert git(place, "rev-parse", "main") == main
    assert git(there, "status", "--porcelain") == ""


@pytest.mark.requirement("GT-3", "GT-6")
def test_without_a_repository_or_without_trust_it_says_so(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    write(plain / "a.txt", "a\n")
    with SessionCheckpointer(plain, "s") as session:
        session.checkpoint("a")
        with pytest.raises(Refused, match="not in a git repository") as refused:
            session.accept()
        assert "git init" in (refused.value.hint or "")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("a")
        write(place / "code.txt", "three\n")
        session.checkpoint("three")
        monkeypatch.setenv("PATH", str(tmp_path))
    with (
        SessionCheckpointer(place, "s") as session,
        pytest.raises(Refused, match="git is not installed"),
    ):
        session.accept()


@pytest.mark.requirement("GT-3")
def test_an_unknown_author_is_asked_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME")
        monkeypatch.delenv(f"GIT_{role}_EMAIL")
    git(place, "config", "user.useConfigOnly", "true")
    with work_to_accept(place, "three") as session:
        with pytest.raises(Refused, match="git made no commit") as refused:
            session.accept()
        assert "git config user.name" in (refused.value.hint or "")
        git(place, "config", "user.name", "Ada")
        git(place, "config", "user.email", "ada@example.org")
        session.accept(co_authors=["Charles <c@example.org>"])
    assert git(place, "log", "-1", "--format=%an <%ae>").strip() == "Ada <ada@example.org>"
    trailers = git(place, "log", "-1", "--format=%(trailers)").strip()
    assert trailers == "Co-authored-by: Charles <c@example.org>"


@pytest.mark.requirement("GT-3")
def test_an_environment_that_leads_elsewhere_is_not_followed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = with_history(tmp_path / "elsewhere")
    before = picture(elsewhere)
    monkeypatch.setenv("GIT_DIR", str(elsewhere / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(elsewhere))
    monkeypatch.setenv("GIT_INDEX_FILE", str(elsewhere / ".git/index"))
    with work_to_accept(place, "three") as session:
        session.accept()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert committed(place) == {"code.txt": "M"}
    assert picture(elsewhere) == before


@pytest.mark.requirement("GT-3")
def test_another_git_cannot_commit_or_stage_while_it_runs(place: Path, tmp_path: Path) -> None:
    """The hook is another git at work at the worst moment; its lock is the user's own index."""
    with work_to_accept(place, "three") as session:
        said = tmp_path / "said"
        attempt = f"unset GIT_INDEX_FILE; git commit -qam sneaked > {said} 2>&1; exit 0"
        hook(place, "pre-commit", attempt)
        session.accept()
    assert "index.lock" in said.read_text()
    assert "sneaked" not in git(place, "log", "--format=%s")
    assert committed(place) == {"code.txt": "M"}


SHAPES = {
    "split index": ("update-index", "--split-index"),
    "version 4": ("update-index", "--index-version", "4"),
    "untracked cache": ("update-index", "--untracked-cache"),
    "intent to add": ("add", "-N", "unknown.txt"),
    "assumed unchanged": ("update-index", "--assume-unchanged", "docs/guide.txt"),
}


@pytest.mark.requirement("GT-3", "GT-6")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_an_index_survives(tmp_path: Path, shape: str) -> None:
    place = tmp_path / "project"
    clean(place)
    write(place / "unknown.txt", "not known yet\n")
    git(place, *SHAPES[shape])
    with work_to_accept(place, "three") as session:
        before = git(place, "ls-files", "-v")
        session.accept()
    assert committed(place) == {"code.txt": "M"}
    assert git(place, "ls-files", "-v") == before
    assert git(place, "diff", "--name-only", "--", "code.txt") == ""
    assert subprocess.run(["git", "fsck", "--strict"], cwd=place, check=False).returncode == 0

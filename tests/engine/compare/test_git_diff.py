"""Git as a differ: nothing but the two contents decides its output, and any failure is reported."""

from __future__ import annotations

import io
import os
import subprocess
from pathlib import Path

import pytest

from holdfast.engine.compare.git_diff import (
    GitDiffFailed,
    GitProgram,
    find_git,
    git_hunks,
    parse_hunks,
)
from tests.support.hunk_model import apply_hunks

pytestmark = pytest.mark.requirement("CP-4")

OLD = b"def one():\n    return 1\n"
NEW = b"def one():\n    return 2\n"


@pytest.fixture
def git() -> GitProgram:
    found = find_git()
    assert found is not None, "these tests need git"
    return found


def program(directory: Path, script: str) -> GitProgram:
    """A program in git's place, with a time limit that only one which hangs will meet."""
    executable = directory / "git"
    executable.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    executable.chmod(0o755)
    return GitProgram(str(executable), scratch_dir=str(directory), timeout_s=30.0)


def test_no_configuration_attribute_or_program_of_the_user_takes_part(
    git: GitProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", "utf-8")
    trap.chmod(0o755)
    repository = tmp_path / "repository"
    scratch = repository / "scratch"
    scratch.mkdir(parents=True)
    subprocess.run([git.executable, "init", "--quiet", repository], check=True)
    settings = [f"external={trap}", "noprefix=true", "algorithm=minimal", f"evil.textconv={trap}"]
    for setting in [*settings, f"evil.command={trap}", "context=9", "interHunkContext=9"]:
        name, value = setting.split("=")
        command = [git.executable, "-C", str(repository), "config", f"diff.{name}", value]
        subprocess.run(command, check=True)
    (repository / ".gitattributes").write_text("* diff=evil\n* -text\n", "utf-8")
    (scratch / ".gitattributes").write_text("* -diff\n", "utf-8")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_bytes((repository / ".git" / "config").read_bytes())
    for name, text in {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_DIR": str(repository / ".git"),
        "GIT_WORK_TREE": str(repository),
        "GIT_EXTERNAL_DIFF": str(trap),
        "GIT_DIFF_OPTS": "--unified=9",
        "GIT_PAGER": str(trap),
        "GIT_TRACE": str(tmp_path / "sprung"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "diff.external",
        "GIT_CONFIG_VALUE_0": str(trap),
    }.items():
        monkeypatch.setenv(name, text)
    hunks = list(git_hunks(GitProgram(git.executable, str(scratch)), [OLD], [NEW], context=0))
    assert apply_hunks(OLD, hunks) == NEW
    assert [hunk.header() for hunk in hunks] == [b"@@ -2 +2 @@ def one():"]
    assert not (tmp_path / "sprung").exists()


def test_contents_are_private_while_git_reads_them_and_gone_afterwards(
    git: GitProgram, tmp_path: Path
) -> None:
    log, scratch = tmp_path / "log", tmp_path / "scratch"
    scratch.mkdir()
    watching = program(tmp_path, f'ls -ld . old new > {log}\nexec {git.executable} "$@"')
    watching = GitProgram(watching.executable, str(scratch))
    previous = os.umask(0)
    try:
        hunks = list(git_hunks(watching, [OLD], [NEW], context=3))
    finally:
        os.umask(previous)
    assert apply_hunks(OLD, hunks) == NEW
    modes = {line.split()[0][:10] for line in log.read_text("utf-8").splitlines()}
    assert modes == {"drwx------", "-rw-------"}
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exit 128", id="fails"),
        pytest.param("exit 0", id="sees no difference"),
        pytest.param("exit 1", id="says nothing"),
        pytest.param("kill -9 $$", id="is killed"),
        pytest.param("echo 'Binary files differ'; exit 1", id="sees binary files"),
        pytest.param("printf '@@ -1,2 +1,2 @@\\n def one():\\n-    ret'; exit 1", id="is cut off"),
        pytest.param("printf '@@ -1,2 +1,2 @@\\n a\\n-b\\n+c\\n'; exit 128", id="fails late"),
    ],
)
def test_a_git_that_does_not_work_is_reported_before_the_first_hunk(
    script: str, tmp_path: Path
) -> None:
    with pytest.raises(GitDiffFailed):
        next(git_hunks(program(tmp_path, script), [OLD], [NEW], context=3))


def test_a_git_that_hangs_is_stopped(tmp_path: Path) -> None:
    hanging = program(tmp_path, "exec tail -f /dev/null")
    with pytest.raises(GitDiffFailed):
        next(git_hunks(GitProgram(hanging.executable, None, 0.05), [OLD], [NEW], context=3))


def test_a_git_that_is_gone_or_has_no_room_is_reported(git: GitProgram, tmp_path: Path) -> None:
    for broken in (
        GitProgram(str(tmp_path / "gone")),
        GitProgram(git.executable, scratch_dir=str(tmp_path / "gone")),
    ):
        with pytest.raises(GitDiffFailed):
            next(git_hunks(broken, [OLD], [NEW], context=3))


def test_only_absolute_entries_of_the_search_path_can_provide_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "exit 0")
    monkeypatch.chdir(tmp_path)
    for entries in (".", "", os.pathsep, f".{os.pathsep}"):
        monkeypatch.setenv("PATH", entries)
        assert find_git() is None
    monkeypatch.setenv("PATH", f".{os.pathsep}{tmp_path}")
    assert find_git() == GitProgram(str(tmp_path / "git"))


@pytest.mark.parametrize(
    "diff",
    [
        b"@@ -1 +1 @@\n-a\n",
        b"@@ -1 +1 @@\n-a\n-b\n",
        b"@@ -1 +1 @@\n-a\n+b",
        b"@@ -1 +1 @@\nxa\n+b\n",
        b"@@ -1 +1 @@\n-a\n+b\n+c\n",
        b"@@ -1 +x @@\n-a\n+b\n",
        b"@@ -1 +1 @@\n-a\n+b\ndiff --git a/old b/new\n",
        b"@@ -1 +1 @@\n\\ No newline at end of file\n",
    ],
)
def test_what_is_not_a_diff_is_refused(diff: bytes) -> None:
    with pytest.raises(GitDiffFailed):
        list(parse_hunks(io.BytesIO(diff)))


def test_lines_are_distinguished_by_count_and_not_by_looks() -> None:
    diff = b"--- a/old\n+++ b/new\n@@ -1,3 +1,3 @@\n-@@ -1 +1 @@\n---- a/old\n+++++ b/new\n"
    diff += b"+@@ -9,9 +9,9 @@ x\n \\ No newline at end of file\n\\ No newline at end of file\n"
    old = b"@@ -1 +1 @@\n--- a/old\n\\ No newline at end of file"
    new = b"++++ b/new\n@@ -9,9 +9,9 @@ x\n\\ No newline at end of file"
    assert apply_hunks(old, parse_hunks(io.BytesIO(diff))) == new

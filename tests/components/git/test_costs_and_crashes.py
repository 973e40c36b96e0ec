"""What the state of git costs, in processes; and a crash anywhere leaves the old or the new."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.components.git.repositories import (
    commit,
    conflicted_merge,
    copied,
    end_operations,
    git,
    picture,
    with_history,
    write,
)
from tests.interfaces.cli.command_line import CommandLine
from tests.support.strides import strides

EXACT = {"git": "exact"}


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that gets a line for every git that is started."""
    real = shutil.which("git")
    log = tmp_path / "started"
    write(tmp_path / "bin/git", f'#!/bin/sh\necho x >>"{log}"\nexec "{real}" "$@"\n')
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    log.write_text("")
    return log


def started(log: Path) -> int:
    count = len(log.read_text().splitlines())
    log.write_text("")
    return count


@pytest.mark.requirement("GT-1", "PF-1")
def test_no_process_is_started_when_nothing_in_git_has_changed(
    tmp_path: Path, counted: Path
) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        while True:  # until the clock can tell the last change from a further one
            started(counted)
            session.checkpoint("why")
            if started(counted) == 0:
                break
        for number in range(5):
            write(place / "code.txt", f"{number}\n")
            session.checkpoint("files alone have changed")
        assert started(counted) == 0
        write(place / "code.txt", "staged\n")
        git(place, "add", "code.txt")
        started(counted)
        session.checkpoint("the index has changed")
        assert 0 < started(counted) <= 2
        git(place, "commit", "-qm", "more")
        started(counted)
        session.checkpoint("a commit")
        assert 0 < started(counted) <= 2


@pytest.mark.requirement("GT-1", "PF-1", "RB-11")
def test_no_process_is_started_for_status_a_restore_and_its_undo_when_git_is_as_it_was(
    tmp_path: Path, counted: Path
) -> None:
    cli = CommandLine(with_history(tmp_path / "project"))
    while True:  # until the clock can tell the last change from a further one
        started(counted)
        cli.save("why")
        if started(counted) == 0:
            break
    write(cli.workspace / "code.txt", "changed\n")
    cli.save("files alone have changed")
    started(counted)
    for words in (("restore", "HEAD~1"), ("undo",), ("redo",), ("restore", "HEAD~1", "code.txt")):
        done = cli(*words, "--yes")
        assert done.status == 0
        assert "git: main@" in done.out
        assert cli("status").status == 0
        assert started(counted) == 0, words


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that gets a line for every git there is, those that git itself starts included."""
    real = shutil.which("git")
    log = tmp_path / "traced"
    write(tmp_path / "bin/git", f'#!/bin/sh\nGIT_TRACE="{log}" exec "{real}" "$@"\n')
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return log


def processes(log: Path) -> list[str]:
    """The command of each."""
    lines = log.read_text().splitlines() if log.exists() else []
    log.write_text("")
    return [line.partition("trace: ")[2] for line in lines if "trace: built-in:" in line]


def stages(place: Path) -> None:
    write(place / "code.txt", "staged\n")
    git(place, "add", "code.txt")


def commits_more(place: Path) -> None:
    commit(place, "code.txt", "an agent was here\n")


def stashes(place: Path) -> None:
    write(place / "code.txt", "stashed as well\n")
    git(place, "stash", "-q")


def leaves_the_branch(place: Path) -> None:
    git(place, "checkout", "-q", "--detach", "side")


@pytest.mark.requirement("GT-1", "PF-1")
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("change", [stages, commits_more, stashes, leaves_the_branch])
def test_a_change_in_git_costs_two_processes_with_all_that_they_start(
    tmp_path: Path, traced: Path, change: Callable[[Path], None], packed: bool
) -> None:
    place = with_history(tmp_path / "project")
    if packed:
        git(place, "gc", "-q", "--prune=now")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("before")
        change(place)
        processes(traced)
        assert session.save_checkpoint("after").degraded == ()
        found = processes(traced)
        assert 0 < len(found) <= 2, found
    assert git(place, "fsck", "--strict") == ""


@pytest.mark.requirement("GT-1", "GT-6")
def test_nothing_is_kept_alive_that_is_not_there(tmp_path: Path) -> None:
    """A Holdfast commit that names a missing one would make the whole repository look damaged."""
    place = with_history(tmp_path / "project")
    stages(place)
    blob = git(place, "rev-parse", ":code.txt").strip()
    (place / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with SessionCheckpointer(place, "s") as session:
        (problem,) = session.save_checkpoint("why").degraded
        assert f"object {blob} is missing" in problem
        assert git(place, "for-each-ref", "refs/holdfast") == ""
        # Not by `git add`, which leaves a file alone that looks as the index remembers it.
        git(place, "hash-object", "-w", "code.txt")
        assert session.save_checkpoint("again").degraded == ()


@pytest.mark.requirement("GT-1")
def test_what_is_kept_alive_is_as_readable_as_the_rest_of_the_repository(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    (place / ".git/objects").chmod(0o2770)
    stages(place)
    before = set((place / ".git/objects").rglob("*"))
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("why")
    mine = git(place, "for-each-ref", "--format=%(objectname)", "refs/holdfast").strip()
    file = place / ".git/objects" / mine[:2] / mine[2:]
    assert file.stat().st_mode & 0o777 == 0o440
    if file.parent not in before:
        assert file.parent.stat().st_mode & 0o7777 == 0o2770


@pytest.mark.requirement("GT-6")
def test_a_workspace_without_git_starts_nothing_and_stores_nothing_for_it(
    tmp_path: Path, counted: Path
) -> None:
    place = tmp_path / "project"
    write(place / "code.txt", "x\n")
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("why")
    assert outcome.checkpoint.components is None
    assert started(counted) == 0


LOADED = """
import sys
from pathlib import Path
from holdfast import SessionCheckpointer
with SessionCheckpointer(Path(sys.argv[1]), "s") as session:
    session.checkpoint("why")
print(*sys.modules)
"""


def loaded_by_a_save(place: Path) -> set[str]:
    child = [sys.executable, "-c", LOADED, str(place)]
    return set(subprocess.run(child, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.requirement("PF-7", "GT-6")
def test_a_save_loads_of_components_only_what_it_needs(tmp_path: Path) -> None:
    place = tmp_path / "project"
    write(place / "code.txt", "x\n")
    alone = {name for name in loaded_by_a_save(place) if "component" in name}
    assert alone == {
        "holdfast.bootstrap.components",
        "holdfast.components",
        "holdfast.components.installed",
        "holdfast.engine.components",
        "holdfast.engine.components.component_snapshot",
    }
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    while "subprocess" in (found := loaded_by_a_save(place)):
        pass  # until the clock can tell the last change in git from a further one
    assert "holdfast.components.git.component" in found
    assert not found & {"holdfast.components.git.capture", "holdfast.components.git.commands"}


@pytest.mark.requirement("GT-1", "SE-12")
def test_a_commit_alone_makes_another_checkpoint(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    write(place / "code.txt", "to be committed\n")
    with SessionCheckpointer(place, "s") as session:
        first = session.save_checkpoint("before").checkpoint
        git(place, "commit", "-qam", "committed")
        second = session.save_checkpoint("after").checkpoint
        assert first.tree == second.tree
        assert first.components != second.components


CRASHING = """
import os, sys
from pathlib import Path
from holdfast import SessionCheckpointer
from holdfast.components.git import commands, operation_files, repository, restore

left = int(sys.argv[3])

def counted(real):
    def call(*given, **named):
        global left
        if left == 0:
            os._exit(9)
        left -= 1
        return real(*given, **named)
    return call

session = SessionCheckpointer(Path(sys.argv[1]), "s")
commands.Git.run = counted(commands.Git.run)
for name in ("replace", "unlink", "fsync"):
    setattr(os, name, counted(getattr(os, name)))
if sys.argv[2] == "undo":
    session.undo()
else:
    session.restore_checkpoint(sys.argv[2], components={"git": "exact"})
"""


@pytest.mark.requirement("RB-3", "GT-2", "BX-6")
@strides(9)
def test_a_crash_anywhere_in_a_git_restore_leaves_the_old_state_or_the_new_one(
    tmp_path: Path, holdfast_home: Path, stride: int
) -> None:
    place = tmp_path / "project"
    conflicted_merge(place)
    then = picture(place)
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("in the middle of a merge")
    end_operations(place)
    git(place, "checkout", "-q", "side")
    commit(place, "code.txt", "an agent was here\n")
    now = picture(place)
    kept_place = copied(place, tmp_path / "kept-place")
    kept_home = copied(holdfast_home, tmp_path / "kept-home")
    outcomes = set()
    step = 0
    while True:
        for source, target in ((kept_place, place), (kept_home, holdfast_home)):
            shutil.rmtree(target)
            copied(source, target)
        child = subprocess.run(
            [sys.executable, "-c", CRASHING, str(place), first, str(step)], check=False
        )
        with SessionCheckpointer(place, "s") as session:
            seen = picture(place)
            is_new = (seen.head, seen.index, seen.operation) == (
                then.head,
                then.index,
                then.operation,
            )
            is_old = (seen.head, seen.index, seen.refs, seen.operation) == (
                now.head,
                now.index,
                now.refs,
                now.operation,
            )
            assert is_new or is_old, step
            text = (place / "code.txt").read_text()
            assert text.startswith("<<<<") if is_new else text == "an agent was here\n", step
            assert not list((place / ".git").glob("index*.*")), step
            outcomes.add(is_new)
            if is_new:
                session.undo()
                assert picture(place) == now, step
        if child.returncode == 0:
            break
        assert child.returncode == 9
        step += stride
    assert step > 20
    assert outcomes == {True, False}


@pytest.mark.requirement("RB-1")
def test_a_preview_warns_of_work_that_is_not_committed(tmp_path: Path) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before")
        commit(place, "code.txt", "three\n")
        warnings = session.plan_restore(first).warnings
        assert not any("not committed" in text for text in warnings)
        write(place / "code.txt", "not committed\n")
        write(place / "new.txt", "unknown to git\n")
        write(place / "other.txt", "staged\n")
        git(place, "add", "other.txt")
        (warning,) = [t for t in session.plan_restore(first).warnings if "committed" in t]
        assert warning == (
            "code.txt, new.txt, other.txt have changes that are not committed in git; "
            "they are saved first"
        )


@pytest.mark.requirement("GT-1", "RL-1")
def test_a_lock_that_a_killed_git_of_holdfast_left_is_gone_after_the_next_save(
    tmp_path: Path, holdfast_home: Path
) -> None:
    place = with_history(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("before")
        (owner,) = (holdfast_home / "stores").iterdir()
        left = place / ".git/refs/holdfast" / owner.name / "0123456789.lock"
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_text("")
        other = place / ".git/refs/holdfast" / "another-store" / "0123456789.lock"
        other.parent.mkdir()
        other.write_text("")
        commit(place, "code.txt", "three\n")
        session.checkpoint("after")
    assert not left.exists()
    assert other.exists(), "somebody else may be using it"


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("link", ["refs/holdfast", "refs/holdfast/OWNER"])
def test_locks_are_never_looked_for_through_a_link(
    tmp_path: Path, holdfast_home: Path, link: str
) -> None:
    place = with_history(tmp_path / "project")
    outside = tmp_path / "outside"
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("before")
        (owner,) = (holdfast_home / "stores").iterdir()
        for name in ("somebody.lock", f"{owner.name}/somebody.lock"):
            write(outside / name, "in use")
        planted = place / ".git" / link.replace("OWNER", owner.name)
        shutil.rmtree(planted)
        planted.symlink_to(outside)
        commit(place, "code.txt", "three\n")
        session.checkpoint("after")
    assert (outside / "somebody.lock").exists()
    assert (outside / owner.name / "somebody.lock").exists()

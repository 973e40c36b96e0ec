"""Branches, tags and stash entries that an agent has deleted or moved come back, when asked for."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreConflict
from tests.components.git.repositories import (
    commit,
    copied,
    git,
    missing_objects,
    with_history,
    write,
)
from tests.components.git.test_costs_and_crashes import started
from tests.support.strides import strides

REFS = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")


def references(place: Path) -> dict[str, str]:
    """Every branch and tag, as git lists them."""
    return dict(line.split(" ") for line in git(place, *REFS).splitlines())


def stash(place: Path) -> list[str]:
    return git(place, "stash", "list", "--format=%H %gs %cn").splitlines()


def with_much_to_lose(place: Path) -> Path:
    """Branches, plain and annotated tags, a tag of a tag, of a blob and of a tree; three stash
    entries. Nothing else leads to most of the commits."""
    with_history(place)
    git(place, "checkout", "-qb", "idea")
    commit(place, "idea.txt", "nobody else has it\n")
    git(place, "tag", "-a", "keepme", "-m", "an annotated tag\n\nwith a body")
    git(place, "tag", "of-a-tag", "keepme")
    git(place, "tag", "-a", "chained", "-m", "names another tag", "keepme")
    git(place, "checkout", "-q", "main")
    git(place, "branch", "wip/one")
    git(place, "tag", "plain", "idea")
    git(place, "tag", "a-tree", "HEAD^{tree}")
    blob = git(place, "hash-object", "-w", "--stdin", given="only ever tagged\n").strip()
    git(place, "tag", "a-blob", blob)
    for number in (1, 2):
        write(place / "other.txt", f"stashed {number}\n")
        git(place, "stash", "push", "-q", "-m", f"number {number}")
    return place


def lose_everything(place: Path) -> None:
    git(place, "stash", "clear")
    git(place, "branch", "-qD", "idea", "side", "wip/one")
    for name in git(place, "tag").split():
        git(place, "tag", "-d", name)
    git(place, "reflog", "expire", "--expire=now", "--all")
    git(place, "gc", "-q", "--prune=now")


@pytest.mark.requirement("GT-1", "RB-2")
@pytest.mark.parametrize("packed", [False, True])
def test_everything_that_was_deleted_comes_back_undone_and_redone(
    tmp_path: Path, packed: bool
) -> None:
    place = with_much_to_lose(tmp_path / "project")
    if packed:
        git(place, "pack-refs", "--all")
        git(place, "gc", "-q")
    then, stashed = references(place), stash(place)
    with SessionCheckpointer(place, "s") as session:
        saved = session.save_checkpoint("before the agent")
        assert saved.degraded == ()
        assert (references(place), stash(place)) == (then, stashed)
        lose_everything(place)
        lost = references(place)
        session.restore_checkpoint(saved.checkpoint.id, components={"git": "exact:all"})
        assert references(place) == then
        assert stash(place) == stashed
        assert missing_objects(place) == ""
        assert git(place, "tag", "-l", "--format=%(contents)", "keepme").startswith("an annotated")
        session.undo()
        assert references(place) == lost
        assert stash(place) == []
        session.redo()
        assert references(place) == then
        assert stash(place) == stashed
    assert git(place, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.requirement("GT-1")
def test_an_exact_restore_lists_what_is_gone_and_brings_it_back_only_when_asked(
    tmp_path: Path,
) -> None:
    place = with_much_to_lose(tmp_path / "project")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before the agent")
        git(place, "stash", "clear")
        git(place, "branch", "-qD", "idea")
        git(place, "tag", "-d", "keepme")
        git(place, "branch", "-qf", "wip/one", "side")
        lost = references(place)
        plan = session.plan_restore(first, components={"git": "exact"})
        (step,) = plan.components
        assert step.actions == ()
        assert dict(step.choices) == {
            "heads/idea": "branch idea is gone",
            "heads/wip/one": "branch wip/one moved",
            "tags/keepme": "tag keepme is gone",
            "stash": "3 stash entries are gone",
        }
        done = session.restore_checkpoint(first, components={"git": "exact"})
        assert any("branch idea is gone" in text for text in done.warnings)
        assert any("--refs all" in text for text in done.warnings)
        assert references(place) == lost
        assert stash(place) == []


@pytest.mark.requirement("GT-1")
def test_references_are_chosen_by_name_and_pattern_and_newer_ones_stay(tmp_path: Path) -> None:
    place = with_much_to_lose(tmp_path / "project")
    then = references(place)
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before the agent")
        git(place, "branch", "-qD", "idea", "wip/one", "side")
        git(place, "tag", "-d", "keepme", "plain")
        git(place, "branch", "newer")
        commit(place, "code.txt", "committed meanwhile\n")
        head = git(place, "rev-parse", "HEAD")
        (step,) = session.plan_restore(first, components={"git": "refs:wip/*"}).components
        assert step.actions == (
            f"branch wip/one is recreated at {then['refs/heads/wip/one'][:10]}",
        )
        session.restore_checkpoint(first, components={"git": "refs:wip/* tags/keepme"})
        now = references(place)
        assert now["refs/heads/wip/one"] == then["refs/heads/wip/one"]
        assert now["refs/tags/keepme"] == then["refs/tags/keepme"]
        assert "refs/heads/newer" in now
        assert not {"refs/heads/idea", "refs/heads/side", "refs/tags/plain"} & now.keys()
        assert git(place, "rev-parse", "HEAD") == head, "HEAD stays with refs alone"
        with pytest.raises(RestoreConflict, match="named nonsense"):
            session.restore_checkpoint(first, components={"git": "refs:nonsense"})
        with pytest.raises(RestoreConflict, match=r"named wop/\*"):
            session.restore_checkpoint(first, components={"git": "refs:wop/*"})


@pytest.mark.requirement("GT-1")
def test_a_stash_entry_comes_back_at_its_place_with_newer_ones_on_top(tmp_path: Path) -> None:
    place = with_much_to_lose(tmp_path / "project")
    stashed = stash(place)
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before the agent")
        git(place, "stash", "drop", "-q", "stash@{1}")
        git(place, "stash", "drop", "-q", "stash@{1}")
        write(place / "other.txt", "newer\n")
        git(place, "stash", "push", "-q", "-m", "newer")
        newest = stash(place)[0]
        session.restore_checkpoint(first, components={"git": "refs:stash@{1}"})
        assert stash(place) == [newest, *stashed[:2]]
        session.undo()
        assert stash(place) == [newest, stashed[0]]
        session.restore_checkpoint(first, components={"git": "refs:stash"})
        assert stash(place) == [newest, *stashed]
    git(place, "stash", "pop", "-q", "stash@{1}")
    assert (place / "other.txt").read_text() == "stashed 2\n"


@pytest.mark.requirement("GT-1", "GT-5")
def test_a_branch_that_cannot_move_is_named_and_all_goes_on_without_it(tmp_path: Path) -> None:
    place = with_much_to_lose(tmp_path / "project")
    git(place, "worktree", "add", "-q", str(tmp_path / "linked"), "wip/one")
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before the agent")
        commit(tmp_path / "linked", "code.txt", "work in another worktree\n")
        moved = git(place, "rev-parse", "wip/one")
        git(place, "branch", "-qD", "idea")
        git(place, "branch", "idea/below")
        with pytest.raises(RestoreConflict, match="checked out in"):
            session.restore_checkpoint(first, components={"git": "refs:wip/one"})
        with pytest.raises(RestoreConflict, match="idea conflicts with an existing name"):
            session.restore_checkpoint(first, components={"git": "refs:all"})
        git(place, "branch", "-qD", "idea/below")
        session.restore_checkpoint(first, components={"git": "refs:all"})
        assert git(place, "rev-parse", "wip/one") == moved
        assert "refs/heads/idea" in references(place)


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that gets a line for every git that is started."""
    real, log = shutil.which("git"), tmp_path / "started"
    write(tmp_path / "bin/git", f'#!/bin/sh\necho x >>"{log}"\nexec "{real}" "$@"\n')
    (tmp_path / "bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    log.write_text("")
    return log


@pytest.mark.requirement("GT-1", "PF-1")
@pytest.mark.parametrize("packed", [False, True])
def test_ten_thousand_references_cost_a_few_processes_once(
    tmp_path: Path, counted: Path, packed: bool
) -> None:
    place = with_history(tmp_path / "project")
    main, side = git(place, "rev-parse", "main", "side").split()
    rows = [f"create refs/heads/b/{n:05} {main}\n" for n in range(5000)]
    rows += [f"create refs/tags/t/{n:05} {side}\n" for n in range(5000)]
    git(place, "update-ref", "--stdin", given="".join(rows))
    git(place, "tag", "-a", "annotated", "-m", "x")
    if packed:
        git(place, "pack-refs", "--all")
    with SessionCheckpointer(place, "s") as session:
        started(counted)
        first = session.save_checkpoint("first")
        assert first.degraded == ()
        assert started(counted) <= 5
        while True:  # until the clock can tell the last change from a further one
            session.checkpoint("why")
            if started(counted) == 0:
                break
        for number in (1, 2):
            write(place / "code.txt", f"{number}\n")
            git(place, "commit", "-qam", f"{number}")
            started(counted)
            outcome = session.save_checkpoint("a commit")
            assert started(counted) <= 2
            assert outcome.bytes_stored < 50_000, "what has not changed is not stored again"
        git(place, "branch", "-qD", "b/00017")
        session.restore_checkpoint(first.checkpoint.id, components={"git": "refs:b/00017"})
        assert git(place, "rev-parse", "b/00017").strip() == main


CRASHING = """
import os, sys
from pathlib import Path
from holdfast import SessionCheckpointer
from holdfast.components.git import commands

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
for name in ("replace", "unlink", "link", "fsync"):
    setattr(os, name, counted(getattr(os, name)))
session.restore_checkpoint(sys.argv[2], components={"git": "exact:all"})
"""


@pytest.mark.requirement("GT-1", "RB-3")
@strides(7)
def test_a_crash_anywhere_leaves_all_references_as_they_were_or_as_they_shall_be(
    tmp_path: Path, holdfast_home: Path, stride: int
) -> None:
    place = with_much_to_lose(tmp_path / "project")
    then = (references(place), stash(place))
    with SessionCheckpointer(place, "s") as session:
        first = session.checkpoint("before the agent")
    lose_everything(place)
    git(place, "tag", "newer")
    now = (references(place), stash(place))
    then[0]["refs/tags/newer"] = now[0]["refs/tags/newer"]
    kept_place = copied(place, tmp_path / "kept-place")
    kept_home = copied(holdfast_home, tmp_path / "kept-home")
    outcomes, step = set(), 0
    while True:
        for source, target in ((kept_place, place), (kept_home, holdfast_home)):
            shutil.rmtree(target)
            copied(source, target)
        child = subprocess.run(
            [sys.executable, "-c", CRASHING, str(place), first, str(step)], check=False
        )
        with SessionCheckpointer(place, "s") as session:
            seen = (references(place), stash(place))
            assert seen in (then, now), step
            assert not list((place / ".git").rglob("*stash*.*")), step
            outcomes.add(seen == then)
            if seen == then:
                session.undo()
                assert (references(place), stash(place)) == now, step
        if child.returncode == 0:
            break
        assert child.returncode == 9
        step += stride
    assert outcomes == {True, False}

"""Part 1 in a git repository: a save and an exact restore are killed at every call, git's included.

The next process finds the state of git as it was or as it was to become, with the files that belong
to it; branches, tags and the stash are whole; no lock of ours stands in the user's way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components.git.repositories import (
    Picture,
    commit,
    conflicted_merge,
    end_operations,
    git,
    picture,
    write,
)
from tests.torture.acts import Act
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.kill_server import KillServer, Order
from tests.torture.killing import at_every_call, killed
from tests.torture.scenes import Scene, problems, save
from tests.torture.test_kill_at_system_calls import killed_command, system_calls

pytestmark = pytest.mark.requirement("RL-1", "GT-1", "GT-2")


@pytest.fixture(scope="module")
def server() -> Iterator[KillServer]:
    with KillServer() as server:
        yield server


def _scene(root: Path) -> tuple[Scene, str, Picture]:
    """A checkpoint in the middle of a merge; since then an agent ended it, and committed."""
    scene = Scene(root)
    conflicted_merge(scene.project)
    then = picture(scene.project)
    with scene.open(create=True) as work:
        first = save(work, "in the middle of a merge").id
        scene.known[first] = scene.state()
    end_operations(scene.project)
    git(scene.project, "checkout", "-q", "side")
    commit(scene.project, "code.txt", "an agent was here\n")
    write(scene.project / "other.txt", "staged\n")
    git(scene.project, "add", "other.txt")
    write(scene.project / "untracked.txt", "nobody knows\n")
    scene.keep()
    return scene, first, then


def _harm(project: Path, before: Picture, *, at_once: bool = True) -> list[str]:
    """What a person would find wrong with the repository itself; a lock of a reference that only
    we use may stay until the next save or cleanup."""
    own = project / ".git"
    locks = list(own.rglob("*.lock"))
    if at_once:
        locks = [path for path in locks if not path.is_relative_to(own / "refs/holdfast")]
    wrong = [f"left behind: {path.relative_to(project)}" for path in locks]
    wrong += [f"left behind: {path.relative_to(project)}" for path in own.glob("index*.*")]
    git(project, "fsck", "--no-dangling", "--connectivity-only")
    for ref, oid in before.refs.items():
        git(project, "cat-file", "-e", oid)
        if ref.startswith(("refs/tags/", "refs/stash")) and picture(project).refs.get(ref) != oid:
            wrong.append(f"{ref} has moved")
    if picture(project).untouched != before.untouched:
        wrong.append("something else in .git has changed")
    return wrong


def _judged(act: Act, made: str | None, now: Picture, then: Picture) -> tuple[str, list[str]]:
    """Whether git is old or new in the eyes of the next process, and what is wrong."""
    project = act.scene.project
    with act.scene.open() as work:
        work.engine.recover()
    seen, tree = picture(project), act.scene.state()
    is_old = (seen.head, seen.index, seen.refs, seen.operation) == (
        now.head,
        now.index,
        now.refs,
        now.operation,
    )
    is_new = (seen.head, seen.index, seen.operation) == (then.head, then.index, then.operation)
    wrong = _harm(project, now)
    if act.action == "save":
        wrong += [] if seen == now else ["a save has changed the state of git"]
    elif not (is_old and tree == act.trees[0]) and not (is_new and tree == act.trees[1]):
        wrong.append(f"git is {'old' if is_old else 'new' if is_new else 'neither'}")
    known, trees = act.acknowledged(made)
    wrong += problems(project, act.scene.home, known, trees)
    return "new" if is_new else "old", wrong + _harm(project, now, at_once=False)


def _at_every_call(
    campaign: Campaign, scenario: Scenario, act: Act, server: KillServer, then: Picture
) -> None:
    act.scene.reset()
    now = picture(act.scene.project)
    counted: Counter[str] = Counter()

    def kill(order: Order) -> None:
        """How often git is looked at depends on its clock: the last calls may not be made."""
        answer = killed(server, order, must_die=False)
        outcome, wrong = _judged(act, answer.made, now, then)
        assert not wrong, "\n".join([f"{order.how} call {order.at}, {answer}", *wrong])
        counted[outcome] += 1
        campaign.note = f"git {counted['old']:,} times as before, {counted['new']:,} as restored"

    at_every_call(campaign, scenario, act, kill, slice_cases=8)


def _at_every_system_call(
    campaign: Campaign, scenario: Scenario, act: Act, log: Path, then: Picture
) -> None:
    """Of the command, and of every git that it starts."""
    points = system_calls(act, log)
    act.scene.reset()
    now = picture(act.scene.project)

    def case(case: Case) -> None:
        name, number = points[case.number]
        act.scene.reset()
        status = killed_command(act, name, number, log)
        done = "done" if status == 0 and act.action != "save" else None
        _, wrong = _judged(act, done, now, then)
        assert not wrong, "\n".join([f"{name} number {number}, status {status}", *wrong])

    campaign.run(
        scenario,
        case,
        slice_cases=0,
        space=len(points),
        covered="every system call that changes something",
        most_cases=len(points),
    )


def test_a_save_in_a_git_repository_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    scene, _, then = _scene(quick_disk)
    act = Act(scene, "save", "", (scene.state(),), git="exact")
    title = "at every call of a save in a git repository with changes"
    _at_every_call(campaign, Scenario(1, "kill-git-save", title), act, server, then)


@pytest.mark.torture_share(2)
@pytest.mark.requirement("RL-2", "BX-6")
def test_an_exact_restore_of_git_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    scene, first, then = _scene(quick_disk)
    trees = (scene.state(), scene.known[first])
    act = Act(scene, "restore", first, trees, git="exact")
    title = "at every call of a git restore into the middle of a merge"
    _at_every_call(campaign, Scenario(1, "kill-git-restore", title), act, server, then)


@pytest.mark.torture
@pytest.mark.torture_share(3)
def test_a_checkpoint_in_a_git_repository_killed_at_every_system_call(
    long_campaign: Campaign, quick_disk: Path
) -> None:
    scene, _, then = _scene(quick_disk)
    act = Act(scene, "save", "", (scene.state(),), git="exact")
    title = "`holdfast checkpoint` with git processes, at every system call that changes something"
    scenario = Scenario(1, "strace-git-save", title)
    _at_every_system_call(long_campaign, scenario, act, quick_disk / "log", then)


@pytest.mark.torture
@pytest.mark.torture_share(4)
@pytest.mark.requirement("RL-2", "BX-6")
def test_an_exact_restore_killed_at_every_system_call(
    long_campaign: Campaign, quick_disk: Path
) -> None:
    scene, first, then = _scene(quick_disk)
    act = Act(scene, "restore", first, (scene.state(), scene.known[first]), git="exact")
    title = "`holdfast restore --git exact` with git processes, at every such system call"
    scenario = Scenario(1, "strace-git-restore", title)
    _at_every_system_call(long_campaign, scenario, act, quick_disk / "log", then)

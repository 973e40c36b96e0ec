"""A process that dies at any call leaves nothing that the next one cannot repair.

Every call of the file system port is a moment of death, one after the other, on one store that
lives through all of them; after each, the tree must be one of the two it may be.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.ports.catalog import all_checkpoints
from tests.support.composition import SESSION
from tests.support.crash_server import CrashServer, Request
from tests.support.hostile_trees import fill
from tests.support.strides import UNTIMED, strides
from tests.support.tree_hash import debris, describe, differences
from tests.support.tree_model import State
from tests.support.wrecked_workspace import Story

pytestmark = pytest.mark.in_memory

MOST_CALLS = 2_000


@pytest.fixture(scope="module")
def server() -> Iterator[CrashServer]:
    with CrashServer() as server:
        yield server


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path / "project")


def _calls_of(server: CrashServer, story: Story, action: str, argument: str | None = None) -> int:
    answer = server.ask(Request(str(story.workspace), action, argument))
    assert answer.error is None
    assert not answer.died
    assert 0 < answer.calls < MOST_CALLS
    return answer.calls


@pytest.mark.requirement("RB-3")
@strides(5)
def test_a_restore_killed_at_any_call_is_finished_or_rolled_back(
    server: CrashServer, story: Story, stride: int
) -> None:
    calls = _calls_of(server, story, "restore", story.good)
    outcomes = set()
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        assert describe(story.workspace) == story.new
        answer = story.ask(server, "restore", at=at, argument=story.good)
        found = story.recover()
        whole = "old" if found == story.old else "new" if found == story.new else "mixture"
        assert whole != "mixture", (at, differences(found, story.old))
        assert answer.made is None or whole == "old", at
        outcomes.add(whole)
    story.check()
    assert outcomes == {"old", "new"}


@pytest.mark.requirement("RB-3")
@strides(7)
def test_a_restore_that_swaps_kinds_killed_at_any_call_is_finished_or_rolled_back(
    server: CrashServer, tmp_path: Path, stride: int
) -> None:
    story = Story(tmp_path / "project", swapped=True)
    calls = _calls_of(server, story, "restore", story.good)
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good)
        found = story.recover()
        assert found in (story.old, story.new), (at, differences(found, story.old))


@pytest.mark.requirement("RB-3")
@strides(11)
def test_opening_the_workspace_is_enough_to_put_a_killed_restore_right(
    server: CrashServer, story: Story, stride: int
) -> None:
    calls = _calls_of(server, story, "restore", story.good)
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good)
        with SessionCheckpointer(story.workspace, SESSION):
            assert describe(story.workspace) in (story.old, story.new), at
        assert debris(story.workspace) == []


@pytest.mark.requirement("RB-3")
@strides(7)
def test_an_undo_killed_at_any_call_is_finished_or_rolled_back(
    server: CrashServer, story: Story, stride: int
) -> None:
    story.go_to(story.good)
    calls = _calls_of(server, story, "undo")
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        story.go_to(story.good)
        story.ask(server, "undo", at=at)
        found = story.recover()
        assert found in (story.old, story.new), (at, differences(found, story.new))


@pytest.mark.requirement("RB-3")
@strides(23)
def test_a_recovery_killed_at_any_call_is_recovered_from(
    server: CrashServer, story: Story, stride: int
) -> None:
    calls = _calls_of(server, story, "restore", story.good)
    for at in range(5, calls + 1, stride):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good)
        for again in range(3, 60, 9):
            story.ask(server, "recover", at=again)
        found = story.recover()
        assert found in (story.old, story.new), (at, differences(found, story.old))


@pytest.mark.requirement("RB-3", "RB-7")
@strides(5)
def test_a_restore_of_some_paths_killed_at_any_call_leaves_one_of_two_trees(
    server: CrashServer, story: Story, stride: int
) -> None:
    paths = ("locked/file", "edited")
    partly = dict(story.new)
    for path in paths:
        partly[path.encode()] = story.old[path.encode()]
    story.go_to(story.bad)
    calls = server.ask(Request(str(story.workspace), "restore", story.good, paths)).calls
    assert describe(story.workspace) == partly
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good, paths=paths)
        found = story.recover()
        assert found in (story.new, partly), (at, differences(found, partly))


@pytest.mark.requirement("RB-2", "RB-3")
@strides(29)
def test_history_goes_on_after_a_killed_restore(
    server: CrashServer, story: Story, stride: int
) -> None:
    calls = _calls_of(server, story, "restore", story.good)
    for at in range(1, calls + 1, stride):
        story.go_to(story.bad)
        story.ask(server, "restore", at=at, argument=story.good)
        with SessionCheckpointer(story.workspace, SESSION) as session:
            saved = session.checkpoint("after the crash")
            state = describe(story.workspace)
            session.restore(story.good)
            assert describe(story.workspace) == story.old
            session.undo()
            assert describe(story.workspace) == state
            session.restore(saved)
            session.restore(story.bad)
            assert describe(story.workspace) == story.new


@pytest.mark.requirement("CP-7")
@strides(3)
def test_a_save_killed_at_any_call_loses_no_acknowledged_checkpoint(
    server: CrashServer, story: Story, stride: int
) -> None:
    known: dict[str, State] = {story.good: story.old, story.bad: story.new}
    for at in range(1, MOST_CALLS, stride):
        fill(story.workspace / "edited", f"version {at}".encode())
        state = describe(story.workspace)
        answer = story.ask(server, "save", at=at)
        assert describe(story.workspace) == state
        if answer.made is not None:
            known[answer.made] = state
        story.recover()
        if not answer.died:
            break
    assert 10 < at < MOST_CALLS - 1
    for checkpoint, expected in known.items():
        story.go_to(checkpoint)
        assert differences(describe(story.workspace), expected) == []
    story.check()


@pytest.mark.requirement("CP-7", "RB-3")
@pytest.mark.parametrize("deaths", [16, pytest.param(60, marks=UNTIMED)])
def test_processes_that_die_at_random_instants_lose_nothing_acknowledged(
    deaths: int, server: CrashServer, story: Story, rng: random.Random
) -> None:
    known: dict[str, State] = {story.good: story.old, story.bad: story.new}
    for number in range(deaths):
        expected = known[rng.choice(sorted(known))]
        target = next(key for key, value in known.items() if value == expected)
        before = describe(story.workspace)
        after_s = rng.uniform(0.002, 0.06)
        if number % 2:
            server.ask(Request(str(story.workspace), "restore", target, after_s=after_s))
            assert story.recover() in (before, expected), (number, after_s)
        else:
            fill(story.workspace / "edited", f"random {number}".encode())
            state = describe(story.workspace)
            answer = server.ask(Request(str(story.workspace), "save", after_s=after_s))
            if answer.made is not None:
                known[answer.made] = state
            assert story.recover() == state
    for checkpoint, expected in known.items():
        story.go_to(checkpoint)
        assert describe(story.workspace) == expected
    story.check()


@pytest.mark.requirement("CP-7")
@strides(3)
def test_a_store_whose_making_was_killed_can_be_used(
    server: CrashServer, tmp_path: Path, stride: int
) -> None:
    for at in range(1, 40, stride):
        workspace = tmp_path / f"project-{at}"
        fill(workspace / "file", b"x")
        answer = server.ask(Request(str(workspace), "save", at=at))
        with SessionCheckpointer(workspace, SESSION) as session:
            first = session.checkpoint("works")
            fill(workspace / "file", b"y")
            session.restore(first)
        assert (workspace / "file").read_bytes() == b"x"
        with open_workspace(workspace, create=False) as opened:
            known = {c.id for c in all_checkpoints(opened.engine.vault.catalog)}
        assert answer.made is None or answer.made in known

"""Part 1 for the story: a process is killed while messages, annotations, edits, notices are told.

What was acknowledged is in the story that the next process finds, of the step that was cut off
everything or nothing, and no checkpoint has changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.torture.acts import Act, telling, told_restore
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.kill_server import KillServer, Order
from tests.torture.killing import at_every_call, killed, order_for
from tests.torture.scenes import SESSION, problems
from tests.torture.telling import may_be_left, story_problems, taken_back

pytestmark = pytest.mark.requirement("RL-1", "SE-7")
_ROUNDS = 5


@pytest.fixture(scope="module")
def server() -> Iterator[KillServer]:
    with KillServer() as server:
        yield server


def _kill(server: KillServer, act: Act, order: Order, *, must_die: bool) -> None:
    answer = killed(server, order, must_die=must_die)
    project, home = act.scene.project, act.scene.home
    wrong = story_problems(project, home, may_be_left(act.stories, answer.told))
    wrong += problems(project, home, act.scene.known, act.trees)
    assert not wrong, "\n".join([f"{order.how} call {order.at}, {answer}", *wrong])


def _at_every_call(campaign: Campaign, scenario: Scenario, act: Act, server: KillServer) -> None:
    kill = partial(_kill, server, act, must_die=True)
    at_every_call(campaign, scenario, act, kill, slice_cases=14)


def test_recording_messages_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    title = "at every call that records messages, annotations, edits and notices"
    act = telling(quick_disk, first=False)
    _at_every_call(campaign, Scenario(1, "kill-telling", title), act, server)


def test_the_first_message_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    title = "at every call that records the first messages"
    act = telling(quick_disk, first=True)
    _at_every_call(campaign, Scenario(1, "kill-first-words", title), act, server)


def test_recording_many_messages_killed_at_random_instants(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    act = telling(quick_disk, first=False, rounds=_ROUNDS)
    began = time.monotonic()
    server.ask(order_for(act, rounds=_ROUNDS))
    longest_s = time.monotonic() - began

    def case(case: Case) -> None:
        act.scene.reset()
        after_s = case.rng().uniform(0.0005, longest_s)
        _kill(server, act, order_for(act, after_s=after_s, rounds=_ROUNDS), must_die=False)

    title = "at a random instant while many messages are recorded"
    campaign.run(Scenario(1, "kill-telling-instants", title), case, slice_cases=5)


@pytest.mark.requirement("RL-2")
def test_the_marks_of_messages_agree_with_the_tree_after_a_restore_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    act = told_restore(quick_disk)

    def kill(order: Order) -> None:
        answer = killed(server, order, must_die=True)
        with act.scene.open() as work:
            work.engine.recover()
            gone = taken_back(work)
            old, new = act.trees
            assert act.scene.state() in ((new,) if gone else (old,))
            assert gone in ([], [1, 2])
            assert len(work.engine.vault.story.messages(SESSION)) == 3
        known, trees = act.acknowledged(answer.made)
        wrong = problems(act.scene.project, act.scene.home, known, trees)
        assert not wrong, "\n".join([f"{order.how} call {order.at}, {answer}", *wrong])

    title = "at every call of a restore that marks messages"
    at_every_call(campaign, Scenario(1, "kill-told-restore", title), act, kill, slice_cases=10)

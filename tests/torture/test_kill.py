"""Part 1: a process is killed at every call, and at any instant. The next one finds all in order.

Small operations are killed before each of their calls, after the last one, and in the middle of
each write. Larger ones, and recoveries, are killed where chance has it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.torture.acts import Act, first_save, small_act
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.kill_server import KillServer, Order
from tests.torture.killing import at_every_call, killed, moments, order_for
from tests.torture.scenes import build_large, change_some, make_scene, problems

pytestmark = pytest.mark.requirement("RL-1")


@pytest.fixture(scope="module")
def server() -> Iterator[KillServer]:
    with KillServer() as server:
        yield server


def _kill(server: KillServer, act: Act, order: Order, *, must_die: bool) -> None:
    """Let it die and look at what the next process finds."""
    answer = killed(server, order, must_die=must_die)
    known, trees = act.acknowledged(answer.made)
    wrong = problems(act.scene.project, act.scene.home, known, trees)
    assert not wrong, "\n".join([f"{order.how} call {order.at}, {answer}", *wrong])


def _at_every_call(campaign: Campaign, scenario: Scenario, act: Act, server: KillServer) -> None:
    kill = partial(_kill, server, act, must_die=True)
    at_every_call(campaign, scenario, act, kill, slice_cases=30)


def test_a_small_save_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    scenario = Scenario(1, "kill-save", "at every call of a small save")
    _at_every_call(campaign, scenario, small_act(quick_disk, "save"), server)


def test_a_first_save_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    scenario = Scenario(1, "kill-first-save", "at every call of the first save")
    _at_every_call(campaign, scenario, first_save(quick_disk), server)


@pytest.mark.torture_share(2)
@pytest.mark.requirement("RL-2")
def test_a_small_restore_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    scenario = Scenario(1, "kill-restore", "at every call of a small restore")
    _at_every_call(campaign, scenario, small_act(quick_disk, "restore"), server)


@pytest.mark.requirement("RL-8")
def test_a_deletion_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    scenario = Scenario(1, "kill-delete", "at every call of a deletion with garbage collection")
    _at_every_call(campaign, scenario, small_act(quick_disk, "delete"), server)


@pytest.mark.requirement("RL-2")
def test_a_recovery_killed_at_random_calls(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    act = small_act(quick_disk, "restore")
    points = moments(act)

    def case(case: Case) -> None:
        rng = case.rng()
        act.scene.reset()
        server.ask(order_for(act, *rng.choice(points)))
        order = order_for(act, rng.randrange(1, len(points)), rng.choice(("before", "half")))
        for _ in range(rng.randint(1, 3)):
            server.ask(Order(order.project, order.home, "recover", at=order.at, how=order.how))
        wrong = problems(act.scene.project, act.scene.home, act.scene.known, act.trees)
        assert not wrong, "\n".join(wrong)

    title = "at a random call of a restore, and again during recovery"
    campaign.run(Scenario(1, "kill-recovery", title), case, slice_cases=12)


@pytest.mark.torture_share(8)
@pytest.mark.requirement("RL-2")
def test_larger_work_killed_at_random_instants(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    seed = Case("kill-instants", campaign.seed, 0).rng("scene")
    scene, good, bad = make_scene(
        quick_disk, partial(build_large, rng=seed), partial(change_some, rng=seed)
    )
    longest: dict[str, float] = {}

    def case(case: Case) -> None:
        rng = case.rng()
        scene.reset()
        if rng.random() < 0.5:
            change_some(scene.project, rng)
            act = Act(scene, "save", "", (scene.state(),))
        else:
            act = Act(scene, "restore", good, (scene.known[bad], scene.known[good]))
        if act.action not in longest:
            began = time.monotonic()
            server.ask(order_for(act))
            longest[act.action] = time.monotonic() - began
            scene.reset()
            if act.action == "save":
                change_some(scene.project, case.rng("again"))
                act = Act(scene, "save", "", (scene.state(),))
        after_s = rng.uniform(0.0005, longest[act.action])
        _kill(server, act, order_for(act, after_s=after_s), must_die=False)

    title = "at a random instant of a larger save or restore"
    campaign.run(Scenario(1, "kill-instants", title), case, slice_cases=12)

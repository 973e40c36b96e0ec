"""Part 1 for the search index: a process is killed while it makes it, or brings it up to date.

The next search finds what it would find with an index made from nothing, in the same order, and
says that it looked at everything; no checkpoint and no word has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.engine.retention.deletion import delete
from tests.torture.acts import Act, build_told
from tests.torture.campaign import Campaign, Scenario
from tests.torture.kill_server import KillServer, Order
from tests.torture.killing import at_every_call, killed
from tests.torture.scenes import SESSION, Scene, problems, save, write
from tests.torture.searching import (
    answers,
    index_files,
    look_up,
    of_a_new_index,
    with_the_index_of,
)
from tests.torture.telling import Teller, told_in

pytestmark = pytest.mark.requirement("RL-1", "SE-8")


@pytest.fixture(scope="module")
def server() -> Iterator[KillServer]:
    with KillServer() as server:
        yield server


def _no_index(scene: Scene) -> None:
    assert not index_files(scene)


def _behind(scene: Scene) -> None:
    """Since the index was made, something was saved, said, approved and deleted."""
    with scene.open() as work:
        look_up(work)
        write(scene.project / "edited", b"later")
        made = save(work, "later than the index").id
        scene.known[made] = scene.state()
        for step in Teller(made).steps()[:4]:
            step(work.engine.vault)
        gone = next(iter(scene.known))
        delete(work.engine, work.engine.resolve(SESSION, gone))
        del scene.known[gone]


def _of_another_log(scene: Scene) -> None:
    """An index that belongs to what never was has to be begun anew."""

    def change(work: OpenWorkspace) -> None:
        save(work, "never was")

    with_the_index_of(scene, change)
    with scene.open() as work:
        made = save(work, "was").id
        scene.known[made] = scene.state()


def _damaged(scene: Scene) -> None:
    with scene.open() as work:
        look_up(work)
    for path in index_files(scene):
        data = path.read_bytes()
        path.write_bytes(data[:40] + bytes(byte ^ 0xFF for byte in data[40:90]) + data[90:])


def _at_every_call(
    campaign: Campaign,
    scenario: Scenario,
    server: KillServer,
    root: Path,
    prepare: Callable[[Scene], None],
) -> None:
    scene = build_told(root)
    prepare(scene)
    scene.keep()
    expected = of_a_new_index(scene)
    with scene.open() as work:
        told = told_in(work.engine.vault)
    act = Act(scene, "search", "", (scene.state(),))

    def kill(order: Order) -> None:
        answer = killed(server, order, must_die=True)
        with scene.open() as work:
            assert answers(work) == expected, f"{order.how} call {order.at}, {answer}"
            assert told_in(work.engine.vault) == told
        wrong = problems(scene.project, scene.home, scene.known, act.trees)
        assert not wrong, "\n".join([f"{order.how} call {order.at}, {answer}", *wrong])

    at_every_call(campaign, scenario, act, kill, slice_cases=8)


def test_the_making_of_a_search_index_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    title = "at every call of a search that creates its index"
    _at_every_call(campaign, Scenario(1, "kill-search-first", title), server, quick_disk, _no_index)


def test_a_search_index_brought_up_to_date_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    title = "at every call of a search that updates its index"
    _at_every_call(campaign, Scenario(1, "kill-search-behind", title), server, quick_disk, _behind)


def test_a_stale_search_index_replaced_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    title = "at every call of a search that replaces a stale index"
    scenario = Scenario(1, "kill-search-anew", title)
    _at_every_call(campaign, scenario, server, quick_disk, _of_another_log)


def test_a_damaged_search_index_made_again_killed_at_every_call(
    campaign: Campaign, server: KillServer, quick_disk: Path
) -> None:
    title = "at every call of a search that rebuilds a damaged index"
    scenario = Scenario(1, "kill-search-damaged", title)
    _at_every_call(campaign, scenario, server, quick_disk, _damaged)

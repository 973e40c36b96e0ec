"""Part 6: links swapped in while a restore runs.

Nothing outside the workspace is written, linked, chmodded or deleted. Swaps are made at one exact
call, wherever in a restore that is; and by another process that never stops.
"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from holdfast.domain.errors import HoldfastError
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.racer import racing
from tests.torture.sentinel import Sentinel
from tests.torture.swapped import RENEWED_AFTER, Place, Swap, SwappedWorkspace

pytestmark = pytest.mark.requirement("RL-7")

_PROVED_EVERY = 20


def test_a_link_swapped_in_at_any_call_of_a_restore(
    campaign: Campaign, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(quick_disk / "place", monkeypatch)
    current: list[SwappedWorkspace] = []
    totals = {"swaps": 0, "touched": 0}

    def renew() -> SwappedWorkspace:
        if current:
            held = current.pop()
            totals["swaps"] += held.swaps
            totals["touched"] += held.trace.touched
            held.close()
        current.append(SwappedWorkspace(place))
        return current[0]

    def case(case: Case) -> None:
        held = renew() if not current or case.number % RENEWED_AFTER == 0 else current[0]
        rng = case.rng()
        try:
            _swap_once(held, place, rng)
            wrong = held.wrong()
            if case.number % _PROVED_EVERY == _PROVED_EVERY - 1:
                wrong += held.prove()
            assert not wrong, "\n".join(wrong)
        except BaseException:
            renew()
            raise
        swaps, touched = totals["swaps"] + held.swaps, totals["touched"] + held.trace.touched
        campaign.note = f"{swaps:,} swaps in time; {touched:,} changing calls traced to their place"

    title = "a directory becomes a link out of the workspace, and back, during a restore"
    try:
        campaign.run(Scenario(6, "swap-at-call", title), case, slice_cases=300)
        assert campaign.note
    finally:
        for held in current:
            held.close()


def _swap_once(held: SwappedWorkspace, place: Place, rng: random.Random) -> None:
    names = ("sub", "sub/deep", "sub/new", ".holdfast", "")
    directory = place.project / rng.choices(names, (4, 4, 1, 2, 3))[0]
    target = place.outside if rng.random() < 0.7 else place.outside / "sub"
    opened = held.opened
    reference = rng.choice((held.good, held.bad))
    paths = rng.choice(((), (), (b"sub",), (b"sub/deep/1", b"0")))

    def act() -> object:
        what = rng.random()
        if what < 0.1:
            return opened.save()
        if what < 0.2:
            return opened.undo()
        return opened.restore(reference, *paths, best_effort=rng.random() < 0.3)

    # The workspace itself is opened by its path, and only in a few of the first calls.
    at = rng.randint(1, held.longest + 2) if directory != place.project else rng.randint(1, 12)
    held.run(act, Swap(directory, target), at, rng.choice((1, 2, 5, 20, 10_000)))


def test_restores_beside_a_process_that_swaps_links_in(
    campaign: Campaign, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(quick_disk / "place", monkeypatch)
    batch = 20 if campaign.is_slice else RENEWED_AFTER
    swaps = 0

    def case(case: Case) -> None:
        """One batch of restores, because a process takes longer to start than they take."""
        nonlocal swaps
        held = SwappedWorkspace(place)
        rng = case.rng()
        spare = place.root / "spare"
        spare.mkdir()
        sentinel = Sentinel(place.outside)
        try:
            # One of them: behind a link in place of the other it would itself work outside.
            directories = (place.project / "sub/deep", place.project / "sub")
            with racing(place.outside, spare, rng.choice(directories)) as racer:
                for _ in range(batch):
                    with contextlib.suppress(HoldfastError):
                        held.opened.restore(
                            rng.choice((held.good, held.bad)), best_effort=rng.random() < 0.5
                        )
            swaps += racer.swaps
            # What the racer left in the way is an edit like any other.
            assert not sentinel.changes(), "\n".join(sentinel.changes())
            wrong = held.prove()
            assert not wrong, "\n".join(wrong)
        finally:
            held.close()
        campaign.note = f"{swaps:,} swaps beside {(case.number + 1) * batch:,} restores"

    title = "restores while a process keeps turning directories into links and back"
    campaign.run(Scenario(6, "swap-race", title), case, slice_cases=1)
    assert swaps > 0

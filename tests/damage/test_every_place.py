"""Every byte of a small store flipped and zeroed, and every file of it cut to every length (RL-4).

Each is found by the check, or nothing is lost: everything is still read as it was. Of some places
the whole store is checked and read as well, and from a few it is restored and repaired. The journal
of an interrupted restore is damaged in the same ways, and recovered from.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.damage.campaign import look_at, recover_from, run_case
from tests.damage.every_place import Ward, at_every_place
from tests.damage.victims import Damage, make_victim
from tests.torture.campaign import Campaign, Case, Scenario

pytestmark = [pytest.mark.requirement("RL-4", "ST-4"), pytest.mark.in_memory]

_WHOLE_EVERY = 101
_REPAIRED_EVERY = 2_003


def _edit(workspace: Path, number: int) -> None:
    (workspace / "text").write_bytes(b"line of a text\n" * 20 + b"edited %d\n" % number)
    (workspace / f"file{number}").write_bytes(b"only in state %d" % number)
    (workspace / "directory").mkdir(exist_ok=True)
    (workspace / "directory" / "same").write_bytes(b"the same in all")


_KINDS = ("flipped", "zeroed", "truncated")


def _go_through(
    campaign: Campaign, scenario: Scenario, kind: str, covered: str, root: Path
) -> None:
    victim = make_victim(root / "victim", _edit, 2, brief=True)
    places = at_every_place(kind, victim.files)
    ward = Ward(victim, root / "ward")
    results: Counter[str] = Counter()

    def case(case: Case) -> None:
        damage = places[case.number]
        if case.number % _REPAIRED_EVERY == 0:
            outcome = run_case(victim, damage, root / "case")
        elif case.number % _WHOLE_EVERY == 0:
            outcome = look_at(victim, damage, root / "case")
        else:
            outcome = ward.look_at(damage)
        results["dead" if outcome == "dead" else "found"] += 1
        campaign.note = ", ".join(f"{count:,} {what}" for what, count in sorted(results.items()))

    campaign.run(
        scenario,
        case,
        slice_cases=150,
        space=len(places),
        covered=covered,
        most_cases=len(places),
    )


@pytest.mark.torture_share(8)
def test_a_flipped_byte_at_every_place_of_a_small_store_is_found_or_dead(
    campaign: Campaign, quick_disk: Path
) -> None:
    title = "one byte of a small store flipped: `check` finds it, or nothing is lost"
    scenario = Scenario(4, "damage-bytes", title)
    _go_through(campaign, scenario, "flipped", "every byte of every file", quick_disk)


@pytest.mark.torture_share(2)
def test_a_zeroed_byte_at_every_place_of_a_small_store_is_found_or_dead(
    campaign: Campaign, quick_disk: Path
) -> None:
    title = "one byte of a small store zeroed: `check` finds it, or nothing is lost"
    scenario = Scenario(4, "damage-zeroed", title)
    _go_through(campaign, scenario, "zeroed", "every byte that is not zero", quick_disk)


@pytest.mark.torture_share(8)
def test_a_small_store_with_a_file_cut_to_any_length_is_found_or_dead(
    campaign: Campaign, quick_disk: Path
) -> None:
    title = "one file of a small store truncated: `check` finds it, or nothing is lost"
    scenario = Scenario(4, "damage-cut", title)
    _go_through(campaign, scenario, "truncated", "every length of every file", quick_disk)


def test_a_journal_damaged_at_any_place_leaves_the_old_tree_or_the_new_one(
    campaign: Campaign, quick_disk: Path
) -> None:
    victim = make_victim(quick_disk / "victim", _edit, 2, brief=True).with_journal()
    journal = {"journal": victim.files["journal"]}
    places = [damage for kind in _KINDS for damage in at_every_place(kind, journal)]
    trees: tuple[object, ...] = ({}, victim.states["n0"])
    untouched = Damage("left as it is", "journal")
    assert recover_from(victim, untouched, quick_disk / "case", trees) == "recovered"
    results: Counter[str] = Counter()

    def case(case: Case) -> None:
        results[recover_from(victim, places[case.number], quick_disk / "case", trees)] += 1
        campaign.note = ", ".join(f"{count:,} {what}" for what, count in sorted(results.items()))

    title = "the journal of an interrupted restore flipped, zeroed or truncated, then recovery"
    campaign.run(
        Scenario(4, "damage-journal", title),
        case,
        slice_cases=20,
        space=len(places),
        covered="every byte, every length",
        most_cases=len(places),
    )

"""Damage at every place of a store: found, confined, repaired, and never restored (RL-4, ST-4).

A slice runs with every test run; `make torture` tries random bytes of a small store and of a larger
one for as long as it is given. `tests.damage.test_every_place` goes through a small one whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.damage.campaign import Wrong, run_case
from tests.damage.victims import Damage, Victim, byte_damages, file_damages, make_victim
from tests.torture.campaign import Campaign, Case, Scenario

pytestmark = [pytest.mark.requirement("RL-4", "ST-4"), pytest.mark.in_memory]

SLICE_STEP = 30_011
KINDS = ("flipped", "one bit", "zeroed", "truncated")


def small_edit(workspace: Path, number: int) -> None:
    (workspace / "src").mkdir(exist_ok=True)
    lines = b"".join(b"line %d of a text\n" % n for n in range(40))
    (workspace / "src" / "module").write_bytes(lines + b"edited %d\n" % number)
    (workspace / f"file{number}").write_bytes(b"only in state %d" % number)
    (workspace / "same").write_bytes(b"the same in all")


def large_edit(workspace: Path, number: int) -> None:
    rng = random.Random(number)
    for _ in range(20):
        path = workspace / f"d{rng.randrange(8)}" / f"f{rng.randrange(12)}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(rng.randbytes(rng.choice((0, 30, 4_000))) + b"text " * rng.randrange(900))
    (workspace / "chunked").write_bytes(random.Random(0).randbytes(1_500_000 + number))


@pytest.fixture
def small(tmp_path: Path) -> Victim:
    return make_victim(tmp_path / "victim", small_edit, 3)


def run_all(victim: Victim, damages: Iterable[Damage], place: Path) -> Counter[str]:
    """Run all cases; print and return what came out."""
    results: Counter[str] = Counter()
    failures: list[str] = []
    for number, damage in enumerate(damages):
        try:
            results[run_case(victim, damage, place / str(number))] += 1
        except Wrong as error:
            results["failed"] += 1
            failures.append(f"{damage}: {error}")
        except Exception as error:
            results["failed"] += 1
            failures.append(f"{damage}: {type(error).__name__}: {error}")
    print(f"damage campaign: {results.total()} cases, {len(failures)} failures, {dict(results)}")
    assert failures == [], "\n".join(failures[:20])
    return results


def test_damage_to_the_journal_of_an_interrupted_restore_harms_nothing_else(
    small: Victim, tmp_path: Path
) -> None:
    with_journal = small.with_journal()
    journal = {"journal": with_journal.files["journal"]}
    damages = [*byte_damages(journal, 97, start=5), Damage("missing", "journal")]
    results = run_all(with_journal, damages, tmp_path / "cases")
    assert results["whole"] > len(damages) // 2


def test_damage_to_whole_files_costs_only_what_it_hit(small: Victim, tmp_path: Path) -> None:
    """A third of what `test_every_two_files_swapped_and_every_file_gone` goes through."""
    damages = list(file_damages(small.files))[::3]
    assert {damage.kind for damage in damages} == {"missing", "swapped"}
    run_all(small, damages, tmp_path / "cases")


def test_a_damaged_record_that_others_build_on_is_repaired_for_good(
    small: Victim, tmp_path: Path
) -> None:
    """They stay in their pack, readable but for what they build on."""
    (pack,) = [name for name in small.files if name.endswith(".pack")]
    damages = [Damage("flipped", pack, at) for at in range(40, len(small.files[pack]), 160)]
    assert run_all(small, damages, tmp_path / "cases")["lossy"] > 5


def test_a_damaged_byte_anywhere_is_found_or_dead(small: Victim, tmp_path: Path) -> None:
    damages = byte_damages(small.files, SLICE_STEP, start=17)
    results = run_all(small, damages, tmp_path / "cases")
    assert results["whole"] > 0
    assert results["dead"] > 0


@pytest.mark.torture_share(4)
def test_damage_at_random_places_of_a_small_store_is_repaired(
    campaign: Campaign, small: Victim, quick_disk: Path
) -> None:
    names = sorted(name for name in small.files if small.files[name])

    def case(case: Case) -> None:
        rng = case.rng()
        name = rng.choice(names)
        damage = Damage(rng.choice(KINDS), name, rng.randrange(len(small.files[name])))
        run_case(small, damage, quick_disk / "case")

    title = "bytes of a small store flipped, zeroed or truncated, then restores and a repair"
    campaign.run(Scenario(4, "damage-repair", title), case, slice_cases=6)


@pytest.mark.torture_share(3)
@pytest.mark.requirement("ST-6")
def test_damage_at_random_places_of_an_encrypted_store_is_repaired(
    campaign: Campaign, tmp_path: Path, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "keys" / "key"
    key.parent.mkdir()
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    victim = make_victim(tmp_path / "victim", small_edit, 3, key=key)
    names = sorted(name for name in victim.files if victim.files[name])

    def case(case: Case) -> None:
        rng = case.rng()
        name = rng.choice(names)
        place = rng.randrange(len(victim.files[name]))
        run_case(victim, Damage(rng.choice((*KINDS, "missing")), name, place), quick_disk / "case")

    title = (
        "bytes of an encrypted store flipped, zeroed or truncated, or a file deleted, then a repair"
    )
    campaign.run(Scenario(4, "damage-sealed", title), case, slice_cases=5)


@pytest.mark.torture
@pytest.mark.torture_share(2)
def test_damage_at_random_bytes_of_a_larger_store(
    long_campaign: Campaign, tmp_path: Path, quick_disk: Path
) -> None:
    victim = make_victim(tmp_path / "victim", large_edit, 12)
    names = sorted(name for name in victim.files if victim.files[name])

    def case(case: Case) -> None:
        rng = case.rng()
        name = rng.choice(names)
        damage = Damage(rng.choice(KINDS), name, rng.randrange(len(victim.files[name])))
        run_case(victim, damage, quick_disk / "case")

    title = "bytes of a larger store flipped, zeroed or truncated, then restores and a repair"
    long_campaign.run(Scenario(4, "damage-larger", title), case, slice_cases=0)


@pytest.mark.torture
@pytest.mark.torture_share(2)
def test_every_two_files_swapped_and_every_file_gone(
    long_campaign: Campaign, small: Victim, quick_disk: Path
) -> None:
    names = sorted(small.files)
    damages = [Damage("missing", name) for name in names]
    damages += [Damage("swapped", a, other=b) for a in names for b in names if a < b]

    def case(case: Case) -> None:
        run_case(small, damages[case.number], quick_disk / "case")

    title = "a file of a small store deleted, or two swapped, then restores and a repair"
    long_campaign.run(
        Scenario(4, "damage-files", title),
        case,
        slice_cases=0,
        space=len(damages),
        covered="every file, every two files",
        most_cases=len(damages),
    )

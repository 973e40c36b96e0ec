"""Damage at every place of a store: found, confined, repaired, and never restored (RL-4, ST-4).

A slice runs with every test run; `make torture` tries every byte of a small store and random bytes
of a larger one for as long as it is given.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.damage.campaign import Wrong, run_case
from tests.damage.victims import Damage, Victim, byte_damages, file_damages, make_victim

pytestmark = pytest.mark.requirement("RL-4", "ST-4")

SLICE_STEP = 30_011


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


def campaign(victim: Victim, damages: Iterable[Damage], place: Path, until: float) -> Counter[str]:
    """Run cases until they or the time are used up; print and return what came out."""
    results: Counter[str] = Counter()
    failures: list[str] = []
    for number, damage in enumerate(damages):
        if time.monotonic() > until:
            break
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
    results = campaign(with_journal, damages, tmp_path / "cases", float("inf"))
    assert results["whole"] > len(damages) // 2


def test_damage_to_whole_files_costs_only_what_it_hit(small: Victim, tmp_path: Path) -> None:
    results = campaign(small, file_damages(small.files), tmp_path / "cases", float("inf"))
    assert results.total() >= len(small.files)


def test_a_damaged_byte_anywhere_is_found_or_dead(small: Victim, tmp_path: Path) -> None:
    damages = byte_damages(small.files, SLICE_STEP, start=17)
    results = campaign(small, damages, tmp_path / "cases", float("inf"))
    assert results["whole"] > 0
    assert results["dead"] > 0


@pytest.mark.torture
def test_damage_at_every_byte_of_a_small_store(
    small: Victim, tmp_path: Path, rng: random.Random, torture_seconds: float
) -> None:
    damages = list(byte_damages(small.files))
    rng.shuffle(damages)
    campaign(small, damages, tmp_path / "cases", time.monotonic() + torture_seconds)


@pytest.mark.torture
def test_damage_at_random_bytes_of_a_larger_store(
    tmp_path: Path, rng: random.Random, torture_seconds: float
) -> None:
    victim = make_victim(tmp_path / "victim", large_edit, 12)
    names = sorted(victim.files)
    kinds = ("flipped", "one bit", "zeroed", "truncated")

    def damages() -> Iterable[Damage]:
        while True:
            name = rng.choice(names)
            if victim.files[name]:
                yield Damage(rng.choice(kinds), name, rng.randrange(len(victim.files[name])))

    campaign(victim, damages(), tmp_path / "cases", time.monotonic() + torture_seconds)
    shutil.rmtree(tmp_path / "cases", ignore_errors=True)

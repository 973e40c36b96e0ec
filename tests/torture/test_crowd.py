"""Part 5: two and twenty processes save, restore, delete, prune, collect and tell, on one store.

After every round the store is checked to its last byte, and what was acknowledged in that round is
compared with what the process knows of it; every acknowledged checkpoint there is, when a store
has lived long enough and at the end. What chance decides is repeated by a case's number; which
process comes first is not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.engine.repair.check import run_checks
from holdfast.ports.progress import NoProgress
from tests.support.tree_hash import debris
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.crowd import (
    OWN_ACTIONS,
    WHOLE_ACTIONS,
    Answer,
    Crowd,
    fingerprint,
    own_part,
    session_of,
    told_by,
)
from tests.torture.scenes import allow_any_number, opened, remove_tree, write

pytestmark = pytest.mark.requirement("RL-8", "CP-8")

_RENEWED_AFTER = 60
_WHOLE_SHARE = 0.3


class _Store:
    """One store in the life of a crowd, and what was acknowledged in it."""

    def __init__(self, root: Path, crowd: Crowd, count: int) -> None:
        self._project, self._home = root / "project", root / "home"
        self._crowd = crowd
        self._known: list[dict[str, str]] = [{} for _ in range(count)]
        self._told = [""] * count

    def round(self, turns: list[tuple[str, int]]) -> None:
        answers = self._crowd.round(turns)
        wrong = [
            f"process {number}, {answer.action}: {answer.error}"
            for number, answer in enumerate(answers)
            if answer.error is not None
        ]
        for known, answer in zip(self._known, answers, strict=True):
            _take_in(known, answer)
        self._told = [a.told or told for a, told in zip(answers, self._told, strict=True)]
        made = [{a.made: a.holds} if a.made and a.holds else {} for a in answers]
        wrong += self.wrong(made)
        assert not wrong, "\n".join(wrong)

    def wrong_in_all(self) -> list[str]:
        return self.wrong(self._known)

    def wrong(self, known: list[dict[str, str]]) -> list[str]:
        with opened(self._project, self._home) as work:
            vault = work.engine.vault
            found = [
                f"check: {p.invariant} {p.subject}: {p.problem}"
                for p in run_checks(vault, data=True, progress=NoProgress())
            ]
            for number, checkpoints in enumerate(known):
                for identifier, holds in checkpoints.items():
                    checkpoint = vault.catalog.checkpoint(session_of(number), identifier)
                    if checkpoint is None:
                        found.append(f"acknowledged {identifier} is gone")
                    elif fingerprint(own_part(vault, checkpoint, number)) != holds:
                        found.append(f"acknowledged {identifier} holds something else")
            found += [
                f"the story of process {number} is not what it told"
                for number, told in enumerate(self._told)
                if told and told_by(vault, number) != told
            ]
        return found + [f"left behind: {name!r}" for name in debris(self._project)]


def _take_in(known: dict[str, str], answer: Answer) -> None:
    if answer.made is not None and answer.holds is not None:
        known[answer.made] = answer.holds
    for gone in answer.deleted:
        known.pop(gone, None)


@contextmanager
def _store(root: Path, count: int) -> Iterator[_Store]:
    """A new store and the processes that share it; in the end everything is compared."""
    remove_tree(root)
    project, home = root / "project", root / "home"
    write(project / "shared/file", b"everybody's")
    allow_any_number(project)
    opened(project, home, create=True).close()
    with Crowd(project, home, count) as crowd:
        store = _Store(root, crowd, count)
        yield store
        wrong = store.wrong_in_all()
        assert not wrong, "\n".join(wrong)


def _rounds(campaign: Campaign, scenario: Scenario, root: Path, count: int, slice_: int) -> None:
    stack = contextlib.ExitStack()
    current: list[_Store] = []
    turns_taken = 0

    def case(case: Case) -> None:
        nonlocal turns_taken
        rng = case.rng()
        if not current or case.number % _RENEWED_AFTER == 0:
            current.clear()
            stack.close()  # which compares everything that the last store has acknowledged
            current.append(stack.enter_context(_store(root / "place", count)))
        actions = WHOLE_ACTIONS if rng.random() < _WHOLE_SHARE else OWN_ACTIONS
        turns = [(rng.choice(actions), rng.getrandbits(32)) for _ in range(count)]
        turns_taken += count
        campaign.note = f"{turns_taken:,} operations; the whole store checked after each round"
        try:
            current[0].round(turns)
        except BaseException:
            current.clear()
            raise

    with stack:
        campaign.run(scenario, case, slice_cases=slice_)


def test_two_processes_share_one_store(campaign: Campaign, quick_disk: Path) -> None:
    title = "2 processes save, restore, delete, clean up and record messages at once"
    _rounds(campaign, Scenario(5, "crowd-of-2", title), quick_disk, 2, 12)


@pytest.mark.torture_share(3)
def test_twenty_processes_share_one_store(campaign: Campaign, quick_disk: Path) -> None:
    title = "20 processes save, restore, delete, clean up and record messages at once"
    _rounds(campaign, Scenario(5, "crowd-of-20", title), quick_disk, 20, 5)

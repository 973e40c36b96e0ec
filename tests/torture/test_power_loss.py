"""Part 2: the power goes at any point, and the disk keeps what it was told to sync, and whatever.

    real work, written down call by call → many states that a power cut may leave of it
    → each is put on a real disk and opened by the real code

Every state must hold what was acknowledged before the cut, be sound, have the old tree or the new,
and take the next save and restore.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.errors import NothingToUndo
from holdfast.engine.retention.deletion import delete
from holdfast.engine.undo.undo import undo_request
from holdfast.testing.faulty_filesystem import Killed
from tests.support.tree_hash import describe
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.disk_model import materialise
from tests.torture.recorded_disk import RecordedDisk, recorded
from tests.torture.scenes import (
    SESSION,
    State,
    allow_any_number,
    build_small,
    change_some,
    opened,
    problems,
    remove_tree,
    restore,
    save,
    stored_state,
    wreck_small,
    write,
)
from tests.torture.telling import Teller, Told, story_problems, told_in

STATES_OF_A_RECORDING = 40


@dataclass(frozen=True, slots=True)
class Mark:
    """What holds from this change on: acknowledged checkpoints, and the trees and stories that
    there may be."""

    position: int
    known: dict[str, State]
    trees: tuple[State, ...]
    stories: tuple[Told, ...]


@dataclass(slots=True)
class Recording:
    """Some work on a workspace, with what was promised at each point of it."""

    root: Path
    disk: RecordedDisk = field(init=False)
    known: dict[str, State] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    stories: tuple[Told, ...] = (Told(),)
    has_story: bool = False

    def __post_init__(self) -> None:
        for path in (self.project, self.home):
            path.mkdir(parents=True)

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def begin(self) -> None:
        self.disk = RecordedDisk(self.root)
        self.mark(describe(self.project))

    def mark(self, *trees: State) -> None:
        position = len(self.disk.model.changes)
        self.marks.append(Mark(position, dict(self.known), trees, self.stories))

    def person_changes(self, change: Callable[[Path], None]) -> None:
        change(self.project)
        self.disk.person_changed_project()
        self.mark(describe(self.project))

    def open(self) -> OpenWorkspace:
        return opened(self.project, self.home, create=True)

    def work(self, action: Callable[[OpenWorkspace], None], *, die_at: int = 0) -> None:
        """One process. If it dies, the next one opens the workspace, which puts it right."""
        self.disk.reborn(die_at)
        try:
            with self.open() as work:
                action(work)
        except Killed:
            self.disk.reborn()
            with self.open() as work:
                work.engine.recover()
                self.story_may_be(work)  # or not: what nobody acknowledged, no sync holds
            self.mark(describe(self.project))

    def save(self, work: OpenWorkspace) -> None:
        made = save(work)
        self.known[made.id] = describe(self.project)
        self.mark(describe(self.project))

    def restore(self, work: OpenWorkspace, rng: random.Random) -> None:
        target = rng.choice(list(self.known))
        self.mark(describe(self.project), self.known[target])
        restore(work, target)
        self.mark(self.known[target])

    def undo(self, work: OpenWorkspace) -> None:
        try:
            request = undo_request(work.engine.vault, SESSION)
        except NothingToUndo:  # every restore so far had nothing to do
            return
        checkpoint = work.engine.vault.catalog.checkpoint(SESSION, request.target.id)
        assert checkpoint is not None
        before = describe(self.project)
        self.mark(before, stored_state(work.engine.vault, checkpoint))
        work.engine.restore(request)
        self.mark(describe(self.project))

    def delete(self, work: OpenWorkspace, rng: random.Random) -> None:
        gone = rng.choice(list(self.known))
        if len(self.known) < 2:
            return
        del self.known[gone]
        self.mark(describe(self.project))
        delete(work.engine, work.engine.resolve(SESSION, gone))
        self.story_was_written(work)

    def tell(self, work: OpenWorkspace, rng: random.Random) -> None:
        """Some steps of a story about the first checkpoint; each is acknowledged by itself."""
        steps = Teller(next(iter(self.known))).steps()[:-1]
        self.has_story = True
        for step in steps[: rng.randint(1, len(steps))]:
            self.mark(describe(self.project))
            step(work.engine.vault)
            self.story_was_written(work)

    def story_was_written(self, work: OpenWorkspace) -> None:
        """Since the last mark: a cut in between leaves what was there before, or what is now."""
        self.story_may_be(work)
        self.stories = self.stories[-1:]
        self.mark(describe(self.project))

    def story_may_be(self, work: OpenWorkspace) -> None:
        found = told_in(work.engine.vault)
        self.stories = (*(story for story in self.stories if story != found), found)
        before = self.marks[-1]
        self.marks[-1] = replace(before, stories=(*before.stories, found))

    def state_is_sound(self, rng: random.Random, root: Path) -> None:
        """Cut the power at a random point, and look."""
        until = rng.randint(0, len(self.disk.model.changes))
        mark = next(m for m in reversed(self.marks) if m.position <= until)
        inodes = self.disk.model.state(until, rng)
        # At the very path where it was recorded: a store knows where its workspace lies.
        remove_tree(self.root)
        self.root.mkdir()
        for path, number in self.disk.tops.items():
            materialise(inodes, number, path)
        wrong = []
        if self.has_story:
            wrong = story_problems(self.project, self.home, mark.stories)
        wrong += problems(self.project, self.home, mark.known, mark.trees)
        assert not wrong, "\n".join([f"before change {until}", *wrong])


def _record_first_save(root: Path, rng: random.Random) -> Recording:
    """The save that makes the store."""
    recording = Recording(root)
    build_small(recording.project)
    recording.begin()
    with recorded(recording.disk):
        die_at = rng.choice((0, 0, rng.randint(1, 150)))
        recording.work(recording.save, die_at=die_at)
        if die_at:
            recording.work(recording.save)
    return recording


def _record_work(root: Path, rng: random.Random) -> Recording:
    """Some commands on a store with a past, some of whose processes die, and a person between."""
    recording = Recording(root)
    build_small(recording.project)
    allow_any_number(recording.project)
    with recording.open() as work:
        recording.known[save(work).id] = describe(recording.project)
        wreck_small(recording.project)
        if rng.random() < 0.7:
            recording.known[save(work).id] = describe(recording.project)
        for number in range(rng.choice((0, 0, 3, 70))):  # up to a log that is about to be folded
            write(recording.project / "same", b"version %d" % number)
            recording.known[save(work).id] = describe(recording.project)
    recording.known = dict(list(recording.known.items())[:2] + list(recording.known.items())[-3:])
    recording.begin()
    with recorded(recording.disk):
        for _ in range(rng.randint(1, 4)):
            _one_command(recording, rng)
    return recording


def _record_telling(root: Path, rng: random.Random) -> Recording:
    """The words that make a story, and more of them between saves and restores."""
    recording = Recording(root)
    build_small(recording.project)
    allow_any_number(recording.project)
    with recording.open() as work:
        recording.known[save(work).id] = describe(recording.project)
    recording.begin()
    with recorded(recording.disk):
        recording.work(lambda work: recording.tell(work, rng))
        for _ in range(rng.randint(0, 2)):
            _one_command(recording, rng)
            recording.work(lambda work: recording.tell(work, rng))
    return recording


def _one_command(recording: Recording, rng: random.Random) -> None:
    die_at = rng.choice((0, 0, rng.randint(1, 400)))
    what = rng.choice(("save", "save", "restore", "restore", "undo", "delete", "tell", "tell"))
    if what == "tell":
        recording.work(lambda work: recording.tell(work, rng), die_at=die_at)
    elif what == "save":
        recording.person_changes(lambda project: change_some(project, rng))
        recording.work(recording.save, die_at=die_at)
    elif what == "delete":
        recording.work(lambda work: recording.delete(work, rng), die_at=die_at)
    else:
        recording.work(lambda work: recording.restore(work, rng), die_at=die_at)
        if what == "undo" and not die_at:
            recording.work(recording.undo)


def _power_cuts(
    campaign: Campaign,
    scenario: Scenario,
    root: Path,
    record: Callable[[Path, random.Random], Recording],
    slice_cases: int,
) -> None:
    recordings: dict[int, Recording] = {}

    def case(case: Case) -> None:
        group = case.number // STATES_OF_A_RECORDING
        if group not in recordings:
            recordings.clear()
            remove_tree(root / "disk")
            group_rng = Case(case.scenario, case.seed, group).rng("recording")
            recordings[group] = record(root / "disk", group_rng)
        recordings[group].state_is_sound(case.rng(), root)

    campaign.run(scenario, case, slice_cases=slice_cases)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(root / "disk")


@pytest.mark.torture_share(3)
@pytest.mark.requirement("RL-1")
def test_the_power_goes_while_a_store_is_made(campaign: Campaign, quick_disk: Path) -> None:
    title = "during the first save"
    scenario = Scenario(2, "power-first-save", title)
    _power_cuts(campaign, scenario, quick_disk, _record_first_save, slice_cases=80)


@pytest.mark.torture_share(8)
@pytest.mark.requirement("RL-1", "RL-2")
def test_the_power_goes_during_random_work(campaign: Campaign, quick_disk: Path) -> None:
    title = "during saves, restores, undos, deletions, recoveries and messages"
    scenario = Scenario(2, "power-work", title)
    _power_cuts(campaign, scenario, quick_disk, _record_work, slice_cases=160)


@pytest.mark.torture_share(3)
@pytest.mark.requirement("RL-1", "SE-7")
def test_the_power_goes_while_messages_are_recorded(campaign: Campaign, quick_disk: Path) -> None:
    title = "while messages, annotations and edits are recorded"
    scenario = Scenario(2, "power-telling", title)
    _power_cuts(campaign, scenario, quick_disk, _record_telling, slice_cases=80)

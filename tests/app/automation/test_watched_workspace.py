"""A workspace under watch makes the checkpoints that are due, and no others."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from pathlib import Path

import pytest

from holdfast.adapters.local.system import SystemClock
from holdfast.adapters.local.watchfiles_watch import WatchfilesWatcher
from holdfast.api.automation import open_watcher, trigger_rules, watch_workspace
from holdfast.app.automation.watched_workspace import WatchedWorkspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import HoldfastError, StoreReadOnly
from holdfast.domain.ids import SessionId
from holdfast.domain.settings.schema import Settings
from holdfast.domain.triggers import SECOND_NS, TriggerRules
from holdfast.ports.watcher import ChangedPlaces, NoWatcher, Watcher
from holdfast.values.classes import replace
from tests.support.composition import configure
from tests.support.hostile_trees import fill
from tests.support.read_only import told_read_only
from tests.support.real_mounts import can_mount, mounted

pytestmark = pytest.mark.requirement("AU-4")

SESSION = SessionId("auto")
AT_ONCE = TriggerRules(files=3, interval_ns=0)
NOON = datetime.now().astimezone().replace(hour=12, minute=0)


@contextmanager
def watching(
    workspace: Path, rules: TriggerRules, watcher: Watcher | None = None
) -> Iterator[tuple[WatchedWorkspace, threading.Event]]:
    happened = threading.Event()
    watcher = watcher or open_watcher()
    watched = watch_workspace(workspace, watcher, os.environ, listener=happened.set, rules=rules)
    try:
        yield watched, happened
    finally:
        watched.close()
        watcher.close()


def wait_until_due(watched: WatchedWorkspace, happened: threading.Event) -> None:
    """As the daemon's timer does it."""
    while (wait := watched.wait_ns(NOON)) != 0:
        happened.wait(30 if wait is None else wait / 1e9)
        happened.clear()


def test_a_burst_of_enough_changes_becomes_one_checkpoint(workspace: Path) -> None:
    with watching(workspace, AT_ONCE) as (watched, happened):
        watched.begin(SESSION)
        for number in range(3):
            fill(workspace / f"part0/new{number}")
        wait_until_due(watched, happened)
        made = watched.consider(NOON)
        assert made is not None
        assert made.checkpoint.kind is Kind.THRESHOLD
        assert made.checkpoint.changed.added == 3
        assert "part0/new0" in made.checkpoint.intent.reasoning
        assert watched.wait_ns(NOON) is None
        assert watched.consider(NOON) is None


@pytest.mark.requirement("CP-16")
def test_an_automatic_checkpoint_writes_nothing_into_a_workspace_that_is_being_deleted(
    workspace: Path,
) -> None:
    with watching(workspace, AT_ONCE) as (watched, happened):
        watched.begin(SESSION)
        shutil.rmtree(workspace / ".holdfast")  # as `rm -rf` does on its way
        for number in range(3):
            fill(workspace / f"part0/new{number}")
        wait_until_due(watched, happened)
        assert watched.is_current()
        assert watched.consider(NOON) is not None
        assert not (workspace / ".holdfast").exists()


def test_a_directory_that_appears_with_files_in_it_counts_as_its_files(workspace: Path) -> None:
    with watching(workspace, AT_ONCE) as (watched, happened):
        watched.begin(SESSION)
        for number in range(3):
            fill(workspace.parent / f"prepared/new{number}")
        (workspace.parent / "prepared").rename(workspace / "arrived")
        wait_until_due(watched, happened)
        made = watched.consider(NOON)
        assert made is not None
        assert made.checkpoint.changed.added == 3


@pytest.mark.requirement("AU-6")
@pytest.mark.parametrize("how", ["replaced", "covered"] if can_mount() else ["replaced"])
def test_another_directory_in_its_place_is_looked_at_without_waiting_for_its_changes(
    workspace: Path, how: str
) -> None:
    with contextlib.ExitStack() as undone, watching(workspace, AT_ONCE) as (watched, happened):
        watched.begin(SESSION)
        if how == "covered":
            undone.enter_context(mounted(workspace))
        else:
            workspace.rename(workspace.with_name("elsewhere"))
            workspace.mkdir()
        for number in range(3):
            fill(workspace / f"new{number}")
        wait_until_due(watched, happened)
        made = watched.consider(NOON)
        assert made is not None
        assert made.checkpoint.changed.added == 3
        fill(workspace / "later")  # what is there now is watched
        assert _changed(watched, workspace) == {b""}


def _changed(watched: WatchedWorkspace, workspace: Path) -> frozenset[bytes]:
    status = workspace.stat()
    found = watched.watch.places(status.st_dev, status.st_ino)
    assert isinstance(found, ChangedPlaces), found
    return found.directories


@pytest.mark.requirement("AU-6")
def test_a_workspace_that_is_gone_is_reported_and_not_asked_for_again_and_again(
    workspace: Path,
) -> None:
    with watching(workspace, AT_ONCE) as (watched, happened):
        watched.begin(SESSION)
        shutil.rmtree(workspace)
        wait_until_due(watched, happened)
        with pytest.raises(HoldfastError, match="cannot open"):
            watched.consider(NOON)
        assert watched.wait_ns(NOON) != 0
        fill(workspace / "again")
        assert watched.finish() is None  # no interval


def test_names_that_come_and_go_are_no_change(workspace: Path) -> None:
    with watching(workspace, AT_ONCE) as (watched, happened):
        watched.begin(SESSION)
        for number in range(9):
            fill(workspace / f"part1/temporary{number}").unlink()
        wait_until_due(watched, happened)
        assert watched.consider(NOON) is None
        assert watched.wait_ns(NOON) is None


def test_changes_that_another_process_has_saved_are_not_saved_again(workspace: Path) -> None:
    from holdfast import SessionCheckpointer

    with watching(workspace, AT_ONCE) as (watched, happened):
        watched.begin(SESSION)
        for number in range(3):
            fill(workspace / f"part0/new{number}")
        with SessionCheckpointer(workspace, SESSION) as session:
            session.checkpoint("by hand, in between")
        wait_until_due(watched, happened)
        assert watched.consider(NOON) is None


def test_a_few_changes_wait_for_the_interval(workspace: Path) -> None:
    rules = TriggerRules(files=5, interval_ns=SECOND_NS // 10)
    with watching(workspace, rules) as (watched, happened):
        watched.begin(SESSION)
        fill(workspace / "part0/one")
        wait_until_due(watched, happened)
        made = watched.consider(NOON)
        assert made is not None
        assert made.checkpoint.kind is Kind.INTERVAL
        assert watched.finish() is None


def test_the_end_of_a_day_on_which_something_changed_is_kept_once(workspace: Path) -> None:
    rules = TriggerRules(files=0, interval_ns=0, end_of_day=time(23, 59, 59))
    with watching(workspace, rules) as (watched, _):
        watched.begin(SESSION)
        fill(workspace / "part0/zero")
        evening = NOON + timedelta(days=1)
        evening = evening.replace(hour=23, minute=59, second=59)
        made = watched.consider(evening)
        assert made is not None
        assert made.checkpoint.kind is Kind.END_OF_DAY
        assert watched.consider(evening) is None
        assert watched.consider(evening + timedelta(days=1)) is None  # nothing changed all day
        fill(workspace / "part0/one")
        assert watched.consider(evening + timedelta(days=2)) is not None


class LaterClock(SystemClock):
    """The system's, some minutes ahead."""

    ahead_s = 0

    def monotonic_ns(self) -> int:  # type: ignore[override]
        return SystemClock.monotonic_ns() + self.ahead_s * SECOND_NS


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("kind", [Kind.END_OF_DAY, Kind.INTERVAL, Kind.THRESHOLD])
def test_a_checkpoint_that_fails_is_tried_again_after_a_minute_and_then_less_often(
    workspace: Path,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    reopened: bool,
) -> None:
    rules = {
        Kind.END_OF_DAY: TriggerRules(files=0, interval_ns=0, end_of_day=time(23, 59, 59)),
        Kind.INTERVAL: TriggerRules(files=0, interval_ns=3_600 * SECOND_NS),
        Kind.THRESHOLD: TriggerRules(files=1, interval_ns=0),
    }[kind]
    evening = NOON.replace(hour=23, minute=59, second=59)
    clock = LaterClock()
    with contextlib.ExitStack() as open_ones:
        watched, happened = open_ones.enter_context(watching(workspace, rules))
        monkeypatch.setattr(watched, "_clock", clock)
        watched.begin(SESSION)
        fill(workspace / "part0/zero")
        while not watched.watch.activity().names:
            happened.wait(1)
        clock.ahead_s = 4_000  # the interval is over, and so is the burst
        for minutes in (1, 2, 4):
            with told_read_only(holdfast_home), pytest.raises(HoldfastError):
                watched.consider(evening)
            assert watched.consider(evening) is None
            wait = watched.wait_ns(evening)
            assert wait is not None
            assert 0 < wait <= minutes * 60 * SECOND_NS
            clock.ahead_s += minutes * 60
            if reopened:
                former = watched
                watched, _ = open_ones.enter_context(watching(workspace, rules))
                monkeypatch.setattr(watched, "_clock", clock)
                watched.take_over(former)
        made = watched.consider(evening)
        assert made is not None
        assert made.checkpoint.kind is kind
        clock.ahead_s += 8 * 60
        assert watched.consider(evening) is None


@pytest.mark.requirement("AU-4")
def test_by_default_a_day_ends_at_midnight_and_a_sleep_through_it_delays_nothing(
    workspace: Path,
) -> None:
    rules = replace(trigger_rules(Settings()), files=0, interval_ns=0, merges=False)
    assert rules.end_of_day == time(0, 0)
    with watching(workspace, rules) as (watched, _):
        watched.begin(SESSION)
        today = datetime.now().astimezone()
        fill(workspace / "part0/zero")
        assert watched.consider(today.replace(hour=23, minute=59)) is None
        # A waiting watcher checks the time of day again soon, however long the computer slept.
        assert watched.wait_ns(today.replace(hour=1)) <= 60 * 10**9  # type: ignore[operator]
        morning = (today + timedelta(days=1)).replace(hour=8, minute=30)
        assert watched.wait_ns(morning) == 0
        made = watched.consider(morning)
        assert made is not None
        assert made.checkpoint.kind is Kind.END_OF_DAY
        fill(workspace / "part0/one")
        assert watched.consider(morning.replace(hour=23, minute=59)) is None
        assert watched.consider((morning + timedelta(days=1)).replace(hour=0)) is not None


def test_without_a_session_nothing_is_made(workspace: Path) -> None:
    with watching(workspace, TriggerRules(files=1, interval_ns=1)) as (watched, _):
        fill(workspace / "part0/one")
        assert watched.wait_ns(NOON) is None
        assert watched.consider(NOON) is None


@pytest.mark.requirement("CL-3")
def test_where_nothing_could_be_saved_watching_does_not_begin(
    workspace: Path, holdfast_home: Path
) -> None:
    with watching(workspace, AT_ONCE) as (watched, _):
        watched.begin(SESSION)
    with told_read_only(holdfast_home), watching(workspace, AT_ONCE) as (watched, _):
        with pytest.raises(StoreReadOnly):
            watched.begin(SESSION)
        assert watched.opened.engine.scan().files > 0


def test_where_nothing_can_be_watched_it_is_looked_at_now_and_then(workspace: Path) -> None:
    with watching(workspace, AT_ONCE, NoWatcher("not here")) as (watched, _):
        watched.begin(SESSION)
        wait = watched.wait_ns(NOON)
        assert wait is not None
        assert 0 < wait <= 60 * SECOND_NS
        assert watched.status().off


@pytest.mark.requirement("AU-6")
def test_where_changes_are_reported_without_proof_bursts_are_kept_and_silence_is_looked_into(
    workspace: Path,
) -> None:
    with watching(workspace, AT_ONCE, WatchfilesWatcher(SystemClock())) as (watched, happened):
        watched.begin(SESSION)
        number = 0
        while not happened.wait(0.2):  # it begins to listen a moment after it was opened
            number += 1
            fill(workspace / "part0/begun", b"%d" % number)
        for number in range(3):
            fill(workspace / f"part0/new{number}")
        wait_until_due(watched, happened)
        made = watched.consider(NOON)
        assert made is not None
        assert made.checkpoint.kind is Kind.THRESHOLD
        assert made.checkpoint.changed.added >= 3
        while watched.watch.activity().names:  # late changes are looked into, and over
            watched.opened.engine.scan()
        wait = watched.wait_ns(NOON)
        assert wait is not None
        assert wait <= 60 * SECOND_NS


def test_the_setting_switches_watching_off_and_says_so(workspace: Path) -> None:
    configure(workspace, watch="off")
    with watching(workspace, AT_ONCE) as (watched, _):
        watched.begin(SESSION)
        assert "setting watch" in (watched.status().doubt or "")


def test_what_was_learned_under_watch_serves_the_next_process(workspace: Path) -> None:
    with watching(workspace, AT_ONCE) as (watched, _):
        watched.begin(SESSION)
        for number in range(4):
            fill(workspace / f"part{number % 3}/file{number}", b"changed")
            watched.finish()
            watched._save_if_changed(SESSION, Kind.INTERVAL)
        pending = list(watched.opened.engine.scanner._pending)
        assert pending
    with watching(workspace, AT_ONCE) as (watched, _):
        stored = watched.opened.engine.vault.stat_cache
        with watched.opened.engine.vault.open_root() as root_fd:
            generation = watched.opened.engine.vault.scan_generation(root_fd)
        assert {path for path, _ in pending} <= stored.load(generation).keys()

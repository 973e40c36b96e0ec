"""Cleaning up beside writers and cut off anywhere: nothing reachable is lost (RL-8, I5)."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.engine import Engine
from holdfast.engine.repair.check import run_checks
from holdfast.engine.retention.cleanup import cleanup
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from holdfast.testing.faulty_filesystem import FaultyFilesystem, Kill, Killed
from tests.support.clocks import DAY_NS
from tests.support.composition import SteppedClock, composed, configure
from tests.support.hostile_trees import fill, noise
from tests.support.tree_hash import describe

pytestmark = [pytest.mark.requirement("RL-8", "ST-2"), pytest.mark.both_stores]

SESSION = SessionId("s")


def save(engine: Engine, workspace: Path, number: int) -> Checkpoint:
    fill(workspace / f"file{number % 5}", noise(20_000, number))
    return engine.save(SESSION, make_intent(f"{number}"), kind=Kind.TOOL).checkpoint


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "kept", b"kept")
    few = {"most": 1}
    configure(workspace, retention={"tool": {"most": 3}, "restore": few, "safety": few})
    return workspace


def require_sound(workspace: Path) -> None:
    with open_workspace(workspace, create=False) as opened:
        found = list(run_checks(opened.engine.vault, data=True, progress=NoProgress()))
        assert found == []


def test_a_cleanup_killed_at_any_call_loses_nothing_and_the_next_goes_on(
    workspace: Path, rng: random.Random
) -> None:
    number, saved, finished = 0, 0, False
    while not finished:
        number += rng.randrange(1, 4) + number // 2
        with composed(workspace) as opened:
            saved += 4
            newest = [save(opened.engine, workspace, n) for n in range(saved - 3, saved + 1)][-1]
            state = describe(workspace)
        fs = FaultyFilesystem(LocalFilesystem(), {number: Kill()})
        later = SteppedClock(time.time_ns() + 2 * DAY_NS)
        try:
            with composed(workspace, fs=fs, clock=later) as opened:
                cleanup(opened.engine, NoProgress())
            finished = True
        except Killed:
            fs.release()
        require_sound(workspace)
        with composed(workspace) as opened:
            fill(workspace / "file0", b"changed")
            request = opened.engine.restore_request(SESSION, newest.id)
            opened.engine.restore(request)
            assert describe(workspace) == state
    later = SteppedClock(time.time_ns() + 2 * DAY_NS)
    with composed(workspace, clock=later) as opened:
        cleanup(opened.engine, NoProgress())
        kinds = [c.kind for c in all_checkpoints(opened.engine.vault.catalog)]
        assert kinds.count(Kind.TOOL) <= 5
        used = opened.store.objects.size_bytes()
    assert used < 12 * 20_000
    require_sound(workspace)


def test_cleaning_up_while_others_save_keeps_what_they_saved(workspace: Path) -> None:
    with open_workspace(workspace, create=True) as opened:
        save(opened.engine, workspace, 0)
    begun = threading.Event()
    failures: list[BaseException] = []

    def clean() -> None:
        try:
            with open_workspace(workspace, create=False) as opened:
                for _ in range(12):
                    cleanup(opened.engine, NoProgress())
                    begun.wait()
                    begun.clear()
        except BaseException as error:
            failures.append(error)

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    with open_workspace(workspace, create=False) as opened:
        number = 0
        while cleaner.is_alive():
            number += 1
            begun.set()
            made = save(opened.engine, workspace, number)
            assert opened.engine.vault.load_tree(made.tree).file_count > 0
    cleaner.join()
    assert failures == []
    require_sound(workspace)

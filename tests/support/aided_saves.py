"""First saves that are helped by a second process, as tests look at them."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.adapters.local.reading_process import ReadingProcess
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.intent import make_intent
from holdfast.engine.repair.check import run_checks
from holdfast.engine.restore.plan import read_report
from holdfast.ports.progress import NoProgress
from tests.support.composition import SESSION, scan_from_nothing

OLD_ENOUGH_S = 0.03
PATIENCE_S = 60


@contextmanager
def opened_new(root: Path) -> Iterator[OpenWorkspace]:
    with open_workspace(root, create=True) as opened:
        yield opened


def save(opened: OpenWorkspace) -> Checkpoint:
    return opened.engine.save(SESSION, make_intent("why")).checkpoint


def require_as_if_alone(opened: OpenWorkspace, saved: Checkpoint) -> None:
    """The tree and what was left out, and every byte of what the tree names."""
    vault = opened.engine.vault
    alone = scan_from_nothing(vault)
    left_out = {(skip.path, skip.describe()) for skip in alone.skipped}
    assert {(s.path, s.describe()) for s in read_report(opened.engine.vault, saved)} == left_out
    assert saved.tree == alone.tree
    assert list(run_checks(vault, data=True, progress=NoProgress())) == []


def read_all(process: ReadingProcess) -> None:
    read_until(process, lambda: False)


def read_until(process: ReadingProcess, enough: Callable[[], bool]) -> None:
    ready = select.poll()
    ready.register(process._output(), select.POLLIN)
    while not process._at_end and not enough():
        assert ready.poll(PATIENCE_S * 1000), "the second process says nothing"
        process.receive()

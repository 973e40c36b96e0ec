"""The real clock, the source of ids, the second reader and every listener keep their contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.adapters.local.system import RandomIds, SystemClock
from holdfast.bootstrap.workspace import open_workspace
from holdfast.engine.components.guard import ComponentProgress
from holdfast.interfaces.cli.progress_bar import ProgressBar
from holdfast.interfaces.cli.terminal import Terminal
from holdfast.ports.objects import ObjectStore
from holdfast.ports.progress import NoProgress, ProgressRelay, TransferProgress
from holdfast.ports.scan_hints import SecondReader
from holdfast.ports.system import Clock, IdSource
from holdfast.testing.system_contracts import (
    ClockContract,
    IdSourceContract,
    ProgressContract,
    SecondReaderContract,
)
from tests.interfaces.cli.test_terminal import Tty

pytestmark = pytest.mark.requirement("CP-8")


class TestSystemClock(ClockContract):
    def clock(self) -> Clock:
        return SystemClock()


class TestRandomIds(IdSourceContract):
    def ids(self) -> IdSource:
        return RandomIds()


class TestNoProgress(ProgressContract):
    def progress(self) -> TransferProgress:
        return NoProgress()


class TestProgressRelay(ProgressContract):
    def progress(self) -> TransferProgress:
        return ProgressRelay()


class TestProgressBar(ProgressContract):
    def progress(self) -> TransferProgress:
        return ProgressBar(Terminal(Tty(), Tty(), {}), "saving")


class TestComponentProgress(ProgressContract):
    def progress(self) -> TransferProgress:
        return ComponentProgress("git", NoProgress())


class TestSecondReader(SecondReaderContract):
    @contextmanager
    def open_reader(self, workspace: Path) -> Iterator[tuple[SecondReader, ObjectStore]]:
        with open_workspace(workspace, create=True) as opened:
            vault = opened.engine.vault
            assert vault.second_reader is not None
            yield vault.second_reader, vault.objects

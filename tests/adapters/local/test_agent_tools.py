"""Processes, running tools and the log of tools on this machine keep their contracts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.local import system as processes
from holdfast.adapters.local.agent_tools import LocalRunningTools, LocalToolLog
from holdfast.ports.agent_tools import RunningTools, ToolLog
from holdfast.ports.system import Processes
from holdfast.testing.agent_tools_contract import RunningToolsContract, ToolLogContract
from holdfast.testing.system_contracts import ProcessesContract

pytestmark = pytest.mark.requirement("SE-12")

_SAY_WHO = """
from holdfast.adapters.local.system import own_identity
print(own_identity(), flush=True)
input()
"""


class TestLocalProcesses(ProcessesContract):
    def processes(self) -> Processes:
        return processes


class TestLocalRunningTools(RunningToolsContract):
    own = processes.own_identity()

    @pytest.fixture(autouse=True)
    def _stranger(self) -> Iterator[None]:
        child = subprocess.Popen(
            [sys.executable, "-c", _SAY_WHO],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ,
        )
        assert child.stdout is not None
        self.stranger = child.stdout.readline().decode().strip()
        yield
        child.communicate()

    def open_tools(self, store: Path) -> RunningTools:
        return LocalRunningTools(store)


class TestLocalToolLog(ToolLogContract):
    def open_log(self, store: Path) -> ToolLog:
        return LocalToolLog(store)

    def test_nothing_is_raised_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        log = self.open_log(tmp_path / "missing")
        self.begin(log, "a", 1)
        log.end("a", 2)
        assert log.calls() == []
        assert log.looks() == []

"""Processes, running tools and the log of tools on this machine keep their contracts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from holdfast.adapters.local import system as processes
from holdfast.adapters.local.agent_tools import LocalRunningTools, LocalToolLog
from holdfast.adapters.local.encryption.cipher import Cipher
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.store_errors import SyncFailures
from holdfast.adapters.local.store_notes import StoreNotes
from holdfast.ports.agent_tools import RunningTools, ToolLog
from holdfast.ports.system import Processes
from holdfast.testing.agent_tools_contract import RunningToolsContract, ToolLogContract
from holdfast.testing.system_contracts import ProcessesContract
from tests.support.encrypted_stores import files_with

pytestmark = pytest.mark.requirement("SE-12")

_SAY_WHO = """
from holdfast.adapters.local.system import own_identity
print(own_identity(), flush=True)
input()
"""


def _notes(store: Path, cipher: Cipher | None = None) -> StoreNotes:
    fs = LocalFilesystem()
    return StoreNotes(fs, store, SyncFailures(fs, store / "suspect"), cipher)


class TestLocalProcesses(ProcessesContract):
    def processes(self) -> Processes:
        return processes


class TestLocalRunningTools(RunningToolsContract):
    own = processes.own_identity()
    cipher: ClassVar[Cipher | None] = None

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
        return LocalRunningTools(store, _notes(store, self.cipher))


class TestSealedRunningTools(TestLocalRunningTools):
    cipher = Cipher(bytes(32))

    def test_the_name_of_a_tool_shows_with_the_key_only(self, tmp_path: Path) -> None:
        self.begin(self.open_tools(tmp_path), "a")
        assert list(files_with(tmp_path, self.stranger.encode())) == []
        assert LocalRunningTools(tmp_path, _notes(tmp_path)).of_others(2_000) == []
        wrong = _notes(tmp_path, Cipher(bytes(range(32))))
        assert LocalRunningTools(tmp_path, wrong).of_others(2_000) == []


class TestLocalToolLog(ToolLogContract):
    cipher: ClassVar[Cipher | None] = None

    def open_log(self, store: Path) -> ToolLog:
        return LocalToolLog(store, _notes(store, self.cipher))

    def test_nothing_is_raised_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        log = self.open_log(tmp_path / "missing")
        self.begin(log, "a", 1)
        log.end("a", 2)
        assert log.calls() == []
        assert log.looks() == []


class TestSealedToolLog(TestLocalToolLog):
    cipher = Cipher(bytes(32))

    def test_a_call_shows_with_the_key_only(self, tmp_path: Path) -> None:
        self.begin(self.open_log(tmp_path), "a", 1)
        assert len(self.open_log(tmp_path).calls()) == 1
        assert list(files_with(tmp_path, b"session", b'"tool"')) == []
        assert LocalToolLog(tmp_path, _notes(tmp_path)).calls() == []
        wrong = _notes(tmp_path, Cipher(bytes(range(32))))
        assert LocalToolLog(tmp_path, wrong).calls() == []

    def test_a_line_that_is_not_sealed_is_left_out(self, tmp_path: Path) -> None:
        self.begin(LocalToolLog(tmp_path, _notes(tmp_path)), "a", 1)
        with (tmp_path / "tool-log").open("ab") as log:
            log.write(b"\n%%%\nAAAA\n")
        self.begin(self.open_log(tmp_path), "b", 2)
        assert [call.begun_ns for call in self.open_log(tmp_path).calls()] == [2]

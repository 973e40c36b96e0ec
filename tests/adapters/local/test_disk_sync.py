"""fsync reaches the disk also where the system's own does not, as on macOS."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from holdfast.adapters.local import disk_sync
from holdfast.adapters.local.local_filesystem import LocalFilesystem

pytestmark = pytest.mark.requirement("RL-1")
FULL = 51


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls, on a system that has the full sync."""
    asked: list[str] = []
    real_call, real_sync = fcntl.fcntl, os.fsync

    def call(fd: int, command: int, *more: int) -> object:
        if command != FULL:
            return real_call(fd, command, *more)
        asked.append("full")
        return 0

    def sync(fd: int) -> None:
        asked.append("fsync")
        real_sync(fd)

    monkeypatch.setattr(disk_sync, "FULL_SYNC", FULL)
    monkeypatch.setattr(fcntl, "fcntl", call)
    monkeypatch.setattr(os, "fsync", sync)
    return asked


def _sync(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        LocalFilesystem().fsync(fd)
    finally:
        os.close(fd)


def test_where_there_is_a_full_sync_it_is_used(tmp_path: Path, asked: list[str]) -> None:
    _sync(tmp_path)
    assert asked == ["full"]


@pytest.mark.parametrize(
    ("number", "falls_back"), [(errno.ENOTSUP, True), (errno.EINVAL, True), (errno.EIO, False)]
)
def test_only_a_file_system_without_it_gets_a_plain_one(
    tmp_path: Path,
    asked: list[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    falls_back: bool,
) -> None:
    def refuse(fd: int, command: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    if falls_back:
        _sync(tmp_path)
        assert asked == ["fsync"]
        return
    with pytest.raises(OSError, match=os.strerror(number)):
        _sync(tmp_path)
    assert asked == []


def test_elsewhere_it_is_a_plain_one(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_sync, "FULL_SYNC", None)
    _sync(tmp_path)
    assert asked == ["fsync"]

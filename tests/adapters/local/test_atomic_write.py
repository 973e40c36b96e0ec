"""Replacing a file: the old content or the new, whatever call fails or is the last one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.store_files import atomic_write
from holdfast.ports.filesystem import write_all
from holdfast.testing.faulty_filesystem import (
    CutShort,
    Fail,
    Fault,
    FaultyFilesystem,
    Kill,
    Killed,
)
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from holdfast.testing.samples import incompressible

OLD, NEW = b"old content", incompressible("new", 10_000)


def test_content_and_name_are_durable_before_it_returns(tmp_path: Path) -> None:
    fs = RecordingFilesystem(LocalFilesystem())
    atomic_write(fs, os.fsencode(tmp_path / "file"), NEW)
    names = [call.name for call in fs.calls]
    assert names.index("fsync") < names.index("rename"), "content before name"
    assert "fsync" in names[names.index("rename") :], "then the directory"
    assert (tmp_path / "file").read_bytes() == NEW
    assert os.listdir(tmp_path) == ["file"]


FAULTS: dict[str, Fault] = {
    "EIO": Fail(errno.EIO),
    "disk full from there on": Fail(errno.ENOSPC, lasting=True),
    "cut short": CutShort(),
    "killed before": Kill(),
    "killed after": Kill(after=True),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_at_any_call_leaves_the_old_content_or_the_new(
    tmp_path: Path, fault: Fault
) -> None:
    path = tmp_path / "file"
    counting = RecordingFilesystem(LocalFilesystem())
    atomic_write(counting, os.fsencode(path), OLD)
    for number in range(1, len(counting.calls) + 1):
        path.write_bytes(OLD)
        fs = FaultyFilesystem(LocalFilesystem(), {number: fault})
        try:
            atomic_write(fs, os.fsencode(path), NEW)
            finished = True
        except (OSError, Killed):
            finished = False
        fs.release()
        assert path.read_bytes() in ((NEW,) if finished else (OLD, NEW))
        if fault == Fail(errno.EIO):
            assert os.listdir(tmp_path) == ["file"], "a failed write leaves no debris"
        atomic_write(LocalFilesystem(), os.fsencode(path), NEW)
        assert path.read_bytes() == NEW
        assert os.listdir(tmp_path) == ["file"], "the next write clears up after a killed one"


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_short_writes_are_continued_until_all_is_written(tmp_path: Path, size: int) -> None:
    data = incompressible("data", size)
    faults: dict[int, Fault] = {number: CutShort() for number in range(1, 100)}
    fd = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        write_all(FaultyFilesystem(LocalFilesystem(), faults), fd, data)
    finally:
        os.close(fd)
    assert (tmp_path / "file").read_bytes() == data


@pytest.mark.requirement("ST-6")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_file_is_private_from_its_first_moment(tmp_path: Path, umask: int) -> None:
    previous = os.umask(umask)
    try:
        atomic_write(LocalFilesystem(), os.fsencode(tmp_path / "file"), b"secret")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "pipe"])
def test_what_is_in_place_of_the_temporary_file_is_not_written_through(
    tmp_path: Path, kind: str
) -> None:
    victim, temporary = tmp_path / "victim", tmp_path / "dir" / ".file.new"
    victim.write_bytes(b"precious")
    temporary.parent.mkdir()
    if kind == "symbolic link":
        temporary.symlink_to(victim)
    elif kind == "hard link":
        temporary.hardlink_to(victim)
    else:
        os.mkfifo(temporary)
    atomic_write(LocalFilesystem(), os.fsencode(tmp_path / "dir" / "file"), b"new")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "dir" / "file").read_bytes() == b"new"
    assert os.listdir(tmp_path / "dir") == ["file"]

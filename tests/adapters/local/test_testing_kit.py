"""The failing file system fails as it says, so that the tests which use it mean something."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.testing.faulty_filesystem import (
    CutShort,
    Fail,
    Fault,
    FaultyFilesystem,
    Kill,
    Killed,
)
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from holdfast.testing.samples import compressible, expect_error, incompressible


def write(fs: FaultyFilesystem | RecordingFilesystem, path: Path, data: bytes) -> int:
    fd = fs.open(os.fsencode(path), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        return fs.write(fd, data)
    finally:
        fs.close(fd)


def test_calls_are_recorded_in_order_and_counted(tmp_path: Path) -> None:
    fs = RecordingFilesystem(LocalFilesystem())
    write(fs, tmp_path / "file", b"data")
    assert [(call.number, call.name) for call in fs.calls] == [
        (1, "open"),
        (2, "write"),
        (3, "close"),
    ]
    assert (fs.count(), fs.count("write", "open"), fs.count("fsync")) == (3, 2, 0)
    fs.forget()
    assert fs.count() == 0


def test_the_chosen_call_fails_and_no_other(tmp_path: Path) -> None:
    fs = FaultyFilesystem(LocalFilesystem(), {2: Fail(errno.ENOSPC)})
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as failure:
        write(fs, tmp_path / "file", b"data")
    assert failure.value.errno == errno.ENOSPC
    assert fs.injected == 1
    assert write(fs, tmp_path / "file", b"data") == 4
    assert (tmp_path / "file").read_bytes() == b"data"


def test_a_lasting_failure_stays_but_lets_files_be_closed(tmp_path: Path) -> None:
    fs = FaultyFilesystem(LocalFilesystem(), {2: Fail(errno.EIO, lasting=True)})
    for _ in range(3):
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            write(fs, tmp_path / "file", b"data")
    assert [call.name for call in fs.calls] == ["open", "write", "close", "open", "open"]


@pytest.mark.parametrize(("size", "written"), [(0, 0), (1, 1), (2, 1), (9, 4)])
def test_a_write_cut_short_takes_half(tmp_path: Path, size: int, written: int) -> None:
    fs = FaultyFilesystem(LocalFilesystem(), {2: CutShort()})
    assert write(fs, tmp_path / "file", b"123456789"[:size]) == written
    assert (tmp_path / "file").read_bytes() == b"123456789"[:written]


@pytest.mark.parametrize(("fault", "content"), [(Kill(), b""), (Kill(after=True), b"data")])
def test_nothing_reaches_the_disk_after_a_kill(
    tmp_path: Path, fault: Fault, content: bytes
) -> None:
    fs = FaultyFilesystem(LocalFilesystem(), {2: fault})
    with pytest.raises(Killed):
        write(fs, tmp_path / "file", b"data")
    assert (tmp_path / "file").read_bytes() == content
    with pytest.raises(Killed):
        fs.unlink(os.fsencode(tmp_path / "file"))
    assert (tmp_path / "file").exists()
    fs.release()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(_subject(fs))


def test_a_failing_close_still_closes(tmp_path: Path) -> None:
    fs = FaultyFilesystem(LocalFilesystem(), {3: Fail(errno.EIO)})
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write(fs, tmp_path / "file", b"data")
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        os.fstat(_subject(fs))


def test_sample_content_is_the_same_on_every_run() -> None:
    assert incompressible("a", 100) == incompressible("a", 200)[:100] != incompressible("b", 100)
    assert compressible("a", 100) == compressible("a", 200)[:100] != compressible("b", 100)
    assert {len(compressible("a", size)) for size in (0, 1, 19, 20, 21)} == {0, 1, 19, 20, 21}


def test_an_expected_error_must_come_and_be_of_its_kind() -> None:
    with expect_error(ValueError):
        raise UnicodeError
    with pytest.raises(AssertionError, match="no ValueError"), expect_error(ValueError):
        pass
    with pytest.raises(KeyError), expect_error(ValueError):
        raise KeyError


def _subject(fs: FaultyFilesystem) -> int:
    """The descriptor that was written to."""
    return next(c.subject for c in fs.calls if c.name == "write" and isinstance(c.subject, int))

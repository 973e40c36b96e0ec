"""A disk that fails while a batch is written: a named error, and nothing earlier is lost (I1).

For every call that the batch makes, one run in which that call fails, is cut short, or is the last
one before the process is killed. Afterwards the store is reopened, on a disk that works.
"""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.errors import NoSpace, StoreDamaged, StoreUnwritable
from holdfast.domain.trees.objects import digest_of
from holdfast.testing.faulty_filesystem import (
    CutShort,
    Fail,
    Fault,
    FaultyFilesystem,
    Kill,
    Killed,
    SqliteFaults,
)
from holdfast.testing.intercepted_filesystem import RecordingFilesystem
from holdfast.testing.samples import compressible, incompressible, store_objects
from tests.adapters.local.objects.local_stores import fill, forget_index, open_objects, opened

EARLIER = [b"earlier", compressible("earlier", 500), incompressible("earlier", 500)]
# More than the appender's buffer, so that the batch is written in several calls.
BATCH = [incompressible("large", (1 << 20) + 10), b"small", compressible("new", 3000)]


def write_batch(store_place: Path, fs: FaultyFilesystem | RecordingFilesystem) -> None:
    store = open_objects(store_place, fs)
    try:
        writer = store.writer()
        try:
            for data in BATCH:
                writer.add(digest_of(data), data)
            writer.commit()
        except BaseException:
            writer.abandon()
            raise
    finally:
        store.close()


def calls_of_a_good_run(place: Path) -> int:
    fs = RecordingFilesystem(LocalFilesystem())
    write_batch(place, fs)
    return len(fs.calls)


def require_sound(place: Path) -> None:
    """Everything earlier is there, later saves work, with the index and without it."""
    for round_number in range(2):
        with opened(place) as store:
            for data in EARLIER:
                assert store.read(digest_of(data)) == data
            later = b"later %d" % round_number
            store_objects(store, [later, *BATCH])
            for data in (*BATCH, later):
                assert store.read(digest_of(data)) == data
            assert list(store.check(data=True)) == []
        forget_index(place)


FAULTS: dict[str, Fault] = {
    "EIO": Fail(errno.EIO),
    "disk full": Fail(errno.ENOSPC),
    "disk full from there on": Fail(errno.ENOSPC, lasting=True),
    "disk gone from there on": Fail(errno.EIO, lasting=True),
    "quota": Fail(errno.EDQUOT),
    "cut short": CutShort(),
    "killed before": Kill(),
    "killed after": Kill(after=True),
}


@pytest.mark.requirement("ST-1")
@pytest.mark.parametrize("fresh", [True, False], ids=["new store", "store in use"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_at_any_call_of_a_batch_loses_nothing_earlier(
    tmp_path: Path, fault: Fault, fresh: bool
) -> None:
    if not fresh:
        fill(tmp_path / "0", EARLIER)
    total = calls_of_a_good_run(tmp_path / "0")
    for number in range(1, total + 1):
        place = tmp_path / str(number)
        if not fresh:
            fill(place, EARLIER)
        fs = FaultyFilesystem(LocalFilesystem(), {number: fault})
        try:
            write_batch(place, fs)
        except Killed:
            assert isinstance(fault, Kill)
        except NoSpace:
            assert isinstance(fault, Fail)
            assert fault.code in (errno.ENOSPC, errno.EDQUOT)
        except StoreDamaged:
            assert isinstance(fault, Fail)
        finally:
            fs.release()
        if fresh:
            fill(place, EARLIER)
        require_sound(place)


@pytest.mark.requirement("ST-1")
@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
def test_a_fault_at_any_write_of_the_index_loses_nothing_earlier(
    tmp_path: Path, error: type[apsw.Error]
) -> None:
    fill(tmp_path / "0", EARLIER)
    with SqliteFaults(fail_at=0) as counted:
        write_batch(tmp_path / "0", RecordingFilesystem(LocalFilesystem()))
    assert counted.changes > 0
    for number in range(1, counted.changes + 1):
        place = tmp_path / str(number)
        fill(place, EARLIER)
        with SqliteFaults(number, error) as faults:
            expected = NoSpace if error is apsw.FullError else StoreDamaged
            with contextlib.suppress(expected):  # a failed fold of the log is no failed commit
                write_batch(place, RecordingFilesystem(LocalFilesystem()))
        assert faults.injected
        require_sound(place)


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_a_disk_that_cannot_be_read_is_trouble_of_the_store(tmp_path: Path, code: int) -> None:
    fill(tmp_path, EARLIER)
    for name in ("open", "pread"):
        counting = RecordingFilesystem(LocalFilesystem())
        with opened(tmp_path, counting) as store:
            store.read(digest_of(EARLIER[0]))
        number = next(call.number for call in counting.calls if call.name == name)
        with opened(tmp_path, FaultyFilesystem(LocalFilesystem(), {number: Fail(code)})) as store:
            with pytest.raises((StoreDamaged, StoreUnwritable)):
                store.read(digest_of(EARLIER[0]))
            assert store.read(digest_of(EARLIER[0])) == EARLIER[0], "it was the disk, not the bytes"


def test_reads_that_come_back_short_are_continued(tmp_path: Path) -> None:
    fill(tmp_path, EARLIER)
    faults: dict[int, Fault] = {number: CutShort() for number in range(1, 200)}
    with opened(tmp_path, FaultyFilesystem(LocalFilesystem(), faults)) as store:
        for data in EARLIER:
            assert store.read(digest_of(data)) == data

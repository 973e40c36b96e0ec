"""The files below SQLite: whatever is read or written, wherever it begins, as on a plain file."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.local.encryption.cipher import OVERHEAD_BYTES, StoreKeys
from holdfast.adapters.local.encryption.sealed_database import PAGE_BYTES, SealedFiles

pytestmark = pytest.mark.requirement("ST-6")

KEYS = StoreKeys(bytes(range(32)))
LOG_HEADER_BYTES = 32
FRAME_BYTES = 24 + PAGE_BYTES
_CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_MODEL_UNITS = 3


def open_file(layer: SealedFiles, path: Path, kind: int) -> apsw.VFSFile:
    if kind == apsw.SQLITE_OPEN_WAL:  # it gets the mode of its database
        path.with_name(path.name.removesuffix("-wal")).touch()
    return layer.xOpen(str(path), [_CREATE | kind, 0])


def content(unit_bytes: int, label: int) -> bytes:
    """A unit as SQLite has it: its last bytes are zero."""
    return bytes((label * 7 + n) % 251 + 1 for n in range(unit_bytes - OVERHEAD_BYTES)) + bytes(
        OVERHEAD_BYTES
    )


def image(start: int, unit_bytes: int, units: int, label: int) -> bytearray:
    parts = (content(unit_bytes, label + number) for number in range(units))
    return bytearray(b"\xff" * start + b"".join(parts))


@st.composite
def pieces(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """The range from 0 to `size` in consecutive pieces."""
    borders = sorted(draw(st.sets(st.integers(1, size - 1), max_size=8)))
    return list(zip([0, *borders], [*borders, size], strict=True))


LOG_BYTES = LOG_HEADER_BYTES + _MODEL_UNITS * FRAME_BYTES
PAGES_BYTES = _MODEL_UNITS * PAGE_BYTES


@given(
    cuts=pieces(LOG_BYTES),
    again=st.lists(st.tuples(st.integers(0, LOG_BYTES - 1), st.integers(1, 9000)), max_size=5),
    syncs=st.sets(st.integers(0, 8)),
    reads=st.lists(st.tuples(st.integers(0, LOG_BYTES), st.integers(1, 9000)), max_size=6),
)
def test_a_log_written_in_any_pieces_reads_back(
    tmp_path_factory: pytest.TempPathFactory,
    cuts: list[tuple[int, int]],
    again: list[tuple[int, int]],
    syncs: set[int],
    reads: list[tuple[int, int]],
) -> None:
    layer = SealedFiles(KEYS.cipher("log"))
    path = tmp_path_factory.mktemp("log") / "file-wal"
    file = open_file(layer, path, apsw.SQLITE_OPEN_WAL)
    expected = image(LOG_HEADER_BYTES, FRAME_BYTES, _MODEL_UNITS, 1)
    for number, (begin, end) in enumerate(cuts):
        file.xWrite(bytes(expected[begin:end]), begin)
        if number in syncs:
            file.xSync(apsw.SQLITE_SYNC_FULL)
    newer = image(LOG_HEADER_BYTES, FRAME_BYTES, _MODEL_UNITS, 99)
    for begin, length in again:
        expected[begin : begin + length] = newer[begin : begin + length]
        file.xWrite(bytes(newer[begin : begin + length]), begin)
    assert file.xFileSize() == path.stat().st_size == LOG_BYTES
    for begin, length in reads:
        assert file.xRead(length, begin) == expected[begin : begin + length]
    assert file.xRead(LOG_BYTES, 0) == expected
    file.xTruncate(LOG_HEADER_BYTES + FRAME_BYTES)
    assert file.xRead(LOG_BYTES, 0) == expected[: LOG_HEADER_BYTES + FRAME_BYTES]
    file.xClose()
    raw = path.read_bytes()
    assert not any(expected[at : at + 12] in raw for at in range(40, 2000, 50))


@given(
    cuts=pieces(PAGES_BYTES),
    reads=st.lists(st.tuples(st.integers(0, PAGES_BYTES), st.integers(1, 9000)), max_size=6),
)
def test_pages_written_in_any_pieces_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    cuts: list[tuple[int, int]],
    reads: list[tuple[int, int]],
) -> None:
    layer = SealedFiles(KEYS.cipher("pages"))
    path = tmp_path_factory.mktemp("pages") / "pages"
    file = open_file(layer, path, apsw.SQLITE_OPEN_MAIN_DB)
    expected = image(0, PAGE_BYTES, _MODEL_UNITS, 1)
    for begin, end in cuts:
        file.xWrite(bytes(expected[begin:end]), begin)
    for begin, length in reads:
        assert file.xRead(length, begin) == expected[begin : begin + length]
    assert file.xRead(PAGES_BYTES + 100, 0) == expected
    assert file.xFileSize() == path.stat().st_size == PAGES_BYTES
    file.xClose()


@pytest.mark.parametrize("kind", [apsw.SQLITE_OPEN_WAL, apsw.SQLITE_OPEN_MAIN_DB])
def test_content_in_the_place_of_the_seal_is_refused_and_not_dropped(
    tmp_path: Path, kind: int
) -> None:
    layer = SealedFiles(KEYS.cipher("x"))
    file = open_file(layer, tmp_path / "file-wal", kind)
    start = LOG_HEADER_BYTES if kind == apsw.SQLITE_OPEN_WAL else 0
    unit = FRAME_BYTES if start else PAGE_BYTES
    with pytest.raises(apsw.IOError, match="in the space of its authentication tag"):
        file.xWrite(b"x" * unit, start)
    file.xClose()


@pytest.mark.parametrize(
    "kind",
    [
        apsw.SQLITE_OPEN_MAIN_JOURNAL,
        apsw.SQLITE_OPEN_TEMP_DB,
        apsw.SQLITE_OPEN_TEMP_JOURNAL,
        apsw.SQLITE_OPEN_TRANSIENT_DB,
        apsw.SQLITE_OPEN_SUBJOURNAL,
        apsw.SQLITE_OPEN_SUPER_JOURNAL,
    ],
)
def test_no_other_kind_of_file_is_opened(tmp_path: Path, kind: int) -> None:
    with pytest.raises(apsw.CantOpenError):
        open_file(SealedFiles(KEYS.cipher("x")), tmp_path / "file", kind)
    assert list(tmp_path.iterdir()) == []


def test_a_frame_of_the_transaction_under_way_is_an_error_when_it_is_damaged(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file-wal"
    file = open_file(SealedFiles(KEYS.cipher("x")), path, apsw.SQLITE_OPEN_WAL)
    file.xWrite(bytes(LOG_HEADER_BYTES), 0)
    for number in range(2):
        file.xWrite(content(FRAME_BYTES, number), LOG_HEADER_BYTES + number * FRAME_BYTES)
    raw = bytearray(path.read_bytes())
    raw[LOG_HEADER_BYTES + FRAME_BYTES + 500] ^= 1
    path.write_bytes(raw)
    with pytest.raises(apsw.CorruptError, match="frame 1"):
        file.xRead(FRAME_BYTES, LOG_HEADER_BYTES + FRAME_BYTES)
    file.xClose()
    later = open_file(SealedFiles(KEYS.cipher("x")), path, apsw.SQLITE_OPEN_WAL)
    assert later.xRead(FRAME_BYTES, LOG_HEADER_BYTES) == content(FRAME_BYTES, 0)
    assert later.xRead(FRAME_BYTES, LOG_HEADER_BYTES + FRAME_BYTES) == bytes(FRAME_BYTES)
    with pytest.raises(apsw.CorruptError, match="frame 1"):
        later.xRead(PAGE_BYTES, LOG_HEADER_BYTES + FRAME_BYTES + 24)
    later.xClose()


def test_every_connection_has_a_layer_that_goes_with_it(tmp_path: Path) -> None:
    before = apsw.vfs_names()
    layer = SealedFiles(KEYS.cipher("x"))
    assert layer.name in apsw.vfs_names()
    del layer
    assert apsw.vfs_names() == before

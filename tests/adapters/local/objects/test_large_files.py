"""Large files are cut by content: a small edit stores a small difference (ST-1)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.engine.scan.file_capture import CHUNK_ABOVE_BYTES, CapturedContent, FileCapture
from holdfast.ports.objects import ObjectStore, WriteTotals
from holdfast.testing.samples import incompressible
from tests.adapters.local.objects.local_stores import opened

SIZE_BYTES = 8 << 20
CONTENT = incompressible("a large file", SIZE_BYTES)


def capture(store: ObjectStore, path: Path) -> tuple[CapturedContent, WriteTotals]:
    fs = LocalFilesystem()
    writer = store.writer()
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        read = FileCapture(fs, writer, SystemClock.now_ns()).capture(
            directory, os.fsencode(path.name), path.stat().st_size, None
        )
    finally:
        os.close(directory)
    return read.content, writer.commit()


def content_of(store: ObjectStore, captured: CapturedContent) -> bytes:
    if captured.chunks is None:
        return store.read(captured.digest)
    pieces = decode_chunk_list(store.read(captured.chunks))
    data = [store.read(piece.digest) for piece in pieces]
    assert [len(part) for part in data] == [piece.size for piece in pieces]
    return b"".join(data)


EDITS: dict[str, Callable[[bytes], bytes]] = {
    "one byte changed": lambda data: data[: SIZE_BYTES // 2] + b"!" + data[SIZE_BYTES // 2 + 1 :],
    "one byte inserted at the front": lambda data: b"!" + data,
    "a line appended": lambda data: data + b"another line\n",
    "a page cut out": lambda data: data[:3_000_000] + data[3_004_096:],
}


@pytest.mark.requirement("ST-1")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_small_edit_of_a_large_file_stores_less_than_three_percent(
    tmp_path: Path, edit: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(CONTENT)
    with opened(tmp_path / "objects") as store:
        before, first = capture(store, path)
        assert first.stored_bytes >= SIZE_BYTES
        path.write_bytes(edit(CONTENT))
        after, second = capture(store, path)
        assert second.stored_bytes < 0.03 * SIZE_BYTES
        assert content_of(store, before) == CONTENT
        assert content_of(store, after) == edit(CONTENT)


@pytest.mark.requirement("ST-1")
def test_the_same_large_file_again_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(CONTENT)
    (tmp_path / "two").write_bytes(CONTENT)
    with opened(tmp_path / "objects") as store:
        first, _ = capture(store, tmp_path / "one")
        second, totals = capture(store, tmp_path / "two")
        assert second == first
        assert totals.stored_bytes == 0
        assert totals.deduplicated_bytes >= SIZE_BYTES


@pytest.mark.parametrize("size", [0, 1, CHUNK_ABOVE_BYTES, CHUNK_ABOVE_BYTES + 1, 5_000_001])
def test_files_on_both_sides_of_the_threshold_come_back(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(CONTENT[:size])
    with opened(tmp_path / "objects") as store:
        captured, _ = capture(store, path)
        assert (captured.chunks is None) == (size <= CHUNK_ABOVE_BYTES)
        assert captured.size == size
        assert content_of(store, captured) == CONTENT[:size]

"""Requests on standard input: whole lines, bounded, whatever the stream is."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from holdfast.interfaces.mcp import stdio
from holdfast.interfaces.mcp.stdio import AnswerQueue, IncomingLines

pytestmark = pytest.mark.requirement("MC-2", "MC-4")


def lines_of(fd: int) -> list[str]:
    async def run() -> list[str]:
        return [line async for line in IncomingLines(fd, AnswerQueue())]

    try:
        return anyio.run(run)
    finally:
        os.close(fd)


def written(data: bytes) -> int:
    """The reading end of a pipe that holds the bytes and is closed behind them."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\nb\n", ["a\n", "b\n"]),
        (b"\n\n", ["\n", "\n"]),
        (b"whole\nlast", ["whole\n", "last\n"]),
        (b"\xff\n", ["\ufffd\n"]),
        ("ü\n".encode(), ["ü\n"]),
    ],
)
def test_whole_lines_are_read(data: bytes, lines: list[str]) -> None:
    assert lines_of(written(data)) == lines


def test_a_file_is_read_like_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "requests").write_bytes(b"a\nb\n")
    assert lines_of(os.open(tmp_path / "requests", os.O_RDONLY)) == ["a\n", "b\n"]


def test_what_cannot_be_waited_for_is_read_to_its_end() -> None:
    assert lines_of(os.open(os.devnull, os.O_RDONLY)) == []


@pytest.mark.parametrize("size", [9, 10, 11, 25, 40])
def test_a_line_beyond_the_limit_is_reported_and_the_next_one_read(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(stdio, "LONGEST_LINE", 10)
    monkeypatch.setattr(stdio, "_PIECE_BYTES", 7)
    first, second = lines_of(written(b"x" * size + b"\nnext\n"))
    assert second == "next\n"
    assert ("longer than a request" in first) is (size + 1 > 10)


@pytest.mark.parametrize("size", [11, 25, 40])
def test_a_line_beyond_the_limit_is_reported_at_the_end_too(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(stdio, "LONGEST_LINE", 10)
    monkeypatch.setattr(stdio, "_PIECE_BYTES", 7)
    (only,) = lines_of(written(b"x" * size))
    assert "longer than a request" in only

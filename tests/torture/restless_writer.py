"""A process that changes one file without a pause, in a way that makes every mixture recognisable.

    python -m tests.torture.restless_writer FILE MANNER SEED

A version of the file is one letter from its beginning to its end, or, where it grows, numbered
records of one letter. Who writes piece by piece does so from the front, so that the file is at any
moment a beginning of one letter and an end of the letter before it. Says `ready`, and goes on until
its input ends.
"""

from __future__ import annotations

import mmap
import os
import random
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.campaign import ROOT

SIZE = 300_000
_PAGE = 4096
_RECORD = b"%c%07d"
_MOST_RECORDS = SIZE // 8
_CHANGES_A_LOOK = 20
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_PIECE_BY_PIECE = ("rewrite_in_pieces", "map")


def never_was(content: bytes, manner: str) -> bool:
    """Whether the file looked like this at no moment, between two versions or in one."""
    if not content:
        return manner not in ("truncate", "append")
    if manner == "append":
        whole = b"".join(_RECORD % (content[:1], n) for n in range(len(content) // 8 + 1))
        return content != whole[: len(content)]
    if manner == "truncate":
        return len(set(content)) > 1
    if len(content) != SIZE:
        return True
    if manner in _PIECE_BY_PIECE:
        first, last = content[0], content[-1]
        new = content.rstrip(bytes([last])) if first != last else content
        return len(set(new)) > 1 or last not in (first, first - 1, first + len(_LETTERS) - 1)
    return len(set(content)) > 1


class _Writer:
    def __init__(self, file: Path, rng: random.Random) -> None:
        self._file = file
        self._rng = rng
        self._records = 0
        self._letter = 0
        self._fd = -1
        self._mapping: mmap.mmap | None = None

    def _next(self) -> bytes:
        self._letter = (self._letter + 1) % len(_LETTERS)
        return self._present()

    def _present(self) -> bytes:
        return _LETTERS[self._letter : self._letter + 1]

    def _open(self) -> int:
        """Sometimes kept open, sometimes opened for each version: a lease tells them apart."""
        if self._fd < 0 or self._rng.random() < 0.5:
            self._close()
            self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        return self._fd

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def rewrite(self) -> None:
        fd, data = self._open(), self._next() * SIZE
        os.pwrite(fd, data, 0)
        self._close() if self._rng.random() < 0.3 else None

    def rewrite_in_pieces(self) -> None:
        fd, data = self._open(), self._next() * _PAGE * 8
        for start in range(0, SIZE, len(data)):
            os.pwrite(fd, data[: SIZE - start], start)

    def truncate(self) -> None:
        data = self._next() * SIZE
        fd = self._open()
        os.ftruncate(fd, 0)
        os.pwrite(fd, data, 0)
        self._close() if self._rng.random() < 0.3 else None

    def append(self) -> None:
        fd = self._open()
        if self._records + 100 > _MOST_RECORDS:
            self._records = 0
            self._next()
        if self._records == 0:
            os.ftruncate(fd, 0)
        data = b"".join(_RECORD % (self._present(), self._records + n) for n in range(100))
        os.pwrite(fd, data, self._records * 8)
        self._records += 100

    def map(self) -> None:
        """Through memory, a page at a time: times of the file hardly ever change."""
        if self._mapping is None:
            with self._file.open("r+b") as file:
                self._mapping = mmap.mmap(file.fileno(), SIZE)
        data = self._next() * _PAGE
        for start in range(0, SIZE, _PAGE):
            end = min(start + _PAGE, SIZE)
            self._mapping[start:end] = data[: end - start]

    def replace(self) -> None:
        beside = self._file.parent.parent / "replacement"
        beside.write_bytes(self._next() * SIZE)
        os.rename(beside, self._file)


MANNERS = ("rewrite", "rewrite_in_pieces", "truncate", "append", "map", "replace")


@contextmanager
def writing(file: Path, manner: str, seed: int) -> Iterator[None]:
    """The test's side: a writer at work for as long as this lasts."""
    command = [sys.executable, "-m", "tests.torture.restless_writer"]
    process = subprocess.Popen(
        [*command, str(file), manner, str(seed)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        process.communicate("")
    assert process.returncode == 0


def main() -> None:
    file, manner, seed = sys.argv[1:]
    writer = _Writer(Path(file), random.Random(seed))
    change: Callable[[], None] = getattr(writer, manner)
    change()
    print("ready", flush=True)
    while not select.select([0], [], [], 0)[0]:
        for _ in range(_CHANGES_A_LOOK):
            change()


if __name__ == "__main__":
    main()

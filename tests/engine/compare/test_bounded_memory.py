"""Comparing files of 200 MB grows this process by little, whatever the edit is.

Each case runs in a process of its own and reports its peak, which nothing else can hide:

    python -m tests.engine.compare.test_bounded_memory CASE
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.diff.hunks import HUNK_BYTES
from holdfast.engine.compare.content_diff import Content, compare_content
from holdfast.engine.compare.git_diff import find_git

ROOT = Path(__file__).resolve().parents[3]
MEBIBYTE = 1024 * 1024
MOST_GROWTH_BYTES = 64 * MEBIBYTE
BLOCKS = 200
LINE_BYTES = 256
LINES = BLOCKS * MEBIBYTE // LINE_BYTES
LINES_IN_A_HUNK = HUNK_BYTES // (LINE_BYTES - 1)


@dataclass(frozen=True)
class Generated:
    """200 MB of text that is made while it is read, with some blocks opened by a line more."""

    edited: frozenset[int]

    @property
    def size_bytes(self) -> int:
        return BLOCKS * MEBIBYTE + LINE_BYTES * len(self.edited)

    def chunks(self) -> Iterator[bytes]:
        filler = b"".join(line(number) for number in range(MEBIBYTE // LINE_BYTES - 1))
        for block in range(BLOCKS):
            if block in self.edited:
                yield line(-1)
            yield line(1_000_000 + block)
            yield filler


def line(number: int) -> bytes:
    return b"%-*d\n" % (LINE_BYTES - 1, number)


def measure(case: str) -> dict[str, Any]:
    """Compare in this process, and tell what came out and by how much the peak grew."""
    text = Generated(frozenset())
    new: Content = Generated(frozenset({BLOCKS // 2} if case == "one edit" else {1, BLOCKS - 2}))
    before = peak_bytes()
    diff = compare_content(
        b"large.txt",
        None if case == "new file" else text,
        text if case == "new file" else new,
        git=(lambda: None) if case == "without git" else find_git,
    )
    added = removed = hunks = 0
    for hunk in diff.hunks():
        hunks += 1
        added += sum(entry.kind == "+" for entry in hunk.lines)
        removed += sum(entry.kind == "-" for entry in hunk.lines)
    return {
        "kind": diff.kind,
        "first_difference": diff.first_difference,
        "hunks": hunks,
        "added": added,
        "removed": removed,
        "growth_bytes": peak_bytes() - before,
    }


def peak_bytes() -> int:
    """The most memory this process ever held.

    Linux carries the parent's peak into `ru_maxrss` of a child; its own is in the status file.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text("ascii", "replace"))
        assert found is not None
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.requirement("CP-4", "PF-5")
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("one edit", ("text", None, 1, 1, 0)),
        ("two edits", ("text", None, 2, 2, 0)),
        ("without git", ("too_large", MEBIBYTE, 0, 0, 0)),
        ("new file", ("text", None, -(-LINES // LINES_IN_A_HUNK), LINES, 0)),
    ],
)
def test_a_file_of_200_mb_does_not_fill_memory(case: str, expected: tuple[object, ...]) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.engine.compare.test_bounded_memory", case],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        check=True,
    )
    measured = json.loads(completed.stdout)
    assert measured.pop("growth_bytes") <= MOST_GROWTH_BYTES
    assert tuple(measured.values()) == expected


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))

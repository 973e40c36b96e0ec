"""Hunks as values: numbering, headers, and applying them to the text they were made from."""

from __future__ import annotations

import pytest

from holdfast.domain.diff.hunks import (
    HUNK_BYTES,
    HUNK_LINES,
    DiffLine,
    Hunk,
    HunkMismatch,
    diff_line,
    hunks_of,
    lines_in,
    split_lines,
)
from holdfast.domain.errors import HoldfastError
from tests.support.hunk_model import apply_hunks

pytestmark = pytest.mark.requirement("CP-4")

REPLACED = Hunk(2, 1, 2, 1, (DiffLine("-", b"two"), DiffLine("+", b"TWO")))
APPENDED = Hunk(3, 0, 4, 1, (DiffLine("+", b"four"),))


@pytest.mark.parametrize(
    ("hunk", "header"),
    [
        (Hunk(1, 3, 1, 4, ()), b"@@ -1,3 +1,4 @@"),
        (Hunk(7, 1, 9, 1, ()), b"@@ -7 +9 @@"),
        (Hunk(0, 0, 1, 2, ()), b"@@ -0,0 +1,2 @@"),
        (Hunk(5, 2, 4, 0, (), b"def f():"), b"@@ -5,2 +4,0 @@ def f():"),
    ],
)
def test_a_header_is_written_as_git_writes_it(hunk: Hunk, header: bytes) -> None:
    assert hunk.header() == header


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"\n", [b"\n"]),
        (b"a", [b"a"]),
        (b"a\r\nb\rc\n\n", [b"a\r\n", b"b\rc\n", b"\n"]),
        (b"a\x0b\x0c\x1c\x85\n", [b"a\x0b\x0c\x1c\x85\n"]),
    ],
)
def test_a_line_ends_at_a_line_feed_and_nowhere_else(text: bytes, lines: list[bytes]) -> None:
    assert split_lines(text) == lines
    for size in (1, 2, 5):
        chunks = [text[begin : begin + size] for begin in range(0, len(text), size)]
        assert list(lines_in(chunks)) == lines


def test_all_hunks_or_any_one_of_them_can_be_applied() -> None:
    old = b"one\ntwo\nthree\n"
    assert apply_hunks(old, [REPLACED, APPENDED]) == b"one\nTWO\nthree\nfour\n"
    assert apply_hunks(old, [APPENDED]) == b"one\ntwo\nthree\nfour\n"
    assert apply_hunks(old, []) == old


@pytest.mark.parametrize(
    ("old", "hunks"),
    [
        pytest.param(b"one\n2\nthree\n", [REPLACED], id="another line stands there"),
        pytest.param(b"one\ntwo", [REPLACED], id="the line has lost its end"),
        pytest.param(b"one\n", [REPLACED], id="the text is shorter"),
        pytest.param(b"one\ntwo\n", [APPENDED], id="the place is past the end"),
        pytest.param(b"one\ntwo\nthree\n", [APPENDED, REPLACED], id="out of order"),
        pytest.param(b"one\ntwo\nthree\n", [REPLACED, REPLACED], id="twice"),
        pytest.param(b"one\ntwo\nthree", [APPENDED], id="the line before has no end"),
        pytest.param(b"one\n", [Hunk(1, 2, 1, 1, (DiffLine(" ", b"one"),))], id="wrong counts"),
        pytest.param(b"", [Hunk(-3, 0, 1, 1, (DiffLine("+", b"one"),))], id="before the start"),
    ],
)
def test_a_hunk_that_does_not_fit_is_refused(old: bytes, hunks: list[Hunk]) -> None:
    with pytest.raises(HunkMismatch) as refused:
        apply_hunks(old, hunks)
    assert isinstance(refused.value, ValueError)
    assert isinstance(refused.value, HoldfastError)


def test_a_very_long_change_comes_as_adjacent_hunks() -> None:
    lines = [b"%d\n" % number for number in range(2 * HUNK_LINES + 10)]
    hunks = list(hunks_of((diff_line("+", line) for line in lines), 1, 1))
    assert [hunk.new_start for hunk in hunks] == [1, HUNK_LINES + 1, 2 * HUNK_LINES + 1]
    assert [hunk.old_start for hunk in hunks] == [0, 0, 0]
    assert apply_hunks(b"", hunks) == b"".join(lines)


def test_long_lines_make_short_hunks() -> None:
    text = (b"x" * (HUNK_BYTES // 2) + b"\n") * 3
    old = b"y\n"
    lines = [diff_line("-", old), *(diff_line("+", line) for line in split_lines(text))]
    hunks = list(hunks_of(lines, 1, 1))
    assert [len(hunk.lines) for hunk in hunks] == [2, 2]
    assert apply_hunks(old, hunks) == text

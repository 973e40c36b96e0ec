"""Whatever the two texts are and whatever compares them, the hunks lead from old to new exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.diff.hunks import Hunk, split_lines
from holdfast.engine.compare.content_diff import compare_content
from holdfast.engine.compare.git_diff import GitProgram, find_git, git_hunks
from holdfast.engine.compare.line_diff import line_hunks
from tests.support.hunk_model import apply_hunks

pytestmark = pytest.mark.requirement("CP-4")

CONTEXTS = st.integers(0, 5)
# Few different lines, so that they repeat and move; some that look like parts of a diff.
PLAIN = [
    b"",
    b"a",
    b"b",
    b"  c",
    b"\td",
    b"def e():",
    b"\r",
    b"f\rg",
    b"h\r",
    b"\xff\xfe",
    b"a" * 90,
]
LOOKALIKES = [b"@@ -1 +1 @@", b"--- a/old", b"+++ b/new", b"-", b"+", b" ", b"\\"]
LOOKALIKES += [b"diff --git a/old b/new", b"\\ No newline at end of file"]
LINES = st.sampled_from(PLAIN + LOOKALIKES) | st.binary(max_size=6).map(
    lambda line: line.replace(b"\n", b"").replace(b"\0", b"")
)
SOUPS = st.lists(LINES, max_size=40)
LAST = st.sampled_from([b"", b"\n"])


@st.composite
def texts(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two texts: unrelated, or the second an edit of the first."""
    old = draw(SOUPS)
    new = list(old)
    if draw(st.booleans()):
        new = draw(SOUPS)
    else:
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(new)))
            new[at : at + draw(st.integers(0, 4))] = draw(st.lists(LINES, max_size=4))
    return b"\n".join(old) + draw(LAST), b"\n".join(new) + draw(LAST)


@dataclass(frozen=True)
class Chunked:
    """Content in chunks of a size that fits nothing."""

    data: bytes
    chunk_bytes: int

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        for begin in range(0, len(self.data), self.chunk_bytes):
            yield self.data[begin : begin + self.chunk_bytes]
            yield b""


CHUNK_BYTES = st.sampled_from([997, 4_096, 65_536, 1_000_000])


def require_exact(old: bytes, new: bytes, hunks: list[Hunk], context: int) -> None:
    """Applying gives the new text; the new side's numbers and the context are right as well."""
    assert apply_hunks(old, hunks) == new
    new_lines = split_lines(new)
    for hunk in hunks:
        begin = hunk.new_start - 1 if hunk.new_count else hunk.new_start
        produced = [line.content() for line in hunk.lines if line.kind != "-"]
        assert new_lines[begin : begin + hunk.new_count] == produced
        changed = [index for index, line in enumerate(hunk.lines) if line.kind != " "]
        assert changed
        assert changed[0] <= context
        assert len(hunk.lines) - 1 - changed[-1] <= context


def installed_git() -> GitProgram:
    git = find_git()
    assert git is not None, "these tests need git"
    return git


@given(pair=texts(), context=CONTEXTS)
def test_the_line_differ_is_exact(pair: tuple[bytes, bytes], context: int) -> None:
    old, new = pair
    hunks = list(line_hunks(old, new, context=context))
    require_exact(old, new, hunks, context)
    assert bool(hunks) == (old != new)


@given(pair=texts(), context=CONTEXTS)
def test_git_is_exact(pair: tuple[bytes, bytes], context: int) -> None:
    old, new = pair
    if old == new:
        new += b"one more"
    hunks = list(git_hunks(installed_git(), [old], [new], context=context))
    require_exact(old, new, hunks, context)


@given(pair=texts(), context=CONTEXTS, chunk_bytes=st.tuples(CHUNK_BYTES, CHUNK_BYTES))
def test_a_change_between_long_equal_parts_is_exact(
    pair: tuple[bytes, bytes], context: int, chunk_bytes: tuple[int, int]
) -> None:
    above = b"".join(b"above %d\n" % number for number in range(5_000))
    below = b"".join(b"below %d\n" % number for number in range(5_000))
    old, new = (above + text + below for text in pair)
    diff = compare_content(
        b"notes.txt",
        Chunked(old, chunk_bytes[0]),
        Chunked(new, chunk_bytes[1]),
        context=context,
        git=_never,
    )
    assert diff.kind == "text"
    hunks = list(diff.hunks())
    require_exact(old, new, hunks, context)
    for hunk in hunks:
        kinds = "".join(line.kind for line in hunk.lines)
        assert len(kinds) - len(kinds.lstrip(" ")) == context
        assert len(kinds) - len(kinds.rstrip(" ")) == context


@given(first=texts(), second=texts(), context=CONTEXTS, with_git=st.booleans())
def test_changes_around_a_long_equal_part_are_exact(
    first: tuple[bytes, bytes], second: tuple[bytes, bytes], context: int, with_git: bool
) -> None:
    between = b"".join(b"between %d\n" % number for number in range(8_000))
    old, new = (a + between + b for a, b in zip(first, second, strict=True))
    diff = compare_content(
        b"notes.txt",
        Chunked(old, 5_000),
        Chunked(new, 7_000),
        context=context,
        git=find_git if with_git else _nowhere,
    )
    assert diff.kind == "text"
    require_exact(old, new, list(diff.hunks()), context)


def _nowhere() -> None:
    """No git is installed."""


def _never() -> GitProgram | None:
    raise AssertionError("a small change in a long text must not start git")

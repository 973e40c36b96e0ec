"""Comparing two contents: what they are, who compares them, and what is said when they cannot be
compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.domain.errors import ContentChanged, UsageError
from holdfast.engine.compare.content_diff import (
    LONGEST_CONTEXT,
    LONGEST_LINE_BYTES,
    BytesContent,
    Content,
    ContentDiff,
    compare_content,
)
from holdfast.engine.compare.git_diff import GitProgram, find_git, git_hunks
from tests.support.hunk_model import apply_hunks

pytestmark = pytest.mark.requirement("CP-4")


def compare(old: bytes | None, new: bytes | None) -> ContentDiff:
    before = None if old is None else BytesContent(old)
    after = None if new is None else BytesContent(new)
    return compare_content(b"src/notes.txt", before, after)


def numbered(count: int, text: bytes = b"") -> bytes:
    return b"".join(b"line %d%b\n" % (number, text) for number in range(count))


def edited_at_both_ends(text: bytes) -> bytes:
    return b"first\n" + text + b"last\n"


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (b"a\n", b"b\n", "text"),
        (b"", b"", "text"),
        (b"\xff\xfe\x01", b"\x80", "text"),
        (b"a\0b", b"a\n", "binary"),
        (b"a\n", b"a\0b", "binary"),
        (None, b"\0", "binary"),
        (b"a" * 7_999 + b"\0", b"a\n", "binary"),
        (b"a" * 8_000 + b"\0", b"a\n", "text"),
    ],
)
def test_a_zero_byte_near_the_start_of_either_side_makes_it_binary(
    old: bytes | None, new: bytes | None, kind: str
) -> None:
    assert compare(old, new).kind == kind


def test_a_binary_change_has_both_sizes_and_no_hunks() -> None:
    diff = compare(b"\0" * 10, b"\0" * 30)
    assert (diff.old_size_bytes, diff.new_size_bytes) == (10, 30)
    assert list(diff.hunks()) == []


def test_the_zero_byte_is_seen_across_chunks() -> None:
    assert compare_content(b"x", Shrinking(b"abc\0", 4), None).kind == "binary"


def test_an_absent_side_has_no_size_and_the_other_is_all_added_or_removed() -> None:
    text = numbered(3)
    added, removed = compare(None, text), compare(text, None)
    assert (added.old_size_bytes, added.new_size_bytes) == (None, len(text))
    assert [hunk.header() for hunk in added.hunks()] == [b"@@ -0,0 +1,3 @@"]
    assert (removed.old_size_bytes, removed.new_size_bytes) == (len(text), None)
    assert [hunk.header() for hunk in removed.hunks()] == [b"@@ -1,3 +0,0 @@"]


def test_an_empty_file_is_not_an_absent_one() -> None:
    diff = compare(b"", b"a\n")
    assert (diff.old_size_bytes, diff.new_size_bytes) == (0, 2)


def test_hunks_can_be_read_again() -> None:
    diff = compare(b"a\n", b"b\n")
    assert list(diff.hunks()) == list(diff.hunks()) != []


@pytest.mark.parametrize("count", [10, 100_000])
def test_equal_contents_have_no_hunks(count: int) -> None:
    diff = compare(numbered(count), numbered(count))
    assert (diff.kind, list(diff.hunks())) == ("text", [])


@pytest.mark.parametrize("context", [-1, LONGEST_CONTEXT + 1])
def test_a_context_out_of_range_is_refused(context: int) -> None:
    with pytest.raises(UsageError):
        compare_content(b"x", BytesContent(b""), None, context=context)


def test_two_absent_contents_are_refused() -> None:
    with pytest.raises(UsageError):
        compare_content(b"x", None, None)


def test_a_small_edit_in_a_long_text_is_numbered_and_headed_as_git_does_it() -> None:
    git = find_git()
    assert git is not None
    old = b"".join(
        b"def function_%d():\n    first = 1\n    second = 2\n    third = 3\n    fourth = 4\n"
        b"    return first + second + third + fourth, %d\n\n\n" % (number, number)
        for number in range(3_000)
    )
    new = old.replace(b"fourth, 1500\n", b"fourth, 'x'\n")
    diff = compare_content(b"x.py", BytesContent(old), BytesContent(new), context=1)
    hunks = list(diff.hunks())
    assert hunks == list(git_hunks(git, [old], [new], context=1))
    assert hunks[0].heading == b"def function_1500():"


@pytest.mark.parametrize("rest", [10, 30, 33, 34, 35, 50])
def test_a_repeated_block_in_a_long_text_is_placed_well_and_keeps_its_context(rest: int) -> None:
    block = [b"def repeated():\n", *(b"    step(%d)\n" % number for number in range(60))]
    old = b"".join(block * 100 + block[:rest])
    new = b"".join(block * 101 + block[:rest])
    diff = compare_content(b"x.py", BytesContent(old), BytesContent(new), context=3)
    (hunk,) = diff.hunks()
    assert apply_hunks(old, [hunk]) == new
    assert [line.kind for line in hunk.lines[:4]] == [" ", " ", " ", "+"]
    # Moving it to its first line pays only as far as that is near.
    assert (hunk.lines[3].text == b"def repeated():") == (rest <= 30)


def test_a_piece_of_a_long_line_is_no_heading() -> None:
    above = b"1" + b"word " * 100_000 + b"\n" + b"  indented\n" * 50
    diff = compare(above + b"  old\n", above + b"  new\n")
    assert [hunk.heading for hunk in diff.hunks()] == [b""]


def test_a_large_change_is_compared_by_git(tmp_path: Path) -> None:
    git = find_git()
    assert git is not None
    counting = counting_git(git, tmp_path)
    old = numbered(20_000)
    new = edited_at_both_ends(old)
    diff = compare_content(b"x", BytesContent(old), BytesContent(new), git=lambda: counting)
    assert apply_hunks(old, diff.hunks()) == new
    assert (tmp_path / "calls").read_text("utf-8") == "called\n"


def test_a_small_change_does_not_start_git(tmp_path: Path) -> None:
    git = find_git()
    assert git is not None
    counting = counting_git(git, tmp_path)
    for old, new in ((b"a\n", b"b\n"), (numbered(20_000), numbered(20_000) + b"last\n")):
        diff = compare_content(b"x", BytesContent(old), BytesContent(new), git=lambda: counting)
        assert apply_hunks(old, diff.hunks()) == new
    assert not (tmp_path / "calls").exists()


def test_without_git_on_the_search_path_the_hunks_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    old = numbered(20_000)
    new = edited_at_both_ends(old)
    diff = compare(old, new)
    assert diff.kind == "text"
    hunks = list(diff.hunks())
    assert apply_hunks(old, hunks) == new
    assert sum(line.kind != " " for hunk in hunks for line in hunk.lines) == 2


@pytest.mark.parametrize("lines", [20_000, 150_000])
def test_when_git_fails_the_hunks_are_exact(lines: int, tmp_path: Path) -> None:
    """Up to what the line differ takes, and beyond that as a replacement of the whole middle."""
    broken = GitProgram(str(tmp_path / "gone"))
    old = b"same\n" * 9 + numbered(lines) + b"same\n" * 9
    new = old.replace(b"line 0\n", b"zero\n").replace(b"line %d\n" % (lines - 1), b"last\n")
    diff = compare_content(
        b"x", BytesContent(old), BytesContent(new), context=2, git=lambda: broken
    )
    assert diff.kind == "text"
    hunks = list(diff.hunks())
    assert apply_hunks(old, hunks) == new
    assert hunks[0].old_start == 8


def test_content_that_cannot_be_compared_is_named_with_sizes_and_the_first_difference() -> None:
    old = b"same\n" + numbered(150_000)
    new = b"same\n" + edited_at_both_ends(numbered(150_000))
    diff = compare_content(b"x", BytesContent(old), BytesContent(new), git=lambda: None)
    assert (diff.kind, diff.first_difference) == ("too_large", 5)
    assert (diff.old_size_bytes, diff.new_size_bytes) == (len(old), len(new))
    assert list(diff.hunks()) == []


@pytest.mark.parametrize("insert", [True, False])
def test_a_long_run_of_only_added_or_removed_lines_needs_no_answer(insert: bool) -> None:
    short = b"head\n" * 5 + b"tail\n" * 5
    long = b"head\n" * 5 + numbered(300_000) + b"tail\n" * 5
    old, new = (short, long) if insert else (long, short)
    diff = compare_content(b"x", BytesContent(old), BytesContent(new), git=lambda: None)
    hunks = list(diff.hunks())
    assert diff.kind == "text"
    assert len(hunks) > 1
    assert apply_hunks(old, hunks) == new
    assert sum(line.kind == " " for hunk in hunks for line in hunk.lines) == 6


def test_a_line_without_end_is_too_large_to_be_shown() -> None:
    old = b"a" * (LONGEST_LINE_BYTES + 1)
    diff = compare(old, b"b" + old)
    assert (diff.kind, diff.first_difference) == ("too_large", 0)
    shorter = b"a" * (LONGEST_LINE_BYTES // 2)
    diff = compare(shorter, b"b" + shorter)
    assert diff.kind == "text"
    assert apply_hunks(shorter, diff.hunks()) == b"b" + shorter


@pytest.mark.parametrize("count", [10, 50_000])
def test_a_content_that_ends_early_is_reported(count: int) -> None:
    text = numbered(count)
    shrinking: Content = Shrinking(text[: len(text) // 2], len(text))
    with pytest.raises(ContentChanged):
        list(compare_content(b"x", BytesContent(text), shrinking).hunks())


@dataclass(frozen=True)
class Shrinking:
    """A content, byte by byte or in a few pieces, that has fewer bytes than it said."""

    data: bytes
    size_bytes: int

    def chunks(self) -> Iterator[bytes]:
        step = max(1, len(self.data) // 10)
        for begin in range(0, len(self.data), step):
            yield self.data[begin : begin + step]


def counting_git(git: GitProgram, directory: Path) -> GitProgram:
    """Git itself, behind a script that notes each call."""
    executable = directory / "git"
    executable.write_text(
        f'#!/bin/sh\necho called >> {directory}/calls\nexec {git.executable} "$@"\n', "utf-8"
    )
    executable.chmod(0o755)
    return GitProgram(str(executable))

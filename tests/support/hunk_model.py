"""A plain model of what hunks mean: the old text with each of them put in its place."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.domain.diff.hunks import Hunk, HunkMismatch, mismatch, split_lines


def apply_hunks(old: bytes, hunks: Iterable[Hunk]) -> bytes:
    """The text after these hunks, which must be in order and fit `old` exactly."""
    source = split_lines(old)
    result: list[bytes] = []
    position = 0
    for hunk in hunks:
        begin = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        if not position <= begin <= len(source):
            raise mismatch(hunk, "is outside the text, or comes before the hunk it follows")
        result += source[position:begin]
        result += _replaced(source, begin, hunk)
        position = begin + hunk.old_count
    result += source[position:]
    # Joining would glue these two lines into one that neither side ever had.
    if any(not line.endswith(b"\n") for line in result[:-1]):
        raise HunkMismatch("lines would follow a last line that has no line end")
    return b"".join(result)


def _replaced(source: list[bytes], begin: int, hunk: Hunk) -> list[bytes]:
    expected = [line.content() for line in hunk.lines if line.kind != "+"]
    result = [line.content() for line in hunk.lines if line.kind != "-"]
    if (len(expected), len(result)) != (hunk.old_count, hunk.new_count):
        raise mismatch(hunk, "does not have the lines that its header counts")
    if source[begin : begin + hunk.old_count] != expected:
        raise mismatch(hunk, "expects other lines than the text has there")
    return result

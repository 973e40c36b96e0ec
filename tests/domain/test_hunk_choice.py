"""Some hunks of a difference reverted and the others kept, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.diff.hunk_choice import hunk_key, hunk_name, numbered, revert_hunks
from holdfast.domain.diff.hunks import Hunk, HunkMismatch
from holdfast.domain.errors import UsageError
from holdfast.engine.compare.line_diff import line_hunks
from tests.support.hunk_model import apply_hunks

pytestmark = pytest.mark.requirement("RB-7")

_LINES = st.lists(
    st.sampled_from([b"a", b"b", b"  c", b"", b"\r", b"d\r", b"\xff\xfe", b"e\0f"]), max_size=24
)
_TEXTS = st.builds(
    lambda lines, ended: b"\n".join(lines) + (b"\n" if ended and lines else b""),
    _LINES,
    st.booleans(),
)


def _pieces(text: bytes, size: int) -> Iterator[bytes]:
    return (text[begin : begin + size] for begin in range(0, len(text), size))


def _reverted(new: bytes, hunks: list[Hunk], piece_bytes: int = 7) -> bytes:
    return b"".join(revert_hunks(_pieces(new, piece_bytes), hunks))


@given(
    _TEXTS, _TEXTS, st.integers(0, 3), st.sets(st.integers(0, 20)), st.sampled_from([1, 2, 5, 999])
)
def test_reverting_some_hunks_is_applying_the_others(
    old: bytes, new: bytes, context: int, chosen: set[int], piece_bytes: int
) -> None:
    hunks = list(line_hunks(old, new, context=context))
    mine = [hunk for number, hunk in enumerate(hunks) if number in chosen]
    others = [hunk for number, hunk in enumerate(hunks) if number not in chosen]
    assert _reverted(new, hunks, piece_bytes) == old
    assert _reverted(new, [], piece_bytes) == new
    assert _reverted(new, mine, piece_bytes) == apply_hunks(old, others)


@given(_TEXTS, _TEXTS, st.integers(0, 3))
def test_every_hunk_of_a_difference_has_a_name_of_its_own(
    old: bytes, new: bytes, context: int
) -> None:
    names = [hunk.name for hunk in numbered(line_hunks(old, new, context=context))]
    assert len(set(names)) == len(names)


def test_a_name_stays_when_other_parts_of_the_text_change_and_goes_with_its_own() -> None:
    old = b"".join(b"line %d\n" % number for number in range(40))
    new = old.replace(b"line 30\n", b"line thirty\n")
    [alone] = line_hunks(old, new, context=3)
    _, moved = line_hunks(old, b"first\n" + new, context=3)
    assert moved.new_start == alone.new_start + 1
    assert hunk_name(moved) == hunk_name(alone)
    [other] = line_hunks(old, new.replace(b"thirty", b"XXX"), context=3)
    assert hunk_name(other) != hunk_name(alone)


def test_a_text_that_the_hunk_was_not_made_from_is_refused() -> None:
    [hunk] = line_hunks(b"a\nb\n", b"a\nc\n", context=3)
    for other in (b"a\nb\n", b"a\nc", b"a\n", b"", b"a\nc\x00\n"):
        with pytest.raises(HunkMismatch, match="expects other lines"):
            _reverted(other, [hunk])
    [late] = line_hunks(b"a\n" * 9 + b"b\n", b"a\n" * 9 + b"c\n", context=0)
    with pytest.raises(HunkMismatch, match="outside"):
        _reverted(b"a\n" * 5, [late])
    with pytest.raises(HunkMismatch, match="before the hunk"):
        _reverted(b"a\n" * 9 + b"c\n", [late, late])


def test_two_lines_are_never_glued_into_one() -> None:
    """A very long change is cut into hunks; the old text may end, without a line end, in one."""
    [whole] = line_hunks(b"x", b"y\nz\n", context=0)
    removed = tuple(line for line in whole.lines if line.kind == "-")
    first = Hunk(1, 1, 0, 0, removed)
    with pytest.raises(HunkMismatch, match="no line end") as refused:
        _reverted(b"y\nz\n", [first])
    assert refused.value.hint is not None


@pytest.mark.parametrize(("text", "key"), [("1", 1), ("12", 12), ("0123456789ab", "0123456789ab")])
def test_a_hunk_goes_by_its_number_or_its_name(text: str, key: int | str) -> None:
    assert hunk_key(text) == key


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1.5", "0123456789AB", "²", "123456789abcd"])
def test_anything_else_is_no_hunk(text: str) -> None:
    with pytest.raises(UsageError, match="is not a hunk"):
        hunk_key(text)

"""New pieces of large content find the ones that they came from, however often it changed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import Piece, digest_of
from holdfast.engine.scan.file_capture import FormerPieces


def piece(name: str, size: int) -> Piece:
    return Piece(size, digest_of(name.encode()))


@pytest.mark.requirement("ST-1", "DB-2")
@given(st.integers(1, 400), st.randoms(use_true_random=False))
def test_when_every_piece_changes_a_little_each_finds_its_own(
    count: int, rng: random.Random
) -> None:
    sizes = [rng.randrange(16_000, 256_000) for _ in range(count)]
    former = FormerPieces([piece(f"old {n}", size) for n, size in enumerate(sizes)])
    for number, size in enumerate(sizes):
        changed = piece(f"new {number}", max(1, size + rng.randrange(-size // 9, size // 9)))
        assert former.counterpart(changed) == digest_of(f"old {number}".encode())


@pytest.mark.requirement("ST-1", "DB-2")
def test_pieces_behind_an_insertion_find_their_place_again() -> None:
    old = [piece(f"old {n}", 60_000) for n in range(10)]
    former = FormerPieces(old)
    inserted = [piece(f"inserted {n}", 100_000) for n in range(5)]
    for new in inserted:
        former.counterpart(new)
    assert former.counterpart(old[3]) is None
    assert former.counterpart(piece("changed", 61_000)) == old[4].digest


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 300_000))))
def test_whatever_comes_a_counterpart_is_one_of_the_former_pieces(
    news: list[tuple[int, int]],
) -> None:
    old = [piece(f"old {n}", 1 + n * 999 % 50_000) for n in range(10)]
    former = FormerPieces(old)
    known: set[Digest | None] = {None, *(each.digest for each in old)}
    for number, size in news:
        assert former.counterpart(piece(f"old {number}", size)) in known
    assert FormerPieces([]).counterpart(piece("new", 1)) is None

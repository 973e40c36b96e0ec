"""Which piece of an earlier version a new piece of large content resembles.

    a piece that the earlier version has too says where the two run side by side
    → one that it does not have resembles the piece that lies at the same place there
    → and when the two are about as long, they end at the same place as well

Cuts follow the content, so a change in the middle of a piece leaves most of it where it was: stored
as a difference to its counterpart it takes what changed, however many pieces a change touches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from holdfast.domain.chunk_lists import Piece
from holdfast.domain.ids import Digest

_ABOUT = 8
"""An eighth more or less: what a few changed rows make of a piece, and a moved cut does not."""


class FormerPieces:
    """Asked for each new piece in order, from the first."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._starts = [0, *accumulate(piece.size for piece in pieces)]
        self._numbers = {piece.digest: number for number, piece in enumerate(pieces)}
        self._at_bytes = 0
        self._shift_bytes = 0

    def counterpart(self, new: Piece) -> Digest | None:
        """The piece that this one resembles; None when it is there itself, or beyond the end."""
        start = self._at_bytes
        self._at_bytes += new.size
        number = self._numbers.get(new.digest)
        if number is not None:
            self._shift_bytes = self._starts[number] - start
            return None
        middle = start + self._shift_bytes + new.size // 2
        number = bisect_right(self._starts, middle) - 1
        if not 0 <= number < len(self._pieces):
            return None
        former = self._pieces[number]
        if abs(new.size - former.size) * _ABOUT <= former.size:
            self._shift_bytes = self._starts[number + 1] - self._at_bytes
        return former.digest

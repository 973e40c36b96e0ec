"""Scoring rows while the full-text index finds them: one number for each, so that it stays quick.

number = score in thousandths · 2^16 + one bit for each column in which something matched
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apsw

from holdfast.adapters.local.search.expressions import ASIDE, Expression
from holdfast.domain.search.ranking import score

_COLUMN_BITS = 16
_PARTS = 1000
_FORM = 0.6
"""What another form of a word is worth, as a share of the word itself."""


class Scorer:
    """Called by the database for every row it finds; `about` says beforehand what was asked."""

    def __init__(self) -> None:
        self._phrases: Sequence[tuple[int, int, float]] = ()
        self._weights: Sequence[float] = ()
        self._rarities: Sequence[float] = ()
        self._average = 0.0

    def about(
        self, expression: Expression, weights: Sequence[float], rarities: Sequence[float]
    ) -> None:
        self._phrases = [
            (n, term, _FORM if n in expression.forms else 1.0)
            for n, term in enumerate(expression.terms)
            if term is not None
        ]
        self._weights = weights
        self._rarities = rarities
        self._average = 0.0

    def __call__(self, api: apsw.FTS5ExtensionApi, /, *_: object) -> int:
        if not self._average:
            self._average = max(api.column_total_size() / max(api.row_count, 1), 1.0)
        frequencies = [0.0] * len(self._rarities)
        columns = 0
        for phrase, term, share in self._phrases:
            for column in api.phrase_columns(phrase):
                columns |= 1 << column
                if term != ASIDE:
                    times = len(api.phrase_column_offsets(phrase, column))
                    frequencies[term] += times * share * self._weights[column]
        worth = score(frequencies, self._rarities, api.column_size() / self._average)
        return (int(worth * _PARTS) << _COLUMN_BITS) | columns


def score_in(number: int) -> float:
    return (number >> _COLUMN_BITS) / _PARTS


def columns_in(number: int) -> Iterator[int]:
    """The numbers of the columns in which something matched."""
    return (column for column in range(_COLUMN_BITS) if number >> column & 1)

"""How well a text answers a query: BM25 with weighted fields, a common word counting less.

    frequency = sum of the weights of the fields a word stands in, each time it does
    score     = sum over words of rarity · frequency · (k + 1) / (frequency + k · norm)
    norm      = 1 - b + b · length

`length` is relative to the average. How common a word is, is only counted up to a bound: what is
commoner than that is just common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

COUNTED_AT_MOST = 2_000
_K = 1.2
_B = 0.75


def rarity(documents: int, total: int) -> float:
    """Of a word that so many of all documents have; never nothing, never negative."""
    documents = min(documents, total)
    return math.log(1 + (total - documents + 0.5) / (documents + 0.5))


def score(frequencies: Sequence[float], rarities: Sequence[float], length: float) -> float:
    """Both by the number of the term."""
    norm = _K * (1 - _B + _B * length)
    total = 0.0
    for rare, frequency in zip(rarities, frequencies, strict=True):
        total += rare * frequency * (_K + 1) / (frequency + norm)
    return total

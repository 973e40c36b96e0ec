"""The words that the newest texts have, for proposing one that is near what was typed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import apsw

from holdfast.adapters.local.search.asking import Effort, parts
from holdfast.adapters.local.search.schema import Place, index_of
from holdfast.domain.near_words import beginnings, nearest

_PARTS = 1
"""Of each table, the newest: what was said long ago is proposed less often."""
_LOOKED_AT_ONCE = 200
_WORDS = """
SELECT term, doc FROM temp.vocabulary_of_{table} WHERE term >= ? AND term < ?
"""


def near_words(db: apsw.Connection, effort: Effort, word: str, limit: int) -> list[str]:
    return nearest(word, _known(db, effort, word), limit)


def _known(db: apsw.Connection, effort: Effort, word: str) -> Iterator[tuple[str, int]]:
    """Words that begin like it, as many as the effort lasts for."""
    for place in Place:
        for part in islice(parts(db, place), _PARTS):
            table = index_of(place, part)
            db.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary_of_{table} "
                f"USING fts5vocab('main', '{table}', 'row')"
            )
            for beginning in beginnings(word):
                found = db.execute(_WORDS.format(table=table), (beginning, f"{beginning}\uffff"))
                while more := list(islice(found, _LOOKED_AT_ONCE)):
                    yield from more
                    if effort.is_spent():
                        return

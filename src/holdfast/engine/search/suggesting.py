"""What to search for instead when nothing was found; every proposal finds something.

words that are in no text → the nearest known words in their place, else without them
every word is in some text, and no text has them all → the query without one of them
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from holdfast.domain.code_words import words
from holdfast.domain.ids import SessionId
from holdfast.domain.search_query import free_words, parse_query
from holdfast.engine.vault import Vault

_MOST = 3
_LOOKED_AT = 12

Span = tuple[int, int]


def suggestions(vault: Vault, text: str, session_id: SessionId | None) -> Iterator[str]:
    """At most three queries, the nearest first."""

    def finds(query: str) -> bool:
        parsed = parse_query(query, now_ns=vault.clock.now_ns())
        return bool(vault.search.find(parsed, session_id=session_id, limit=1).found)

    spans = free_words(text)[:_LOOKED_AT]
    unknown = [span for span in spans if not finds(text[slice(*span)])]
    others: Iterator[str]
    if unknown:
        others = chain(_near(vault, text, unknown), _without(text, spans, [unknown]))
    else:
        others = _without(text, spans, [[span] for span in reversed(spans)])
    asked = text.strip()
    proposed = dict.fromkeys(query for query in others if query and query != asked)
    yield from islice(filter(finds, islice(proposed, _LOOKED_AT)), _MOST)


def _near(vault: Vault, text: str, unknown: list[Span]) -> Iterator[str]:
    """With known words in place of the unknown ones: the nearest of each, then the next."""
    near: list[list[str]] = []
    for span in unknown:
        word = text[slice(*span)].strip("*")
        [first, *more] = words(word) or [""]
        found = list(vault.search.near_words(first, _MOST)) if not more else []
        near.append([f"{word}*", *found])
    for number in range(max(map(len, near))):
        yield _replaced(text, unknown, [ways[min(number, len(ways) - 1)] for ways in near])


def _without(text: str, spans: list[Span], choices: list[list[Span]]) -> Iterator[str]:
    """Shorter queries, of which something is left."""
    for dropped in choices:
        if len(dropped) < len(spans):
            yield " ".join(_replaced(text, dropped, [""] * len(dropped)).split())


def _replaced(text: str, spans: list[Span], instead: list[str]) -> str:
    for (begin, end), word in sorted(zip(spans, instead, strict=True), reverse=True):
        text = text[:begin] + word + text[end:]
    return text.strip()

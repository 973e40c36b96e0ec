"""What to search for instead when nothing was found; every proposal finds something.

words that are in no text → the nearest known words in their place, all at once, else only one of
                            them and the others left out, else without them
every word is in some text, and no text has them all → the query without one of them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice

from holdfast.domain.ids import SessionId
from holdfast.domain.search.query import free_words, parse_query
from holdfast.domain.search.words import words
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
        others = chain(_near(vault, text, unknown, finds), _without(text, spans, [unknown]))
    else:
        others = _without(text, spans, [[span] for span in reversed(spans)])
    asked = text.strip()
    proposed = dict.fromkeys(query for query in others if query and query != asked)
    yield from islice(filter(finds, islice(proposed, _LOOKED_AT)), _MOST)


def _near(
    vault: Vault, text: str, unknown: list[Span], finds: Callable[[str], bool]
) -> Iterator[str]:
    """With known words in place of the unknown ones: the nearest of each first, then one of them
    exchanged for its next nearest, then only one of them."""
    near = [_ways(vault, text[slice(*span)].strip("*"), finds) for span in unknown]
    nearest = [ways[0] for ways in near]
    if not any(nearest):
        return
    yield _replaced(text, unknown, nearest)
    for number, ways in enumerate(near):
        for other in ways[1:]:
            instead = [*nearest[:number], other, *nearest[number + 1 :]]
            yield _replaced(text, unknown, instead)
    for number, word in enumerate(nearest):
        alone = ["" if other != number else word for other in range(len(near))]
        if word:
            yield _replaced(text, unknown, alone)


def _ways(vault: Vault, word: str, finds: Callable[[str], bool]) -> list[str]:
    """What may be written in its place, the nearest first; nothing where no word is near."""
    [first, *more] = words(word) or [""]
    found = list(vault.search.near_words(first, _MOST)) if not more else []
    beginning = [f"{word}*"] if finds(f"{word}*") else []
    return [*beginning, *found] or [""]


def _without(text: str, spans: list[Span], choices: list[list[Span]]) -> Iterator[str]:
    """Shorter queries, of which something is left."""
    for dropped in choices:
        if len(dropped) < len(spans):
            yield _replaced(text, dropped, [""] * len(dropped))


def _replaced(text: str, spans: list[Span], instead: list[str]) -> str:
    for (begin, end), word in sorted(zip(spans, instead, strict=True), reverse=True):
        before, after = text[:begin], text[end:]
        text = before + word + after if word else f"{before.rstrip()} {after.lstrip()}"
    return text.strip()

"""Searching: update the index, query it, and show the matches in the current texts.

The index only locates matches. Checkpoints and messages are read from catalog and story, so results
are current. A search without hits suggests queries that would have some: with known words in place
of unknown ones, or with fewer words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged, UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.domain.paths import to_text
from holdfast.domain.search.hits import (
    Excerpt,
    Field,
    Hit,
    Match,
    SearchResult,
    excerpt,
    lead_excerpt,
)
from holdfast.domain.search.query import SearchQuery, Term, free_words, parse_query
from holdfast.domain.search.words import words
from holdfast.domain.story import Annotation, Message
from holdfast.domain.tool_calls import call_words
from holdfast.engine.conversation.conversation import BestEffortStory
from holdfast.engine.search.index_update import call_text, catch_up, fields_of, touched_paths
from holdfast.engine.vault import Vault
from holdfast.ports.search import Found, IndexLost

MOST_HITS = 1_000
_MOST_MATCHES = 6
_MOST_PATHS_SHOWN = 3
_TRIES = 3
_MOST_SUGGESTIONS = 3
_MOST_WORDS_LOOKED_UP = 12
_MOST_CANDIDATES = 6
_WORDLESS = "the query has no letters or digits to search for"

Span = tuple[int, int]


def search(
    vault: Vault,
    text: str,
    *,
    session_id: SessionId | None,
    limit: int = 20,
    patience_s: float | None = 10.0,
) -> SearchResult:
    """In one session or all. A missing query is an error; an empty one finds the newest
    checkpoints. After `patience_s` of updating the index, it answers with what it has."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise UsageError(
            f"the limit {limit!r} must be 1 or more",
            hint="leave it out for the default",
        )
    if not isinstance(text, str):
        raise UsageError("the query must be a string", hint="use words: 'login timeout'")
    query = parse_query(text, now_ns=vault.clock.now_ns())
    if query.is_wordless:
        return SearchResult((), warnings=(_WORDLESS,))
    for _ in range(_TRIES):
        try:
            caught = catch_up(vault, patience_s=patience_s)
            answer = vault.search.find(query, session_id=session_id, limit=min(limit, MOST_HITS))
        except IndexLost:
            continue
        hits = tuple(_hits(vault, query, answer.found))
        warnings = caught.warnings
        if answer.back_to_ns is not None:
            warnings += (_unsearched_warning(answer.back_to_ns),)
        near: tuple[str, ...] = ()
        if not hits:
            near = tuple(_suggestions(vault, text, session_id))
        return SearchResult(hits[:limit], caught.complete, warnings, answer.back_to_ns, near)
    raise StoreDamaged(
        "the search index is damaged again each time it is rebuilt",
        hint="check the disk; saving and restoring do not need it",
    )


def _unsearched_warning(back_to_ns: int) -> str:
    moment = datetime.fromtimestamp(back_to_ns / 1e9, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"checkpoints older than {moment} were not searched; to search them, add before:{moment}"


def _hits(vault: Vault, query: SearchQuery, found: Sequence[Found]) -> Iterator[Hit]:
    """One hit per checkpoint or message, in the order of its best match."""
    story = BestEffortStory(vault)
    moments: dict[tuple[SessionId, CheckpointId | int | None], list[Found]] = {}
    for one in found:
        key = one.checkpoint_id or one.message_index
        moments.setdefault((one.session_id, key), []).append(one)
    for members in moments.values():
        hit = _hit(vault, story, query, members)
        if hit is not None:
            yield hit


def _hit(
    vault: Vault, story: BestEffortStory, query: SearchQuery, members: Sequence[Found]
) -> Hit | None:
    best = members[0]
    checkpoint = vault.catalog.checkpoint(best.session_id, best.checkpoint_id)
    matches: list[Match] = []
    exists = False
    for one in members:
        if one.message_index is not None:
            message = story.message(one.session_id, one.message_index)
            exists |= message is not None
            matches += _in_message(message, query) if message is not None else []
        elif checkpoint is not None:
            exists = True
            notes = story.notes(checkpoint)
            matches += _in_checkpoint(vault, checkpoint, notes, query, one.fields)
    if not exists:
        return None
    at_ns = checkpoint.created_at_ns if checkpoint is not None else best.at_ns
    return Hit(best.session_id, checkpoint, at_ns, best.score, tuple(matches[:_MOST_MATCHES]))


def _in_checkpoint(
    vault: Vault,
    checkpoint: Checkpoint,
    notes: Sequence[Annotation],
    query: SearchQuery,
    fields: frozenset[Field],
) -> Iterator[Match]:
    for field, texts in fields_of(checkpoint, notes).items():
        terms = query.terms + query.names if field is Field.NAME else query.terms
        for text in texts if field is not Field.TOOL else ():
            if (found := excerpt(text, terms)) is not None:
                yield Match(field, found)
    for call in checkpoint.intent.tool_calls:
        if (found := _in_call(call, query.terms)) is not None:
            yield Match(Field.TOOL, found)
    if Field.PATH in fields:
        terms = query.terms + query.paths
        yield from islice(_in_paths(vault, checkpoint, terms), _MOST_PATHS_SHOWN)


def _in_paths(vault: Vault, checkpoint: Checkpoint, terms: Sequence[Term]) -> Iterator[Match]:
    for path in touched_paths(vault, checkpoint):
        if (found := excerpt(to_text(path), terms)) is not None:
            yield Match(Field.PATH, found)


def _in_call(call: ToolCall, terms: Sequence[Term]) -> Excerpt | None:
    """As displayed to people; argument names are matched in the indexed text."""
    words = call_words(call)
    if not terms:
        return lead_excerpt(words)
    return excerpt(words, terms) or excerpt(call_text(call), terms)


def _in_message(message: Message, query: SearchQuery) -> Iterator[Match]:
    terms = query.terms
    said = excerpt(message.content, terms) if terms else lead_excerpt(message.content)
    found_in = [(Field.MESSAGE, said)]
    found_in += [(Field.TOOL, _in_call(call, terms)) for call in message.tool_calls]
    for field, found in found_in:
        if found is not None:
            yield Match(
                field,
                found,
                message.index,
                message.role.value,
                message.rolled_back_by is not None,
            )


def _suggestions(vault: Vault, text: str, session_id: SessionId | None) -> Iterator[str]:
    """At most three queries, closest first."""

    def finds(query: str) -> bool:
        parsed = parse_query(query, now_ns=vault.clock.now_ns())
        return vault.search.has(parsed, session_id=session_id)

    spans = free_words(text)[:_MOST_WORDS_LOOKED_UP]
    unknown = [span for span in spans if not finds(text[slice(*span)])]
    others: Iterator[str]
    if unknown:
        others = chain(_near(vault, text, unknown, finds), _without(text, spans, [unknown]))
    elif len(spans) <= _MOST_CANDIDATES:
        others = _without(text, spans, [[span] for span in reversed(spans)])
    else:
        return  # removing one word of this many would find nothing either, and costs a search each
    asked = text.strip()
    proposed = dict.fromkeys(query for query in others if query and query != asked)
    yield from islice(filter(finds, islice(proposed, _MOST_CANDIDATES)), _MOST_SUGGESTIONS)


def _near(
    vault: Vault, text: str, unknown: list[Span], finds: Callable[[str], bool]
) -> Iterator[str]:
    """With known words in place of unknown ones: first the closest for each, then variants with one
    next-closest word, then with only one of the words."""
    near = [_replacements(vault, text[slice(*span)].strip("*"), finds) for span in unknown]
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


def _replacements(vault: Vault, word: str, finds: Callable[[str], bool]) -> list[str]:
    """Replacements for a word, closest first; empty if no known word is close."""
    [first, *more] = words(word) or [""]
    found = list(vault.search.near_words(first, _MOST_SUGGESTIONS)) if not more else []
    beginning = [f"{word}*"] if finds(f"{word}*") else []
    return [*beginning, *found] or [""]


def _without(text: str, spans: list[Span], choices: list[list[Span]]) -> Iterator[str]:
    """Shorter, non-empty queries."""
    for dropped in choices:
        if len(dropped) < len(spans):
            yield _replaced(text, dropped, [""] * len(dropped))


def _replaced(text: str, spans: list[Span], instead: list[str]) -> str:
    for (begin, end), word in sorted(zip(spans, instead, strict=True), reverse=True):
        before, after = text[:begin], text[end:]
        text = before + word + after if word else f"{before.rstrip()} {after.lstrip()}"
    return text.strip()

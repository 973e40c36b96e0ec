"""Search results as data."""

from typing import TYPE_CHECKING, NotRequired, TypedDict

from holdfast.api.views.checkpoints import FoundCheckpointView, found_checkpoint_view
from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from holdfast.domain.search.hits import Hit, Match, SearchResult


class MatchView(TypedDict):
    """A text that matched; `spans` are the matching parts. The last three keys are of messages."""

    field: str
    text: str
    spans: list[list[int]]
    message_index: NotRequired[int]
    role: NotRequired[str | None]
    rolled_back: NotRequired[bool]


class HitView(TypedDict):
    """A checkpoint, or a message that no checkpoint knows, with the best matches first."""

    session_id: str
    checkpoint: FoundCheckpointView | None
    at: str
    score: float
    matches: list[MatchView]


class SearchView(TypedDict):
    """Best first; not `complete` while the index is still catching up."""

    query: str
    hits: list[HitView]
    suggestions: list[str]
    complete: bool
    warnings: list[str]
    elapsed_ms: float


def search_view(query: str, result: "SearchResult", elapsed_ms: float) -> SearchView:
    return {
        "query": query,
        "hits": [_hit(hit) for hit in result.hits],
        "suggestions": list(result.suggestions),
        "complete": result.complete,
        "warnings": list(result.warnings),
        "elapsed_ms": elapsed_ms,
    }


def _hit(hit: "Hit") -> HitView:
    found = hit.checkpoint
    return {
        "session_id": hit.session_id,
        "checkpoint": None if found is None else found_checkpoint_view(found),
        "at": iso_from_ns(hit.at_ns),
        "score": round(hit.score, 4),
        "matches": [_match(match) for match in hit.matches],
    }


def _match(match: "Match") -> MatchView:
    view: MatchView = {
        "field": match.field.value,
        "text": match.excerpt.text,
        "spans": [list(span) for span in match.excerpt.spans],
    }
    if match.message_index is not None:
        view["message_index"] = match.message_index
        view["role"] = match.role
        view["rolled_back"] = match.rolled_back
    return view

"""`checkpoint_search`: find a moment of the work by its reasons, messages and paths."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.api.views.tool_values import CheckpointInfo, checkpoint_info
from holdfast.domain.search.hits import Hit
from holdfast.interfaces.tools.tool import LIMIT, Answer, Parameter, Tool, ToolContext
from holdfast.interfaces.tools.wording import NOTHING_SAVED, one_line, row, said

_MOST_MATCHES = 5
_LONGEST_REASONING = 2_000


@dataclass(frozen=True, slots=True)
class FoundText:
    """A piece of text that matched: where it stands, and which message it is."""

    field: str
    text: str
    message_index: int | None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A checkpoint, or a message that no checkpoint knows, with what matched."""

    checkpoint: CheckpointInfo | None
    matches: list[FoundText]


@dataclass(frozen=True, slots=True)
class Found:
    """Best first; not `complete` while the index has not taken everything in yet."""

    hits: list[SearchHit]
    complete: bool
    warnings: list[str]


def search(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    result = context.session.search(arguments["query"], limit=arguments["limit"])
    head = context.session.head
    hits = [_hit(hit, head) for hit in result.hits]
    warnings = [said(warning) for warning in result.warnings]
    lines: list[str] = []
    for hit in hits:
        lines.append(row(hit.checkpoint) if hit.checkpoint else "(a message before any checkpoint)")
        lines += [f"    {match.field}: {match.text}" for match in hit.matches]
    if not hits:
        near = ", ".join(said(query) for query in result.suggestions)
        instead = f"Did you mean: {near}" if near else "Try fewer or other words."
        lines.append(f"Nothing was found. {instead}")
    lines += [f"Warning: {warning}" for warning in warnings]
    return Answer("\n".join(lines), Found(hits, result.complete, warnings))


def _hit(hit: Hit, head: str | None) -> SearchHit:
    found = None
    if hit.checkpoint is not None:
        found = checkpoint_info(hit.checkpoint, head=head, longest=_LONGEST_REASONING)
    return SearchHit(
        checkpoint=found,
        matches=[
            FoundText(match.field.value, one_line(match.excerpt.text), match.message_index)
            for match in hit.matches[:_MOST_MATCHES]
        ],
    )


def _nothing_found(workspace: Path, session_id: str) -> Answer:
    return Answer(NOTHING_SAVED, Found([], True, []))


SEARCH = Tool(
    "checkpoint_search",
    "Search",
    "Find checkpoints of this session by their names, reasons, tags, tool calls and changed "
    "paths, and by the messages around them, best first. All words have to be there; "
    '"words in quotes" follow each other; auth* finds beginnings. Filters: kind:risky, tag:x, '
    "path:src/auth, after:2h, is:named. Use it to find when something was done or why.",
    (
        Parameter(
            "query",
            "string",
            "What to look for. An empty one lists the newest checkpoints.",
            "login timeout path:src/auth",
            required=True,
            most=2_000,
        ),
        LIMIT,
    ),
    "read",
    handler=search,
    result=Found,
    without_store=_nothing_found,
    read_only=True,
    idempotent=True,
)

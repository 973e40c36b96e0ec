"""`checkpoint_search`: find a moment of the work by what was meant, said or touched."""

from __future__ import annotations

from typing import Any

from holdfast.domain.search.hits import Hit
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.results import Found, FoundText, SearchHit
from holdfast.interfaces.tools.wording import info, one_line, row, said

_MOST_MATCHES = 5
_LONGEST_REASONING = 2_000


def search(bench: Bench, arguments: dict[str, Any]) -> Answer:
    result = bench.session.search(arguments["query"], limit=arguments["limit"])
    head = bench.session.head
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
        found = info(hit.checkpoint, head=head, longest=_LONGEST_REASONING)
    return SearchHit(
        checkpoint=found,
        matches=[
            FoundText(match.field.value, one_line(match.excerpt.text), match.message_index)
            for match in hit.matches[:_MOST_MATCHES]
        ],
    )

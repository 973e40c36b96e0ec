"""Tools that find a checkpoint: `checkpoint_search`, by reasons, messages and paths, and
`checkpoint_why`, by the lines it wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.api.views.tool_values import CheckpointInfo, MessageInfo, checkpoint_info
from holdfast.domain.diff.line_origins import ExplainedLine, LineState
from holdfast.domain.intent import ToolCall
from holdfast.domain.search.hits import Hit
from holdfast.domain.wording import count_words
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.tool import Answer, Parameter, Tool, ToolContext, limit, reference
from holdfast.interfaces.tools.wording import (
    NOTHING_SAVED,
    bullets,
    cut,
    label,
    message_info,
    one_line,
    path_text,
    reason_line,
    row,
)

_MOST_MATCHES = 5
_LONGEST_REASONING = 2_000


@dataclass(frozen=True, slots=True)
class FoundText:
    """A matching text: its field, and the message it is in."""

    field: str
    text: str
    message_index: int | None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A checkpoint, or a message without one, with its matches."""

    checkpoint: CheckpointInfo | None
    matches: list[FoundText]


@dataclass(frozen=True, slots=True)
class Found:
    """Best first; not `complete` while the index is catching up."""

    hits: list[SearchHit]
    complete: bool
    warnings: list[str]


def search(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    result = context.session.search(arguments["query"], limit=arguments["limit"])
    head = context.session.head_id
    hits = [_hit(hit, head) for hit in result.hits]
    warnings = [reason_line(warning) for warning in result.warnings]
    lines: list[str] = []
    for hit in hits:
        lines.append(row(hit.checkpoint) if hit.checkpoint else "(a message before any checkpoint)")
        lines += [f"    {match.field}: {match.text}" for match in hit.matches]
    if not hits:
        near = ", ".join(reason_line(query) for query in result.suggestions)
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


SEARCH = Tool(
    "checkpoint_search",
    "Search",
    "Find checkpoints by name, reason, tag, tool call, changed path or the messages around them, "
    'best first. All words must match; "a phrase"; auth* for prefixes. Filters: kind:risky, '
    "tag:x, path:src/auth, after:2h, is:named.",
    (
        Parameter(
            "query",
            "string",
            "Empty: the newest.",
            "login timeout path:src/auth",
            required=True,
            most=2_000,
        ),
        limit(5),
    ),
    "read",
    handler=search,
    result=Found,
    without_store=lambda workspace, session: Answer(NOTHING_SAVED, Found([], True, [])),
)


# The limit for one file in an answer; further lines are requested one by one.
_MOST_SPANS = 200
_MOST_SHOWN = 40
_LONGEST_TEXT = 500
_LONGEST_CALL = 2_000


@dataclass(frozen=True, slots=True)
class ExplainedLines:
    """Neighbouring lines with one origin. `state` is written, initial (older than the history),
    unsaved, or older (than the searched history). `checkpoint` is the first that has them, `before`
    the one before it, and `path` the file's name then. `others` are calls of other sessions at that
    time, which may have written them; without `own`, this session had none."""

    first_line: int
    last_line: int
    text: str
    state: str
    path: str
    checkpoint: CheckpointInfo | None
    before: str | None
    reasoning: str | None
    tool_calls: list[str | dict[str, Any]]
    tool_use_id: str | None
    message: MessageInfo | None
    prompt: MessageInfo | None
    own: bool = True
    others: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Explained:
    """Where the lines of a file come from; `of` is None for the current file."""

    path: str
    of: str | None
    total_lines: int
    spans: list[ExplainedLines]
    total_spans: int
    warnings: list[str]


def why(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    paths = context.paths([arguments["path"]])
    if not paths:
        raise BadArguments(
            "path of checkpoint_why is the workspace, not a file",
            hint='name a file: checkpoint_why {"path": "src/app.py"}',
        )
    ref = None if arguments["checkpoint_id"] is None else arguments["checkpoint_id"].strip()
    found = context.workspace.history.why(
        context.session_id, paths[0], line=arguments["line"], reference=ref
    )
    spans = list(found.spans())
    head = context.session.head_id
    shown = [_span(span, head) for span in spans[:_MOST_SPANS]]
    warnings = [reason_line(warning) for warning in found.warnings]
    name = path_text(found.path)
    where = "as it is now" if found.of is None else f"in {found.of[:10]}"
    lines = [f"{name}, {where}, {count_words(found.total_lines, 'line')}:"]
    for span in shown[:_MOST_SHOWN]:
        lines += _words(span)
    if len(spans) > _MOST_SHOWN:
        lines.append(
            f"… and {count_words(len(spans) - _MOST_SHOWN, 'more part')}. Ask for one line: "
            f"checkpoint_why {json.dumps({'path': name, 'line': spans[_MOST_SHOWN][0].number})}."
        )
    lines += [f"Warning: {warning}" for warning in warnings]
    data = Explained(name, found.of, found.total_lines, shown, len(spans), warnings)
    return Answer("\n".join(lines), data)


def _span(span: Sequence[ExplainedLine], head: str | None) -> ExplainedLines:
    origin = span[0].origin
    return ExplainedLines(
        first_line=span[0].number,
        last_line=span[-1].number,
        text=cut(one_line(span[0].text.decode("utf-8", "backslashreplace")), _LONGEST_TEXT),
        state=origin.state.value,
        path=path_text(origin.path),
        checkpoint=None
        if origin.checkpoint is None
        else checkpoint_info(origin.checkpoint, head=head, longest=_LONGEST_CALL),
        before=origin.before,
        reasoning=origin.reasoning and cut(origin.reasoning, _LONGEST_CALL),
        tool_calls=[_call(call) for call in origin.tool_calls],
        tool_use_id=origin.tool_use_id,
        message=None if origin.message is None else message_info(origin.message),
        prompt=None if origin.prompt is None else message_info(origin.prompt),
        own=origin.own,
        others=[one_line(other.shown) for other in origin.others],
    )


def _call(call: ToolCall) -> str | dict[str, Any]:
    """The call; one that contains a whole file is shortened."""
    if isinstance(call, str):
        return cut(call, _LONGEST_CALL)
    whole = dict(call)
    text = json.dumps(whole, ensure_ascii=False)
    return whole if len(text) <= _LONGEST_CALL else cut(text, _LONGEST_CALL)


def _words(span: ExplainedLines) -> Iterator[str]:
    one = span.first_line == span.last_line
    number = f"{span.first_line}" if one else f"{span.first_line}-{span.last_line}"
    where = f"line {number}" if one else f"lines {number}"
    beginning = cut(span.text.strip(), 80)
    match span.state:
        case LineState.UNSAVED:
            yield f"{where}: not saved yet | {beginning}"
            return
        case LineState.ELSEWHERE:
            yield f"{where}: saved by another session | {beginning}"
            return
        case LineState.OLDER:
            yield f"{where}: older than the searched history | {beginning}"
            return
    assert span.checkpoint is not None
    if span.state == LineState.INITIAL:
        yield f"{where}: older than the history, in {label(span.checkpoint)} | {beginning}"
        return
    yield f"{where}: {label(span.checkpoint)}, {span.checkpoint.created_at} | {beginning}"
    details = [f"why: {cut(one_line(span.reasoning or ''), 300)}"] if span.own else []
    if span.others:
        who = "written by" if len(span.others) == 1 and not span.own else "may have been written by"
        details.append(f"{who}: {cut('; '.join(span.others), 300)}")
    for call in span.tool_calls:
        text = call if isinstance(call, str) else json.dumps(call, ensure_ascii=False)
        details.append(f"call: {cut(one_line(text), 300)}")
    if span.prompt is not None:
        details.append(f"asked: {cut(one_line(span.prompt.content.strip()), 300)}")
    yield from bullets(details)


WHY = Tool(
    "checkpoint_why",
    "Explain a line",
    "Who wrote each line of a file, or one line, and why: the first checkpoint that has it, the "
    "reason, tool call and message. Use it before changing code that looks odd.",
    (
        Parameter(
            "path",
            "string",
            "The file.",
            "src/app.py",
            required=True,
            least=1,
            most=4_096,
        ),
        Parameter(
            "line",
            "integer",
            "Only this one, from 1.",
            12,
            least=1,
            most=1_000_000_000,
        ),
        reference("Default: the file now."),
    ),
    "read",
    handler=why,
    result=Explained,
)

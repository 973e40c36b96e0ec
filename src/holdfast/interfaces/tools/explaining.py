"""`checkpoint_why`: for each line of a file the step of the work that wrote it, and its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.domain.diff.line_origins import ExplainedLine, LineState
from holdfast.domain.intent import ToolCall
from holdfast.domain.messages import Message
from holdfast.engine.why.why import why as explain
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.results import Explained, ExplainedLines, MessageInfo
from holdfast.interfaces.tools.wording import (
    bullets,
    count,
    cut,
    info,
    label,
    one_line,
    path_text,
    said,
)

# What a model is given of one file: more than that is asked for line by line.
_MOST_SPANS = 200
_MOST_TOLD = 40
_LONGEST_TEXT = 500
_LONGEST_MESSAGE = 1_000
_LONGEST_CALL = 2_000


def why(bench: Bench, arguments: dict[str, Any]) -> Answer:
    paths = bench.paths([arguments["path"]])
    if not paths:
        raise BadArguments(
            "path of checkpoint_why is the workspace itself",
            hint='name a file: checkpoint_why {"path": "src/app.py"}',
        )
    reference = None if arguments["ref"] is None else arguments["ref"].strip()
    found = explain(
        bench.engine.vault,
        bench.session_id,
        paths[0],
        line=arguments["line"],
        reference=reference,
    )
    spans = list(found.spans())
    head = bench.session.head
    told = [_span(span, head) for span in spans[:_MOST_SPANS]]
    warnings = [said(warning) for warning in found.warnings]
    name = path_text(found.path)
    where = "as it is now" if found.of is None else f"in {found.of[:10]}"
    lines = [f"{name}, {where}, {count(found.total_lines, 'line')}:"]
    for span in told[:_MOST_TOLD]:
        lines += _words(span)
    if len(spans) > _MOST_TOLD:
        lines.append(
            f"… and {count(len(spans) - _MOST_TOLD, 'more part')}. Ask for one line: "
            f"checkpoint_why {json.dumps({'path': name, 'line': spans[_MOST_TOLD][0].number})}."
        )
    lines += [f"Warning: {warning}" for warning in warnings]
    data = Explained(name, found.of, found.total_lines, told, len(spans), warnings)
    return Answer("\n".join(lines), data)


def _span(span: Sequence[ExplainedLine], head: str | None) -> ExplainedLines:
    origin = span[0].origin
    return ExplainedLines(
        first_line=span[0].number,
        last_line=span[-1].number,
        text=_text(span[0].text),
        state=origin.state.value,
        path=path_text(origin.path),
        checkpoint=None
        if origin.checkpoint is None
        else info(origin.checkpoint, head=head, longest=_LONGEST_CALL),
        before=origin.before,
        reasoning=origin.reasoning and cut(origin.reasoning, _LONGEST_CALL),
        tool_calls=[_call(call) for call in origin.tool_calls],
        tool_use_id=origin.tool_use_id,
        message=_message(origin.message),
        prompt=_message(origin.prompt),
        own=origin.own,
        others=[one_line(other.shown) for other in origin.others],
    )


def _text(line: bytes) -> str:
    return cut(one_line(line.decode("utf-8", "backslashreplace")), _LONGEST_TEXT)


def _call(call: ToolCall) -> str | dict[str, Any]:
    """As it was made; one that holds a whole file only in part."""
    if isinstance(call, str):
        return cut(call, _LONGEST_CALL)
    whole = dict(call)
    text = json.dumps(whole, ensure_ascii=False)
    return whole if len(text) <= _LONGEST_CALL else cut(text, _LONGEST_CALL)


def _message(message: Message | None) -> MessageInfo | None:
    if message is None:
        return None
    return MessageInfo(message.index, message.role.value, cut(message.content, _LONGEST_MESSAGE))


def _words(span: ExplainedLines) -> Iterator[str]:
    one = span.first_line == span.last_line
    number = f"{span.first_line}" if one else f"{span.first_line}-{span.last_line}"
    told = f"line {number}" if one else f"lines {number}"
    beginning = cut(span.text.strip(), 80)
    match span.state:
        case LineState.UNSAVED:
            yield f"{told}: not saved yet | {beginning}"
            return
        case LineState.ELSEWHERE:
            yield f"{told}: saved by another session | {beginning}"
            return
        case LineState.OLDER:
            yield f"{told}: older than what was looked at | {beginning}"
            return
    assert span.checkpoint is not None
    if span.state == LineState.INITIAL:
        yield f"{told}: there when the history begins, {label(span.checkpoint)} | {beginning}"
        return
    yield f"{told}: {label(span.checkpoint)}, {span.checkpoint.created_at} | {beginning}"
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

"""The origins of lines as data."""

from typing import TYPE_CHECKING, Any, TypedDict

from holdfast.api.views.checkpoints import CheckpointView, MessageTextView, checkpoint_view
from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.domain.diff.line_origins import Explanation, LineOrigin
    from holdfast.domain.story import Message


class LineView(TypedDict):
    """One line; `origin` is the place of its origin in the list."""

    line: int
    text: str
    origin: int


class IndexedMessageView(MessageTextView):
    """A message with its place in the conversation."""

    index: int


class OtherAgentView(TypedDict):
    """A session whose tool was running when a line was written."""

    session_id: str
    agent: str | None
    tool: str


class OriginView(TypedDict):
    """The checkpoint that has some lines first, and the work that led to it."""

    state: str
    path: str
    checkpoint: CheckpointView | None
    before: str | None
    session_id: str | None
    reasoning: str | None
    tool_calls: list[str | dict[str, Any]]
    tool_use_id: str | None
    message: IndexedMessageView | None
    prompt: IndexedMessageView | None
    own: bool
    by_hand: bool
    others: list[OtherAgentView]


class ExplanationView(TypedDict):
    """The lines of a file; `of` is None for the file in the workspace."""

    path: str
    of: str | None
    total_lines: int
    lines: list[LineView]
    origins: list[OriginView]
    warnings: list[str]
    elapsed_ms: float


def explanation_view(found: "Explanation", elapsed_ms: float) -> ExplanationView:
    """Each origin once."""
    places: dict[int, int] = {}
    origins: list[LineOrigin] = []
    for line in found.lines:
        if id(line.origin) not in places:
            places[id(line.origin)] = len(origins)
            origins.append(line.origin)
    return {
        "path": to_text(found.path),
        "of": found.of,
        "total_lines": found.total_lines,
        "lines": [
            {"line": one.number, "text": to_text(one.text), "origin": places[id(one.origin)]}
            for one in found.lines
        ],
        "origins": [_origin(origin) for origin in origins],
        "warnings": list(found.warnings),
        "elapsed_ms": elapsed_ms,
    }


def _origin(origin: "LineOrigin") -> OriginView:
    return {
        "state": origin.state.value,
        "path": to_text(origin.path),
        "checkpoint": None if origin.checkpoint is None else checkpoint_view(origin.checkpoint),
        "before": origin.before,
        "session_id": origin.session_id,
        "reasoning": origin.reasoning,
        "tool_calls": [c if isinstance(c, str) else dict(c) for c in origin.tool_calls],
        "tool_use_id": origin.tool_use_id,
        "message": _message(origin.message),
        "prompt": _message(origin.prompt),
        "own": origin.own,
        "by_hand": origin.by_hand,
        "others": [
            {"session_id": other.session_id, "agent": other.agent, "tool": other.tool}
            for other in origin.others
        ],
    }


def _message(message: "Message | None") -> IndexedMessageView | None:
    if message is None:
        return None
    return {"index": message.index, "role": message.role.value, "content": message.content}

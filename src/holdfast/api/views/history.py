"""History as data: search results, the origins of lines, and the steps of a replay."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from holdfast.api.views.changes import ChangeView
from holdfast.api.views.checkpoints import (
    CheckpointView,
    CheckpointWithIntentView,
    FoundCheckpointView,
    MessageTextView,
    checkpoint_view,
    checkpoint_with_intent_view,
    content_view,
    found_checkpoint_view,
    message_text_view,
)
from holdfast.domain.paths import to_text
from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from holdfast.api.contents import AgentState
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.diff.line_origins import Explanation, LineOrigin
    from holdfast.domain.errors import HoldfastError
    from holdfast.domain.search.hits import Hit, Match, SearchResult
    from holdfast.domain.story import Message
    from holdfast.engine.replay.replay import Replay


class MatchView(TypedDict):
    """A text that matched; `spans` are the matching parts. The last three keys are of messages."""

    field: str
    text: str
    spans: list[list[int]]
    message_index: NotRequired[int]
    role: NotRequired[str | None]
    rolled_back: NotRequired[bool]


class HitView(TypedDict):
    """A checkpoint, or a message without a checkpoint, with the best matches first."""

    session_id: str
    checkpoint: FoundCheckpointView | None
    at: str
    score: float
    matches: list[MatchView]


class SearchView(TypedDict):
    """Hits, best first. `complete` is false while the index is still catching up."""

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


class LineView(TypedDict):
    """One line; `origin` is an index into `origins`."""

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
    """The first checkpoint that has some lines, and the work that led to it."""

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
    return {"index": message.index, **message_text_view(message)}


class ReplayMessageView(TypedDict):
    """A message that belongs to a step."""

    index: int
    role: str
    content: str
    at: str
    tool_calls: list[Any]
    rolled_back: bool


class ComponentLineView(TypedDict):
    """A line about a part of the state other than files."""

    name: str
    said: str


class ReplayStepView(CheckpointWithIntentView):
    """One step. With `damage`, the parts that could not be read are None."""

    index: int
    action: str
    tool_calls: list[Any]
    before: str | None
    round: str
    message_index: int | None
    tool_use_id: str | None
    components: list[ComponentLineView] | None
    changes: list[ChangeView] | None
    messages: list[ReplayMessageView] | None
    damage: dict[str, str | None] | None


class DamagedStepView(TypedDict):
    """A step that cannot be read at all."""

    index: int
    damage: dict[str, str | None]


def replay_step_view(replay: "Replay", *, head: str | None) -> ReplayStepView:
    """The step that the replay is at, without components, changes and messages."""
    step, state = replay.step, replay.agent_state()
    found = step.checkpoint
    return {
        "index": step.index,
        "action": step.action.value,
        **checkpoint_with_intent_view(found, is_head=found.id == head),
        "tool_calls": found.intent.to_dict()["tool_calls"],
        "before": step.before.id if step.before is not None else None,
        "round": state.round,
        "message_index": state.message_index,
        "tool_use_id": state.tool_use_id,
        "components": None,
        "changes": None,
        "messages": None,
        "damage": None,
    }


def damaged_step_view(index: int, error: "HoldfastError") -> DamagedStepView:
    return {"index": index, "damage": error.to_dict()}


def component_lines_view(lines: Iterable[tuple[str, str]]) -> list[ComponentLineView]:
    return [{"name": name, "said": said} for name, said in lines]


def replay_message_view(message: "Message") -> ReplayMessageView:
    return {
        "index": message.index,
        **message_text_view(message),
        "at": iso_from_ns(message.at_ns),
        "tool_calls": list(message.tool_calls),
        "rolled_back": message.rolled_back_by is not None,
    }


class AgentStateView(TypedDict):
    """A state that an agent set through the Python API."""

    session_id: str
    agent: str
    state: dict[str, Any]


class AgentsAtView(TypedDict):
    """The states that agents had set at a checkpoint."""

    checkpoint: str
    agents: list[AgentStateView]


class MemoryFileView(TypedDict):
    """`content` for a text file, `base64` for another one."""

    path: str
    content: NotRequired[str]
    base64: NotRequired[str]


class MemoryAtView(TypedDict):
    """Agent memory files at a checkpoint."""

    checkpoint: str
    files: list[MemoryFileView]


def agents_at_view(checkpoint: "Checkpoint", found: "Iterable[AgentState]") -> AgentsAtView:
    agents: list[AgentStateView] = [
        {"session_id": one.session_id, "agent": one.agent, "state": one.state} for one in found
    ]
    return {"checkpoint": checkpoint.id, "agents": agents}


def memory_at_view(checkpoint: "Checkpoint", files: Iterable[tuple[bytes, bytes]]) -> MemoryAtView:
    found: list[MemoryFileView] = [
        {"path": to_text(path), **content_view(content)} for path, content in files
    ]
    return {"checkpoint": checkpoint.id, "files": found}

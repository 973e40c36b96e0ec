"""The steps of a replay as data."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from holdfast.api.views.changes import ChangeView
from holdfast.api.views.checkpoints import CheckpointWithIntentView, checkpoint_with_intent_view
from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from holdfast.domain.errors import HoldfastError
    from holdfast.domain.story import Message
    from holdfast.engine.replay.replay import Replay


class ReplayMessageView(TypedDict):
    """A message that came with a step."""

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
        "role": message.role.value,
        "content": message.content,
        "at": iso_from_ns(message.at_ns),
        "tool_calls": list(message.tool_calls),
        "rolled_back": message.rolled_back_by is not None,
    }

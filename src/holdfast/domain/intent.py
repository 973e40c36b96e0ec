"""Why a checkpoint was made: the reasoning, and the agent's current work."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from holdfast.domain.errors import InvalidIntent
from holdfast.values.classes import dataclass

ToolCall: TypeAlias = str | Mapping[str, Any]

REASONING_MAX_LENGTH = 100_000
NAME_MAX_LENGTH = 128
TAG_MAX_LENGTH = 64
DEFAULT_CONFIDENCE = 0.8
BEFORE_MESSAGE = "Before user message"
AFTER_CALL = "After "
"""How the reason of a checkpoint made after a tool call begins."""


@dataclass(frozen=True, slots=True)
class SnapshotIntent:
    """Why one checkpoint was made."""

    reasoning: str
    goal_id: str | None = None
    task_id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    confidence: float = DEFAULT_CONFIDENCE
    checkpoint_name: str | None = None
    tags: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "reasoning": self.reasoning,
            "goal_id": self.goal_id,
            "task_id": self.task_id,
            "tool_calls": [c if isinstance(c, str) else dict(c) for c in self.tool_calls],
            "confidence": self.confidence,
            "checkpoint_name": self.checkpoint_name,
            "tags": list(self.tags),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SnapshotIntent:
        return cls(
            reasoning=data["reasoning"],
            goal_id=data.get("goal_id"),
            task_id=data.get("task_id"),
            tool_calls=tuple(data.get("tool_calls", ())),
            confidence=data.get("confidence", DEFAULT_CONFIDENCE),
            checkpoint_name=data.get("checkpoint_name"),
            tags=tuple(data.get("tags", ())),
        )


_REASONING_HINT = 'say why: holdfast checkpoint "before the refactor"'
_NAME_HINT = "use a short, printable name, such as before-refactor; the reason can be long"
_CONFIDENCE_HINT = "0.8 means 80% sure"
_TAG_HINT = "use a short, printable word, such as nightly"


def make_intent(
    reasoning: str,
    *,
    goal_id: str | None = None,
    task_id: str | None = None,
    tool_calls: Iterable[ToolCall] = (),
    confidence: float = DEFAULT_CONFIDENCE,
    name: str | None = None,
    tags: Iterable[str] = (),
) -> SnapshotIntent:
    """Validate a caller's intent. Everything stored has passed this check."""
    if not isinstance(reasoning, str):
        raise InvalidIntent(f"the reason {reasoning!r} is not a string", hint=_REASONING_HINT)
    if not reasoning.strip():
        raise InvalidIntent("the reason is empty", hint=_REASONING_HINT)
    reasoning = storable(reasoning)
    if len(reasoning) > REASONING_MAX_LENGTH:
        raise InvalidIntent(
            f"the reason has {len(reasoning)} characters; the limit is {REASONING_MAX_LENGTH}",
            hint="shorten it, or put long text in a file of the workspace",
        )
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        raise InvalidIntent(f"the confidence {confidence!r} is not a number", hint=_CONFIDENCE_HINT)
    if not 0.0 <= confidence <= 1.0:
        raise InvalidIntent(
            f"the confidence {confidence} is not between 0.0 and 1.0", hint=_CONFIDENCE_HINT
        )
    for title, given in (("tags", tags), ("tool_calls", tool_calls)):
        if isinstance(given, str):
            raise InvalidIntent(
                f"{title} must be a list, but one string was given", hint=f"use ({given!r},)"
            )
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            raise InvalidIntent(
                f"{title} must be a list, not {given!r}", hint="use a list or a tuple"
            )
    return SnapshotIntent(
        reasoning=reasoning,
        goal_id=None if goal_id is None else storable(str(goal_id)),
        task_id=None if task_id is None else storable(str(task_id)),
        tool_calls=tuple(storable_call(call) for call in tool_calls),
        confidence=float(confidence),
        checkpoint_name=None if name is None else require_name(name),
        tags=tuple(dict.fromkeys(_require_tag(tag) for tag in tags)),
    )


def require_name(name: str) -> str:
    """Require a name that people can type: printable, bounded, and not reserved."""
    if not isinstance(name, str):
        raise InvalidIntent(f"the checkpoint name {name!r} is not a string", hint=_NAME_HINT)
    if not name.strip():
        raise InvalidIntent("the checkpoint name is empty", hint=_NAME_HINT)
    if len(name) > NAME_MAX_LENGTH:
        raise InvalidIntent(
            f"the checkpoint name has {len(name)} characters; the limit is {NAME_MAX_LENGTH}",
            hint=_NAME_HINT,
        )
    if name != name.strip() or not name.isprintable():
        raise InvalidIntent(
            f"the checkpoint name {name!r} contains control characters or surrounding spaces",
            hint=_NAME_HINT,
        )
    if name.startswith("-"):
        raise InvalidIntent(
            f"the checkpoint name {name!r} looks like an option", hint="choose another name"
        )
    from holdfast.domain.references import looks_reserved  # most checkpoints have no name

    if looks_reserved(name):
        raise InvalidIntent(
            f"the checkpoint name {name!r} is a reserved reference",
            hint="choose another name",
        )
    return name


def _require_tag(tag: str) -> str:
    if not isinstance(tag, str):
        raise InvalidIntent(f"the tag {tag!r} is not a string", hint=_TAG_HINT)
    if not tag.strip() or not tag.isprintable():
        raise InvalidIntent(
            f"the tag {tag!r} is empty or contains control characters", hint=_TAG_HINT
        )
    if len(tag) > TAG_MAX_LENGTH:
        raise InvalidIntent(
            f"the tag {tag[:20]!r}… has more than {TAG_MAX_LENGTH} characters", hint=_TAG_HINT
        )
    return tag


def storable(text: str) -> str:
    """Escape lone surrogates (bytes of a command line that are not UTF-8), which cannot be
    stored."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def storable_call(call: ToolCall) -> ToolCall:
    if isinstance(call, str):
        return storable(call)
    try:
        copied: dict[str, Any] = storable_json(json.loads(json.dumps(dict(call))))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidIntent(f"a tool call cannot be stored as JSON: {error}") from None
    return copied


def storable_json(value: Any) -> Any:
    """A parsed JSON value with every text and number in it storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [storable_json(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable_json(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON cannot express it, and other programs could not read it
    return value

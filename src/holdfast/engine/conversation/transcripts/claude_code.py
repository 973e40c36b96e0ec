"""A line of a session of Claude Code (`~/.claude/projects/…/<session>.jsonl`) as a message.

A line is an object with a `type`; `user` and `assistant` carry a `message` whose content is a text
or a list of blocks. Everything else is bookkeeping of the program: titles (`summary`), events
(`system`), progress, snapshots of files. The lines that a subagent wrote (`isSidechain`) are left
out: they are another conversation.

When the context is compacted, a `user` line marked `isCompactSummary` follows and the chain of
`parentUuid` begins anew. Messages are taken in the order of the file and keyed by `uuid`, never by
that chain or by a number, so that those before a compaction stay what they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.domain.messages import Role
from holdfast.engine.conversation.transcripts.messages import (
    TranscriptMessage,
    content_key,
    identifier,
    nanoseconds,
    text_of,
    tool_call,
)

# A tuple, not a set: what is looked up in it comes from the file and may be anything.
_SILENT_BLOCKS = ("thinking", "redacted_thinking", "tool_use", "tool_result")


def message_of(line: Mapping[str, Any]) -> TranscriptMessage | None:
    """The message of a line; None when it holds none."""
    spoken = line.get("message")
    if line.get("type") not in ("user", "assistant") or not isinstance(spoken, dict):
        return None
    if line.get("isSidechain") is True:
        return None
    blocks = list(_blocks(spoken.get("content")))
    content = "\n".join(part for block in blocks if (part := _visible(block)))
    calls = tuple(
        tool_call(block.get("id"), block.get("name"), block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    answered = [block for block in blocks if block.get("type") == "tool_result"]
    role = _role(line, answered=bool(answered) and not content)
    if answered:
        results = "\n".join(text for block in answered if (text := _result(block)))
        content = f"{content}\n{results}" if content and results else content or results
    if not content and not calls and not answered:
        return None  # thinking only
    named = [call["id"] for call in calls]
    named += [identifier(block.get("tool_use_id")) for block in answered]
    return TranscriptMessage(
        source_key=_key(line, role, content, calls),
        role=role,
        content=content,
        at_ns=nanoseconds(line.get("timestamp")),
        tool_calls=calls,
        tool_use_ids=tuple(call_id for call_id in named if call_id),
    )


def _role(line: Mapping[str, Any], *, answered: bool) -> Role:
    if line["type"] == "assistant":
        return Role.ASSISTANT
    if line.get("isMeta") is True or line.get("isCompactSummary") is True:
        return Role.SYSTEM
    return Role.TOOL if answered else Role.USER


def _key(line: Mapping[str, Any], role: Role, content: str, calls: tuple[Any, ...]) -> str:
    uuid = identifier(line.get("uuid"))
    if uuid is not None:
        return f"claude:{uuid}"
    return f"claude:#{content_key(role, line.get('timestamp'), content, calls)}"


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, str):
                yield {"type": "text", "text": block}
            elif isinstance(block, dict):
                yield block


def _visible(block: Mapping[str, Any]) -> str:
    """What a person sees of a block; of pictures and unknown kinds, that there was one."""
    kind = block.get("type")
    if kind == "text":
        return text_of(block.get("text"))
    if kind in _SILENT_BLOCKS:
        return ""
    return f"[{text_of(kind)[:40] or 'unknown'}]"


def _result(block: Mapping[str, Any]) -> str:
    return "\n".join(part for inner in _blocks(block.get("content")) if (part := _visible(inner)))

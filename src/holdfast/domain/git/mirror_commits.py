"""A checkpoint as a mirror commit: its message with trailers, and its ref names.

    subject: the name or the first line of the reason
    trailers: Holdfast-Id, Holdfast-Session, …, Reasoning, Confidence, Goal, Task, Tool, Tag

An approval is a merge commit of the previous approval and the approved checkpoint.

The trailers are the last paragraph. No value can start a line of its own, so text in a reason never
becomes a trailer. Equal checkpoints have equal messages, so a rebuilt mirror has the same commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.git.commits import clean_text, one_line
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import ToolCall
from holdfast.domain.sessions import Round, Session, round_name, round_title

_LONGEST_VALUE = 20_000
_MOST_TOOLS = 50
_PLAIN = re.compile(rb"[A-Za-z0-9_-]")
_TREE = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True)
class MirrorPoint:
    """How far a mirror has come: the checkpoint of a commit, its sequence number and its tree. For
    a merge commit, `approves` is the round."""

    checkpoint: CheckpointId
    sequence: int
    tree: Digest
    approves: str | None = None


@dataclass(frozen=True, slots=True)
class Approvals:
    """A session's approvals, oldest first, each with its checkpoint. `began` is the session's first
    checkpoint."""

    began: CheckpointId | None
    merges: tuple[tuple[Round, Checkpoint], ...]


def mirror_message(checkpoint: Checkpoint, owner: str, left_out: int) -> bytes:
    title = checkpoint.name or checkpoint.intent.reasoning
    return _message(title, _trailers(checkpoint, owner, left_out))


def approval_message(approval: Round, checkpoint: Checkpoint, owner: str) -> bytes:
    """The message of the merge commit for an approval."""
    said = approval.message or f"Approved {round_title(approval.name)}"
    trailers = {
        "Holdfast-Approves": approval.name,
        "Holdfast-Id": checkpoint.id,
        "Holdfast-Session": checkpoint.session_id,
        "Reasoning": said,
        "Holdfast-Sequence": str(checkpoint.sequence),
        "Holdfast-Tree": checkpoint.tree.hex(),
        "Holdfast-Store": owner,
    }
    return _message(said, trailers.items())


def _message(title: str, trailers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"{key}: {_folded(value)}" for key, value in trailers]
    return "\n".join([one_line(clean_text(title)), "", *lines, ""]).encode("utf-8", "replace")


def _trailers(checkpoint: Checkpoint, owner: str, left_out: int) -> Iterator[tuple[str, str]]:
    intent = checkpoint.intent
    yield "Holdfast-Id", checkpoint.id
    yield "Holdfast-Session", checkpoint.session_id
    yield "Holdfast-Round", round_name(checkpoint.round)
    yield "Holdfast-Kind", checkpoint.kind.value
    if checkpoint.parent is not None:
        yield "Holdfast-Parent", checkpoint.parent
    if checkpoint.restores_from is not None:
        yield "Holdfast-Restores", checkpoint.restores_from
    if checkpoint.name is not None:
        yield "Holdfast-Name", checkpoint.name
    yield "Reasoning", intent.reasoning
    yield "Confidence", f"{intent.confidence:.2f}"
    if intent.goal_id:
        yield "Goal", intent.goal_id
    if intent.task_id:
        yield "Task", intent.task_id
    yield from (("Tool", _tool(call)) for call in intent.tool_calls[:_MOST_TOOLS])
    yield from (("Tag", tag) for tag in intent.tags)
    if left_out:
        yield "Holdfast-Left-Out", str(left_out)
    yield "Holdfast-Sequence", str(checkpoint.sequence)
    yield "Holdfast-Tree", checkpoint.tree.hex()
    yield "Holdfast-Store", owner


def _tool(call: ToolCall) -> str:
    if isinstance(call, str):
        return call
    named = next((call[key] for key in ("name", "tool", "tool_name") if key in call), None)
    return str(named) if named is not None else "(unnamed)"


def _folded(value: str) -> str:
    """Fold a value into indented continuation lines, without blank lines."""
    text = clean_text(value)[:_LONGEST_VALUE]
    lines = [line.strip() for line in text.split("\n")]
    return "\n  ".join(line for line in lines if line) or "-"


def read_point(message: bytes, owner: str) -> MirrorPoint | None:
    """The point that a mirror commit of this store represents; None for any other commit."""
    paragraph = message.decode("utf-8", "replace").rstrip("\n").rpartition("\n\n")[2]
    values: dict[str, str] = {}
    for line in paragraph.split("\n"):
        key, colon, value = line.partition(": ")
        if colon and not key.startswith(" "):
            values.setdefault(key, value)
    sequence, tree = values.get("Holdfast-Sequence", ""), values.get("Holdfast-Tree", "")
    known = values.get("Holdfast-Store") == owner and "Holdfast-Id" in values
    if not known or not (sequence.isascii() and sequence.isdigit()) or not _TREE.match(tree):
        return None
    number = int(sequence[:18])
    identifier, digest = CheckpointId(values["Holdfast-Id"]), Digest(bytes.fromhex(tree))
    return MirrorPoint(identifier, number, digest, values.get("Holdfast-Approves"))


def mirror_names(
    sessions: Iterable[tuple[Session, Sequence[Round]]], latest: SessionId | None
) -> Mapping[bytes, CheckpointId]:
    """Ref names below the mirror: `approved` and `session_2` of each session under `sessions/ID/`.
    The session that saved last also has them without that prefix."""
    names: dict[bytes, CheckpointId] = {}
    for session, rounds in sessions:
        own: dict[bytes, CheckpointId] = {}
        if session.approved is not None:
            own[b"approved"] = session.approved
        for one in rounds:
            end = one.head if one.ended_at_ns is not None else session.head
            if end is not None:
                own[one.name.encode()] = end
        below = b"sessions/" + ref_component(session.id) + b"/"
        names |= {below + name: checkpoint for name, checkpoint in own.items()}
        if session.id == latest:
            names |= own
    return names


def ref_component(text: str) -> bytes:
    """The text as one part of a ref name; bytes that git might refuse are written as %41."""
    data = text.encode("utf-8", "surrogateescape")
    parts = (bytes((byte,)) for byte in data)
    return b"".join(part if _PLAIN.match(part) else b"%%%02X" % part[0] for part in parts)

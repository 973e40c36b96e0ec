"""Tools that read the history: `checkpoint_list`, `checkpoint_history` and `checkpoint_show`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from holdfast.api.views.tool_values import (
    CheckpointInfo,
    MessageInfo,
    checkpoint_info,
    restore_hint,
)
from holdfast.domain.checkpoints import AUTOMATIC_KINDS, KINDS_OF_TYPE, Checkpoint, Kind
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import SESSION_ID_MAX_LENGTH
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.domain.wording import count_words, size_words
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.tool import (
    Answer,
    Parameter,
    Tool,
    ToolContext,
    flag,
    limit,
    reference,
)
from holdfast.interfaces.tools.wording import (
    MOST_LISTED,
    NOTHING_SAVED,
    PathNote,
    bullets,
    cut,
    label,
    many_lines,
    message_info,
    notes,
    one_line,
    path_list,
    path_text,
    reason_line,
    row,
)

_MOST_NOTES = 50
_MOST_MESSAGES = 3
_LONGEST_NOTE = 5_000
_MOST_REASONING = 300_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of checkpoints, newest first; `next_cursor` asks for the next one."""

    checkpoints: list[CheckpointInfo]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class LineOfWork:
    """The steps that led to a checkpoint, newest first; `complete`: back to the beginning."""

    steps: list[CheckpointInfo]
    complete: bool


@dataclass(frozen=True, slots=True)
class NoteInfo:
    """A note about a checkpoint."""

    number: int
    revision: int
    author: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything about one checkpoint. `components` are lines about state other than files,
    `conversation` the last messages before it."""

    checkpoint: CheckpointInfo
    goal_id: str | None
    task_id: str | None
    tool_calls: list[str | dict[str, Any]]
    left_out: list[PathNote]
    left_out_total: int
    paths: list[str] = field(default_factory=list)
    annotations: list[NoteInfo] = field(default_factory=list)
    components: list[str] = field(default_factory=list)
    conversation: list[MessageInfo] = field(default_factory=list)


def list_checkpoints(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    found, following = _fitting_answer(_matching(context, arguments), arguments["limit"])
    head = context.session.head_id
    rows = [_listed(context, checkpoint, head) for checkpoint in found]
    cursor = None if following is None else str(found[-1].sequence)
    if not rows:
        first = "No checkpoint matches." if context.session.checkpoint_count else NOTHING_SAVED
        return Answer(first, Listed([], None))
    lines = [row(one) for one in rows]
    if cursor:
        lines.append(f'There are more: checkpoint_list {{"cursor": "{cursor}"}}.')
    return Answer("\n".join(lines), Listed(rows, cursor))


def _listed(context: ToolContext, found: Checkpoint, head: str | None) -> CheckpointInfo:
    info = checkpoint_info(found, head=head)
    if found.session_id == context.session_id:
        return info
    return replace(info, restore_hint=restore_hint(f"{found.session_id}:{found.id}"))


def _matching(context: ToolContext, arguments: dict[str, Any]) -> Iterator[Checkpoint]:
    kinds = _kinds(arguments["checkpoint_type"])
    before = _cursor(arguments["cursor"])
    session = context.session_id
    if arguments["session_id"] is not None:
        session = context.workspace.sessions.find(arguments["session_id"].strip()).id
    records = arguments["records"] or all(kind.is_record for kind in kinds)
    for found in context.checkpoints(session, records=records, before=before):
        if found.kind in kinds and arguments["tag"] in (None, *found.intent.tags):
            yield found


def _kinds(text: str | None) -> tuple[Kind, ...]:
    if text is None:
        return tuple(Kind)
    if text == "auto":
        return AUTOMATIC_KINDS  # risky ones too, as in `holdfast log --kind auto`
    if text in KINDS_OF_TYPE:
        return KINDS_OF_TYPE[text]
    try:
        return (Kind(text),)
    except ValueError:
        known = dict.fromkeys([*KINDS_OF_TYPE, *(kind.value for kind in Kind)])
        raise BadArguments(
            f"checkpoint_type of checkpoint_list cannot be {one_line(text)!r}",
            hint=f"types are: {', '.join(known)}",
        ) from None


def _cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadArguments(
            "unknown cursor for checkpoint_list",
            hint="pass the next_cursor of the previous page, or leave it out for the first page",
        )
    return int(text)


def history(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    head = context.session.head_id
    if arguments["checkpoint_id"] is None and head is None:
        return Answer(NOTHING_SAVED, LineOfWork([], True))
    ancestry = context.workspace.history.ancestry(
        context.resolve(arguments["checkpoint_id"] or "HEAD")
    )
    line, following = _fitting_answer(ancestry, arguments["limit"])
    steps = [checkpoint_info(checkpoint, head=head) for checkpoint in line]
    lines: list[str] = []
    for step in steps:
        lines.append(f"{row(step)} (confidence {step.confidence:.0%})")
        rest = step.reasoning.strip().split("\n")[1:]
        lines += [f"    {one_line(part)}" for part in rest]
    if following is not None:
        lines.append(f'To continue: checkpoint_history {{"checkpoint_id": "{following.id}"}}.')
    return Answer("\n".join(lines), LineOfWork(steps, following is None))


def show(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    found = context.resolve(arguments["checkpoint_id"] or "HEAD")
    one = checkpoint_info(found, head=context.session.head_id)
    contents = context.workspace.contents
    skipped = [one for one in contents.skipped(found) if not one.is_expected]
    left_out = notes((path.path, path.describe()) for path in skipped[:MOST_LISTED])
    intent, written = found.intent, _newest_notes(context, found)
    messages = _messages_before(context, found)
    spoken = [f"{said.role}: {cut(one_line(said.content.strip()), 200)}" for said in messages]
    parts = contents.component_lines(found)
    besides = [reason_line(f"{name}: {line}") for name, line in parts[:MOST_LISTED]]
    paths: list[str] = []
    if arguments["files"]:
        entries = contents.entries(found)
        names = (path for path, entry in entries if not isinstance(entry, DirectoryEntry))
        paths = [path_text(path) for path in islice(names, arguments["limit"])]
    lines = [
        f"Checkpoint {label(found)}, {found.kind.value}, {one.created_at}",
        f"id: {found.id}",
        f"reasoning: {many_lines(intent.reasoning)}",
        f"confidence: {intent.confidence:.2f}",
        *(f"{name}: {one_line(value)}" for name, value in _details(found)),
        (
            f"{count_words(found.files, 'file')}, {size_words(found.size_bytes)}; {one.added} "
            f"added, {one.modified} modified, {one.removed} removed since the previous one"
        ),
        *(["It is partial: some paths or components could not be saved."] if found.partial else []),
        *(["Besides files:", *bullets(besides)] if besides else []),
        *(["Conversation before it:", *bullets(spoken)] if spoken else []),
        *(f"note {note.number}: {many_lines(note.text)}" for note in written),
        *path_list(f"Left out ({len(skipped):,}):", left_out),
        *(["Files:", *bullets(paths, arguments["limit"])] if paths else []),
    ]
    if paths and found.files > len(paths):
        lines.append(f"  … and {found.files - len(paths):,} more; raise `limit` to list more.")
    calls = [call if isinstance(call, str) else dict(call) for call in intent.tool_calls]
    data = Shown(
        one,
        intent.goal_id,
        intent.task_id,
        calls,
        left_out,
        len(skipped),
        paths,
        annotations=written,
        components=besides,
        conversation=messages,
    )
    return Answer("\n".join(lines), data)


def _newest_notes(context: ToolContext, found: Checkpoint) -> list[NoteInfo]:
    """The newest notes about a checkpoint that fit an answer."""
    annotations = context.workspace.conversation.around(found).annotations
    return [
        NoteInfo(note.number, note.revision, note.author, cut(note.text, _LONGEST_NOTE))
        for note in annotations[-_MOST_NOTES:]
    ]


def _messages_before(context: ToolContext, found: Checkpoint) -> list[MessageInfo]:
    """The message of a checkpoint and those before it, as far as they are readable."""
    if found.message_index is None:
        return []
    first = max(found.message_index + 1 - _MOST_MESSAGES, 0)
    try:
        messages = context.workspace.conversation.messages(
            found.session_id, first=first, limit=found.message_index + 1 - first
        )
    except HoldfastError:
        return []  # an unreadable conversation must not hide a checkpoint
    return [message_info(one) for one in messages]


def _details(found: Checkpoint) -> Iterator[tuple[str, str]]:
    intent = found.intent
    if intent.goal_id:
        yield "goal", intent.goal_id
    if intent.task_id:
        yield "task", intent.task_id
    if intent.tags:
        yield "tags", ", ".join(intent.tags)
    if found.parent:
        yield "parent", found.parent
    if found.restores_from:
        yield "restored from", found.restores_from
    for call in intent.tool_calls:
        yield "tool call", call if isinstance(call, str) else str(dict(call))[:500]


def _fitting_answer(
    found: Iterable[Checkpoint], limit: int
) -> tuple[list[Checkpoint], Checkpoint | None]:
    """At most `limit` checkpoints, fewer if their reasons are long but at least one, and the
    following one, if any."""
    fitting: list[Checkpoint] = []
    room = _MOST_REASONING
    for one in found:
        room -= len(one.intent.reasoning)
        if len(fitting) == limit or (fitting and room < 0):
            return fitting, one
        fitting.append(one)
    return fitting, None


LIST = Tool(
    "checkpoint_list",
    "List checkpoints",
    "List checkpoints, newest first, with ids, names, reasons and change counts. Use it to find "
    "the state to compare with or return to.",
    (
        limit(10),
        Parameter(
            "checkpoint_type",
            "string",
            "manual, auto (includes risky), session, risky, or a kind: initial, message, tool, "
            "interval, threshold, end-of-day, merge.",
            "manual",
            most=20,
            aliases=("kind", "type"),
        ),
        Parameter("session_id", "string", "Default: this one.", "s-1", most=SESSION_ID_MAX_LENGTH),
        Parameter("cursor", "string", "`next_cursor` of the last page.", "9", most=40),
        Parameter("tag", "string", "Only with this tag.", "auth", most=64),
        flag("records", "Also the states before and after restores."),
    ),
    "read",
    handler=list_checkpoints,
    result=Listed,
    without_store=lambda workspace, session: Answer(NOTHING_SAVED, Listed([], None)),
)

HISTORY = Tool(
    "checkpoint_history",
    "Show how this state came about",
    "The steps that led to a checkpoint, newest first, with full reasoning and confidence. Unlike "
    "checkpoint_list, it leaves out attempts that were rolled back.",
    (limit(10), reference("Default: HEAD.")),
    "read",
    handler=history,
    result=LineOfWork,
    without_store=lambda workspace, session: Answer(NOTHING_SAVED, LineOfWork([], True)),
)

SHOW = Tool(
    "checkpoint_show",
    "Show a checkpoint",
    "Everything about one checkpoint: reason, goal, confidence, tool calls, conversation before "
    "it, notes, what changed, and what was left out and why.",
    (
        reference("Default: HEAD."),
        flag("files", "List its paths."),
        limit(20),
    ),
    "read",
    handler=show,
    result=Shown,
)

"""`checkpoint_diff`: changed paths, or the changed lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT
from holdfast.domain.paths import require_safe_path
from holdfast.domain.trees.changes import Change
from holdfast.domain.wording import count_words
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.tool import (
    PATH_HINT,
    PATHS,
    Answer,
    Parameter,
    Tool,
    ToolContext,
    flag,
    reference,
)
from holdfast.interfaces.tools.wording import MOST_LISTED, bullets, cut, label, one_line, path_text

if TYPE_CHECKING:
    from holdfast.api.diffs import Difference
    from holdfast.domain.checkpoints import Checkpoint

# The limit of changed lines in one answer; `paths` narrows them down.
_MOST_CHARACTERS = 60_000
_LONGEST_LINE = 2_000
_MOST_CONTEXT = 100


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """A path that differs: added, removed, modified or renamed."""

    path: str
    change: str
    old_path: str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences between two states. `to_id` is None for the current workspace, `from_id` if
    nothing came before. `recorded` is not restored."""

    from_id: str | None
    to_id: str | None
    changes: list[ChangedPath]
    total: int
    diff: str | None
    diff_is_complete: bool
    from_reason: str | None = None
    to_reason: str | None = None
    recorded: list[str] = field(default_factory=list)


def diff(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    paths = [require_safe_path(path.rstrip(b"/")) for path in context.paths(arguments["paths"])]
    old, new = _sides(context, arguments)
    found = context.workspace.diffs.compare(
        old, new, paths=paths, context=arguments["context_lines"], path_hint=PATH_HINT
    )
    changes = found.changes
    listed = [_changed(change) for change in changes[:MOST_LISTED]]
    ids = (None if old is None else old.id, None if new is None else new.id)
    reasons = (_reason(old), _reason(new))
    before = label(old) if old is not None else "an empty workspace"
    after = label(new) if new is not None else "the workspace as it is now"
    sides = f"between {before} and {after}{' in these paths' if paths else ''}"
    besides = [f"{one.name}: {one_line(line)}" for one in found.recorded for line in one.lines]
    if not changes:
        nothing = "Nothing differs" if not besides else "No file differs"
        told = "\n".join([f"{nothing} {sides}.", *besides])
        return Answer(told, Compared(*ids, [], 0, None, True, *reasons, besides))
    text, complete = None, True
    lines = [
        f"{count_words(len(changes), 'path differs', 'paths differ')} {sides}:",
        *(f"{label(one)}: {cut(one_line(one.intent.reasoning), 200)}" for one in (old, new) if one),
        *besides,
    ]
    if arguments["content"] or arguments["checkpoint_id"]:
        text, complete = _unified(found)
        lines.append(text)
        if not complete:
            lines.append("… truncated. Ask for fewer paths to see the rest.")
    else:
        lines += bullets([_row(change) for change in listed], 200)
        if new is None and old is not None:
            call = f'checkpoint_restore {{"checkpoint_id": "{old.id}", "paths": ["…"]}}'
            lines.append(f"To restore some of it: {call}.")
    data = Compared(*ids, listed, len(changes), text, complete, *reasons, besides)
    return Answer("\n".join(lines), data)


def _reason(one: Checkpoint | None) -> str | None:
    return None if one is None else one.intent.reasoning


def _sides(
    context: ToolContext, arguments: dict[str, Any]
) -> tuple[Checkpoint | None, Checkpoint | None]:
    """A checkpoint and the one before it, or the two that are named."""
    from_ref, to_ref = arguments["from_checkpoint"], arguments["to_checkpoint"]
    if arguments["checkpoint_id"] is None:
        new = None if to_ref is None else context.resolve(to_ref)
        return context.resolve(from_ref or ("HEAD" if new is None else "initial")), new
    if from_ref is not None or to_ref is not None:
        raise BadArguments(
            "checkpoint_diff takes checkpoint_id or from_checkpoint and to_checkpoint, not both",
            hint='for example: checkpoint_diff {"from_checkpoint": "HEAD~1"}',
        )
    new = context.resolve(arguments["checkpoint_id"])
    _, *before = islice(context.workspace.history.ancestry(new), 2)
    return (before[0] if before else None), new


def _changed(change: Change) -> ChangedPath:
    old = None if change.old_path is None else path_text(change.old_path)
    mark = "/" if change.is_directory else ""
    return ChangedPath(path_text(change.path) + mark, change.type.value, old)


def _row(change: ChangedPath) -> str:
    old = f"{change.old_path} → " if change.old_path else ""
    return f"{change.change} {old}{change.path}"


def _unified(found: Difference) -> tuple[str, bool]:
    """A unified diff, as far as it fits, and whether it is complete."""
    written: list[str] = []
    room = _MOST_CHARACTERS
    for change in found.changes:
        for line in _lines(found, change):
            room -= len(line) + 1
            if room < 0:
                return "\n".join(written), False
            written.append(line)
    return "\n".join(written), True


def _lines(found: Difference, change: Change) -> Iterator[str]:
    yield f"=== {_row(_changed(change))}"
    content = found.content(change)
    if content is None:
        return
    if content.kind == "withheld":
        from holdfast.api.diffs import WITHHELD

        yield f"({WITHHELD})"
        return
    if content.kind in ("binary", "too_large"):
        sizes = f"{content.old_size_bytes or 0:,} → {content.new_size_bytes or 0:,} bytes"
        yield f"({content.kind.replace('_', ' ')}: {sizes})"
        return
    for hunk in content.hunks():
        yield _shown(hunk.header())
        for line in hunk.lines:
            yield line.kind + _shown(line.text)
            if line.no_newline:
                yield "\\ No newline at end of file"


def _shown(line: bytes) -> str:
    parts = line[:_LONGEST_LINE].decode("utf-8", "surrogateescape").split("\t")
    text = "\t".join(one_line(part) for part in parts)
    return text + "…" if len(line) > _LONGEST_LINE else text


DIFF = Tool(
    "checkpoint_diff",
    "Compare",
    "What changed: in one checkpoint (`checkpoint_id`, as a unified diff), or between two states "
    "(`from_checkpoint`, `to_checkpoint`; `content` for the lines). Use it before restoring and to "
    "review your work.",
    (
        reference("The changes in this one.", aliases=()),
        Parameter(
            "context_lines",
            "integer",
            "Lines around each change.",
            3,
            default=DEFAULT_CONTEXT,
            least=0,
            most=_MOST_CONTEXT,
        ),
        Parameter(
            "from_checkpoint",
            "string",
            "Default: HEAD; the first one if `to_checkpoint` is given.",
            "HEAD~1",
            most=400,
            aliases=("from_ref", "from"),
        ),
        Parameter(
            "to_checkpoint",
            "string",
            "Default: the workspace now.",
            "HEAD",
            most=400,
            aliases=("to_ref", "to"),
        ),
        PATHS,
        flag("content", "Show changed lines."),
    ),
    "read",
    handler=diff,
    result=Compared,
)

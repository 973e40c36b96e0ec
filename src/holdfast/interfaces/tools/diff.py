"""`checkpoint_diff`: changed paths, or the changed lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.domain.paths import require_safe_path
from holdfast.domain.trees.changes import Change
from holdfast.domain.wording import count_words
from holdfast.interfaces.tools.tool import (
    PATH_HINT,
    PATHS,
    Answer,
    Tool,
    ToolContext,
    flag,
    reference,
)
from holdfast.interfaces.tools.wording import MOST_LISTED, bullets, label, one_line, path_text

if TYPE_CHECKING:
    from holdfast.api.diffs import ContentDiff, Difference

# What a model is given of changed lines at once; paths narrow it down.
_MOST_CHARACTERS = 60_000
_LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class ChangedPath:
    """A path that differs: added, removed, modified or renamed."""

    path: str
    change: str
    old_path: str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs between two states; `to_id` is None for the workspace as it is now."""

    from_id: str
    to_id: str | None
    changes: list[ChangedPath]
    total: int
    diff: str | None
    diff_is_complete: bool


def diff(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    old = context.resolve(arguments["from_ref"] or "HEAD")
    new = context.resolve(arguments["to_ref"]) if arguments["to_ref"] is not None else None
    given = context.paths(arguments["paths"])
    paths = [require_safe_path(path.rstrip(b"/")) for path in given]
    found = context.workspace.diffs.compare(old, new, paths=paths, path_hint=PATH_HINT)
    changes = found.changes
    listed = [_changed(change) for change in changes[:MOST_LISTED]]
    other = label(new) if new is not None else "the workspace as it is now"
    sides = f"between {label(old)} and {other}"
    within = " in these paths" if paths else ""
    if not changes:
        empty = Compared(old.id, new.id if new else None, [], 0, None, True)
        return Answer(f"Nothing differs {sides}{within}.", empty)
    text, complete = None, True
    lines = [f"{count_words(len(changes), 'path differs', 'paths differ')} {sides}{within}:"]
    if arguments["content"]:
        text, complete = _unified(found)
        lines.append(text)
        if not complete:
            lines.append("… cut here. Ask for fewer paths to see the rest.")
    else:
        lines += bullets([_row(change) for change in listed], 200)
        if new is None:
            lines.append(_WAY_BACK.format(old.id))
    data = Compared(old.id, new.id if new else None, listed, len(changes), text, complete)
    return Answer("\n".join(lines), data)


_WAY_BACK = 'To take some of it back: checkpoint_restore {{"ref": "{}", "paths": ["…"]}}.'


def _changed(change: Change) -> ChangedPath:
    old = None if change.old_path is None else path_text(change.old_path)
    mark = "/" if change.is_directory else ""
    return ChangedPath(path_text(change.path) + mark, change.type.value, old)


def _row(change: ChangedPath) -> str:
    old = f"{change.old_path} → " if change.old_path else ""
    return f"{change.change} {old}{change.path}"


def _unified(found: Difference) -> tuple[str, bool]:
    """A diff in the usual form, as far as it fits; whether that is all of it."""
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
    if content is not None:
        yield from _content(content)


def _content(content: ContentDiff) -> Iterator[str]:
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
    "What differs between a checkpoint and the workspace as it is now, or between two "
    "checkpoints. Use it before restoring, and to review your own work. With `content`, the "
    "changed lines as a unified diff; otherwise the changed paths.",
    (
        reference("The old side. Default: HEAD.", "from_ref"),
        reference("The new side. Default: the workspace as it is now.", "to_ref"),
        PATHS,
        flag("content", "Show the changed lines."),
    ),
    "read",
    handler=diff,
    result=Compared,
)

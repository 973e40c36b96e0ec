"""`checkpoint_diff`: what differs, as paths or as the changed lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.domain.paths import is_within
from holdfast.domain.trees.changes import Change
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.compare.changed_content import compare_change
from holdfast.engine.compare.content_diff import ContentDiff
from holdfast.engine.compare.ignored_content import WITHHELD, IgnoredContent
from holdfast.engine.compare.tree_diff import require_known_paths
from holdfast.engine.restore.plan import require_paths
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.results import ChangedPath, Compared
from holdfast.interfaces.tools.wording import (
    MOST_LISTED,
    bullets,
    count,
    label,
    one_line,
    path_text,
)

# What a model is given of changed lines at once; paths narrow it down.
_MOST_CHARACTERS = 60_000
_LONGEST_LINE = 2_000


def diff(bench: Bench, arguments: dict[str, Any]) -> Answer:
    old = bench.resolve(arguments["from_ref"] or "HEAD")
    new = bench.resolve(arguments["to_ref"]) if arguments["to_ref"] is not None else None
    paths = require_paths(bench.paths(arguments["paths"]))
    scan = bench.engine.look() if new is None else None
    found = bench.engine.changes_in(scan, old) if scan else bench.engine.changes(old, new)
    changes = [change for change in found if _selected(change, paths)]
    if not changes:
        hint = 'paths are relative to the workspace, e.g. ["src/app.py"]'
        require_known_paths(bench.engine.vault, paths, old, new, scan, hint=hint)
    listed = [_changed(change) for change in changes[:MOST_LISTED]]
    other = label(new) if new is not None else "the workspace as it is now"
    sides = f"between {label(old)} and {other}"
    within = " in these paths" if paths else ""
    if not changes:
        empty = Compared(old.id, new.id if new else None, [], 0, None, True)
        return Answer(f"Nothing differs {sides}{within}.", empty)
    text, complete = None, True
    lines = [f"{count(len(changes), 'path differs', 'paths differ')} {sides}{within}:"]
    if arguments["content"]:
        text, complete = _unified(bench, changes, in_workspace=new is None)
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


def _selected(change: Change, paths: Sequence[bytes]) -> bool:
    ends = (change.path,) if change.old_path is None else (change.path, change.old_path)
    return not paths or any(is_within(end, path) for end in ends for path in paths)


def _changed(change: Change) -> ChangedPath:
    old = None if change.old_path is None else path_text(change.old_path)
    mark = "/" if change.is_directory else ""
    return ChangedPath(path_text(change.path) + mark, change.type.value, old)


def _row(change: ChangedPath) -> str:
    old = f"{change.old_path} → " if change.old_path else ""
    return f"{change.change} {old}{change.path}"


def _unified(bench: Bench, changes: Sequence[Change], *, in_workspace: bool) -> tuple[str, bool]:
    """A diff in the usual form, as far as it fits; whether that is all of it."""
    written: list[str] = []
    room = _MOST_CHARACTERS
    ignored = IgnoredContent(bench.engine.vault)
    for change in changes:
        for line in _lines(bench, change, ignored, in_workspace=in_workspace):
            room -= len(line) + 1
            if room < 0:
                return "\n".join(written), False
            written.append(line)
    return "\n".join(written), True


def _lines(
    bench: Bench, change: Change, ignored: IgnoredContent, *, in_workspace: bool
) -> Iterator[str]:
    yield f"=== {_row(_changed(change))}"
    same = isinstance(change.old, FileEntry) and change.old.same_content(change.new)
    if change.is_directory or same:
        return
    content = compare_change(bench.engine.vault, change, ignored, new_in_workspace=in_workspace)
    if content is not None:
        yield from _content(content)


def _content(content: ContentDiff) -> Iterator[str]:
    if content.kind == "withheld":
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

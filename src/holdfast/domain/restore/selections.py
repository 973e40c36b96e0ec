"""The paths or hunks that a partial restore selected, stored with its record.

It is stored as a tool call in the record's intent, so export, repair and search include it. A path
that is not UTF-8 is written as its bytes in hexadecimal, so that every path is preserved exactly.

Older records only say that something was selected, not what.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.intent import SnapshotIntent, ToolCall
from holdfast.domain.paths import to_text
from holdfast.values.classes import dataclass

RESTORE_TOOL = "holdfast restore"
_SAID = re.compile(r" \(\d+ selected \w+\)\Z")
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Selection:
    """The paths that were restored; empty if unknown. `hunks`: only these hunks of the one file in
    `paths`, by name."""

    paths: tuple[bytes, ...] = ()
    hunks: tuple[str, ...] = ()


def restore_intent(
    words: str, paths: Sequence[bytes], hunks: Sequence[str] = (), *, confidence: float
) -> SnapshotIntent:
    """The intent of a restore record, as text and as data. For a full restore the text is enough,
    unless a checkpoint name makes it look like a partial one."""
    calls: tuple[ToolCall, ...] = ()
    if paths or _SAID.search(words) is not None:
        call: dict[str, Any] = {"tool": RESTORE_TOOL, "paths": [_written(path) for path in paths]}
        calls = (call | {"hunks": sorted(hunks)} if hunks else call,)
    return SnapshotIntent(words, tool_calls=calls, confidence=confidence)


def selection_of(record: Checkpoint) -> Selection | None:
    """The selection in a restore record; None for a full restore, or if it is not such a record."""
    if record.kind is not Kind.RESTORE:
        return None
    return selected_in(record.intent.tool_calls, record.intent.reasoning)


def selected_in(calls: Sequence[ToolCall], words: str) -> Selection | None:
    """The selection in the parts of a record."""
    for call in calls:
        if isinstance(call, Mapping) and call.get("tool") == RESTORE_TOOL:
            paths = call.get("paths")
            read = [_read(path) for path in paths] if isinstance(paths, list) else []
            hunks = call.get("hunks")
            names = hunks if isinstance(hunks, list) else []
            known = tuple(path for path in read if path is not None)
            return Selection(known, tuple(map(str, names))) if read else None
    return Selection() if _SAID.search(words) is not None else None


def selected_words(selection: Selection) -> str:
    """`a.txt, b.txt and 4 more`, as texts with surrogate escapes; empty if unknown."""
    shown = ", ".join(to_text(path) for path in selection.paths[:_NAMED])
    more = len(selection.paths) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _written(path: bytes) -> str | dict[str, str]:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return {"hex": path.hex()}


def _read(written: object) -> bytes | None:
    """None for text that Holdfast did not write."""
    if isinstance(written, str):
        return written.encode("utf-8", "surrogateescape")
    if isinstance(written, Mapping):
        try:
            return bytes.fromhex(str(written.get("hex")))
        except ValueError:
            return None
    return None

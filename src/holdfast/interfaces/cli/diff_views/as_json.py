"""A difference as JSON: one document, whole or not there, that does not fill the memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.domain.changes import Change
from holdfast.domain.hunk_choice import NumberedHunk, numbered
from holdfast.domain.hunks import Hunk
from holdfast.interfaces.cli import json_output
from holdfast.interfaces.cli.diff_views.difference import Difference, mode_change
from holdfast.interfaces.cli.json_output import dumps
from holdfast.interfaces.cli.terminal import Terminal
from holdfast.interfaces.cli.whole_output import whole_output

NO_NEWLINE = "\\ No newline at end of file"


def write_json(terminal: Terminal, difference: Difference, *, hunks: bool) -> None:
    ends: dict[str, Any] = {
        "from": difference.old.id if difference.old else None,
        "to": difference.new_label,
    }
    if difference.is_across_sessions:
        both = {"from": difference.old, "to": difference.new}
        ends["reasons"] = {end: one.intent.reasoning for end, one in both.items() if one}
    if not hunks:
        changes = [_described(difference, change) for change in difference.changes]
        terminal.line(dumps(ends | {"changes": changes}, indent=terminal.for_people))
        return
    with whole_output(terminal) as write:
        write(dumps(ends)[:-1].encode() + b', "changes": [')
        for number, change in enumerate(difference.changes):
            write(b", " if number else b"")
            for piece in _change_pieces(difference, change):
                write(piece.encode())
        write(b"]}\n")


def change_as_json(difference: Difference, change: Change) -> dict[str, Any]:
    """One change with its hunks, as a value."""
    described: dict[str, Any] = json.loads("".join(_change_pieces(difference, change)))
    return described


def _change_pieces(difference: Difference, change: Change) -> Iterator[str]:
    described = _described(difference, change)
    content = difference.content(change)
    if (modes := mode_change(change)) is not None:
        described |= {"old_mode": f"{modes[0]:04o}", "new_mode": f"{modes[1]:04o}"}
    if content is not None:
        described["content"] = content.kind
        if content.kind == "notebook":
            described["cells"] = [
                {
                    "old_index": cell.index_old,
                    "new_index": cell.index_new,
                    "type": cell.cell_type,
                    "change": cell.change,
                    "hunks": [_hunk(hunk) for hunk in cell.hunks],
                }
                for cell in content.cells
            ]
    yield dumps(described)[:-1] + ', "hunks": ['
    for hunk in numbered(content.hunks() if content is not None else ()):
        yield (", " if hunk.number > 1 else "") + dumps(hunk_as_json(hunk))
    yield "]}"


def _described(difference: Difference, change: Change) -> dict[str, Any]:
    described: dict[str, Any] = json_output.change(change)
    if (reason := difference.left_out.get(change.path)) is not None:
        described["left_out"] = reason
    return described


def hunk_as_json(hunk: NumberedHunk) -> dict[str, Any]:
    """With what `restore --hunk` takes: its number, and the id that only this very hunk has."""
    return {"number": hunk.number, "id": hunk.name} | _hunk(hunk.hunk)


def _hunk(hunk: Hunk) -> dict[str, Any]:
    lines: list[str] = []
    for line in hunk.lines:
        lines.append(line.kind + line.text.decode("utf-8", "surrogateescape"))
        if line.no_newline:
            lines.append(NO_NEWLINE)
    return {
        "old_start": hunk.old_start,
        "old_lines": hunk.old_count,
        "new_start": hunk.new_start,
        "new_lines": hunk.new_count,
        "heading": hunk.heading.decode("utf-8", "surrogateescape"),
        "lines": lines,
    }

"""A difference as JSON: one document, whole or not there, that does not fill the memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.api.views.changes import ChangeView, cell_view, change_view, numbered_hunk_view
from holdfast.domain.diff.hunk_choice import numbered
from holdfast.domain.trees.changes import Change
from holdfast.interfaces.cli.diff_views.difference import mode_change
from holdfast.interfaces.cli.json_output import dumps
from holdfast.interfaces.cli.terminal import Terminal
from holdfast.interfaces.cli.whole_output import whole_output

if TYPE_CHECKING:
    from holdfast.api.diffs import Difference


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


def change_as_json(difference: Difference, change: Change) -> ChangeView:
    """One change with its hunks, as a value."""
    described: ChangeView = json.loads("".join(_change_pieces(difference, change)))
    return described


def _change_pieces(difference: Difference, change: Change) -> Iterator[str]:
    described = _described(difference, change)
    content = difference.content(change)
    if (modes := mode_change(change)) is not None:
        described["old_mode"], described["new_mode"] = (f"{mode:04o}" for mode in modes)
    if content is not None:
        described["content"] = content.kind
        if content.kind == "notebook":
            described["cells"] = [cell_view(cell) for cell in content.cells]
    yield dumps(described)[:-1] + ', "hunks": ['
    for hunk in numbered(content.hunks() if content is not None else ()):
        yield (", " if hunk.number > 1 else "") + dumps(numbered_hunk_view(hunk))
    yield "]}"


def _described(difference: Difference, change: Change) -> ChangeView:
    described = change_view(change)
    if (reason := difference.left_out.get(change.path)) is not None:
        described["left_out"] = reason
    return described

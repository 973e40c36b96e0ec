"""A difference as JSON: one document, whole or not there, that does not fill the memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.api.views.changes import (
    ChangeView,
    change_view,
    compared_view,
    difference_view,
    numbered_hunk_view,
)
from holdfast.domain.diff.hunk_choice import numbered
from holdfast.domain.trees.changes import Change
from holdfast.interfaces.cli.terminal import Terminal
from holdfast.interfaces.cli.whole_output import whole_output

if TYPE_CHECKING:
    from holdfast.api.diffs import Difference


def write_json(terminal: Terminal, difference: Difference, *, hunks: bool) -> None:
    ends = difference_view(difference)
    left_out = difference.left_out
    if not hunks:
        changes = [change_view(one, left_out.get(one.path)) for one in difference.changes]
        indent = 2 if terminal.for_people else None
        terminal.line(json.dumps({**ends, "changes": changes}, indent=indent))
        return
    with whole_output(terminal) as write:
        write(json.dumps(ends)[:-1].encode() + b', "changes": [')
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
    content = difference.content(change)
    described = compared_view(change, difference.left_out.get(change.path), content)
    yield json.dumps(described)[:-1] + ', "hunks": ['
    for hunk in numbered(content.hunks() if content is not None else ()):
        yield (", " if hunk.number > 1 else "") + json.dumps(numbered_hunk_view(hunk))
    yield "]}"

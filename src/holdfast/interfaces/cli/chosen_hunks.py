"""`--hunk`: which hunks are meant, and what they are, before and after they are restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.domain.hunk_choice import DEFAULT_CONTEXT, NumberedHunk, hunk_key
from holdfast.interfaces.cli.arguments import context_lines
from holdfast.interfaces.cli.diff_views.unified import hunk_lines, show_lines
from holdfast.interfaces.cli.terminal import Terminal

if TYPE_CHECKING:
    from holdfast.api.restores import RestoreRequest
    from holdfast.api.workspace import Workspace
    from holdfast.interfaces.cli.invocation import Invocation


def choose(
    invocation: Invocation, opened: Workspace, request: RestoreRequest
) -> tuple[RestoreRequest, list[NumberedHunk]]:
    """The request for the hunks that were asked for, and these hunks."""
    wanted = [hunk_key(text) for given in invocation.options.hunks for text in given.split(",")]
    if len(request.paths) != 1:
        raise UsageError(
            "--hunk needs the one file it is about",
            hint="write: holdfast restore REF PATH --hunk 1",
        )
    text = invocation.options.context
    context = DEFAULT_CONTEXT if text is None else context_lines(text)
    with invocation.busy("comparing", opened):
        present = opened.restores.look(request.target)
        request = present.choose_hunks(request, wanted, context=context)
        assert request.hunks is not None
        names = request.hunks.names
        [path] = request.paths
        hunks = present.hunks(request.target, path, context=context)
        return request, [hunk for hunk in hunks if hunk.name in names]


def show_hunks(terminal: Terminal, hunks: Sequence[NumberedHunk]) -> None:
    """What is taken back: lines with a plus go, lines with a minus return."""
    for hunk in hunks:
        show_lines(terminal, hunk_lines(hunk.hunk, f"hunk {hunk.number}: "))

"""`holdfast show`: everything about one checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UnknownReference
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

if TYPE_CHECKING:
    from holdfast.api.views.checkpoints import ShownCheckpointView
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.trees.entries import Entry

ANSWERS = True


def configure(parser: Parser) -> None:
    parser.usage = "holdfast show [REF] [--files]\n       holdfast show REF:PATH"
    parser.description = """\
Show one checkpoint: when, why, how sure, what changed with it, what was left out of it and what was
written about it. REF is
an id, the beginning of one, a name, HEAD, HEAD~n, initial, approved, or a time such as
@{2 hours ago}; without it, HEAD. With --files, also every path in it.

REF:PATH shows a file as it was, or lists a directory. In a pipe its exact bytes are written."""
    parser.epilog = """\
examples:
  $ holdfast show before-refactor
  $ holdfast show HEAD~2 --files
  $ holdfast show HEAD~2:src/app.py
  $ holdfast show initial:data.csv > data.old.csv"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="REF[:PATH]",
        help="the checkpoint (default: HEAD), or a file in it",
    )
    parser.add_argument("--files", action="store_true", help="list every path, mode and size")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.path_arguments import path_mistaken_for_checkpoint

    words = invocation.at_most(1, "one checkpoint, or one REF:PATH")
    with invocation.open() as opened:
        wanted = words[0] if words else "HEAD"
        try:
            with path_mistaken_for_checkpoint(invocation, opened, wanted, "holdfast show HEAD:{}"):
                found = invocation.resolve(opened, wanted)
        except (UnknownReference, NotFound):
            from holdfast.interfaces.cli.file_at_checkpoint import named_file, show_old_file

            named = named_file(invocation, opened, wanted) if ":" in wanted else None
            if named is None:
                raise
            with opened.contents.explain_deletion(named[:1], "shown"):
                show_old_file(invocation, opened, *named)
            return 0
        entries = opened.contents.entries(found) if invocation.options.files else None
        with opened.contents.explain_deletion((found,), "shown"):
            if invocation.json:
                invocation.emit(_as_json(opened, found, entries))
            else:
                with invocation.paged():
                    _show(invocation, opened, found, entries)
    return 0


def _is_head(opened: Workspace, found: Checkpoint) -> bool:
    head = opened.head()
    return head is not None and head.id == found.id


def _is_approved(opened: Workspace, found: Checkpoint) -> bool:
    """Whether some round was approved with it, not only the last."""
    past = opened.rounds.all(found.session_id)
    return any(one.approved == found.id for one in past)


def _as_json(
    opened: Workspace, found: Checkpoint, entries: Iterator[tuple[bytes, Entry]] | None
) -> ShownCheckpointView:
    from holdfast.api.views.checkpoints import shown_checkpoint_view

    around = opened.conversation.around(found)
    return shown_checkpoint_view(
        found,
        is_head=_is_head(opened, found),
        is_approved=_is_approved(opened, found),
        message=around.message,
        annotations=around.annotations,
        skipped=opened.contents.skipped(found),
        components=opened.contents.component_states(found),
        entries=entries,
    )


def _show(
    invocation: Invocation,
    opened: Workspace,
    found: Checkpoint,
    entries: Iterator[tuple[bytes, Entry]] | None,
) -> None:
    from holdfast.interfaces.cli.checkpoint_sheet import (
        show_annotations,
        show_entries,
        show_sheet,
    )

    around = opened.conversation.around(found)
    session = opened.sessions.get(found.session_id)
    show_sheet(
        invocation.terminal,
        found,
        opened.contents.skipped(found),
        is_head=_is_head(opened, found),
        is_approved=_is_approved(opened, found),
        now=invocation.now,
        message=around.message,
        session_title=None if session is None else session.title,
        components=opened.contents.component_lines(found),
    )
    show_annotations(invocation.terminal, around.annotations, invocation.now)
    if entries is not None:
        show_entries(invocation.terminal, entries)

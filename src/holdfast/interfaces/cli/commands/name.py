"""`holdfast name REF NAME`: name or tag an existing checkpoint."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UnknownReference, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import identifier
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import visible

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint

_SHORTEST_ID = 4


def configure(parser: Parser) -> None:
    parser.usage = "holdfast name REF [NAME] [--tag TAG ...] [--untag TAG ...] [--remove]"
    parser.description = """\
Name or tag an existing checkpoint. REF is an id or its first characters, a name, HEAD, HEAD~n,
initial, approved or a time. A name is unique in its session, and named checkpoints never expire.
--remove removes the name. --tag and --untag can be repeated."""
    parser.epilog = """\
examples:
  $ holdfast name HEAD works-again
  $ holdfast name 3f2a9c81d4 before-refactor --tag nightly
  $ holdfast name before-refactor --untag nightly"""
    parser.add_argument(
        "words", nargs="*", metavar="REF NAME", help="the checkpoint and its new name"
    )
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="add this tag")
    parser.add_argument(
        "--untag", action="append", default=[], metavar="TAG", help="remove this tag"
    )
    parser.add_argument("--remove", action="store_true", help="remove the name")


def run(invocation: Invocation) -> int:
    from holdfast.api.views.checkpoints import tagged_checkpoint_view

    words, options = invocation.at_most(2, "a checkpoint", "a name"), invocation.options
    if not words or not (len(words) == 2 or options.tag or options.untag or options.remove):
        raise _incomplete(invocation, words)
    if len(words) == 2 and options.remove:
        raise UsageError("NAME cannot be used with --remove", hint="choose one")
    with invocation.open() as opened:
        found = invocation.resolve(opened, words[0])
        if len(words) == 2:
            _require_order(invocation, opened, words, found)
        named = opened.history.name(
            found,
            name=words[1] if len(words) == 2 else None,
            unname=options.remove,
            tags=options.tag,
            untags=options.untag,
        )
    if invocation.json:
        invocation.emit(tagged_checkpoint_view(named))
        return 0
    terminal = invocation.terminal
    tags = ", ".join(visible(tag) for tag in named.intent.tags)
    done = "Named" if len(words) == 2 else "Tagged"
    done = "Removed the name of" if options.remove else done
    tagged = f" (tags: {tags or 'none'})" if tags or options.untag else ""
    terminal.sentence(f"{terminal.tick} {done} {identifier(terminal, named)}{tagged}")
    return 0


def _incomplete(invocation: Invocation, words: list[str]) -> UsageError:
    """A single word may be the checkpoint or the name."""
    if words:
        with invocation.open() as opened:
            try:
                invocation.resolve(opened, words[0])
            except (UnknownReference, NotFound):
                return UsageError(
                    f"missing REF: which checkpoint should be named {words[0]!r}?",
                    hint=f"usage: holdfast name HEAD {quote(words[0])}",
                )
    return UsageError("missing NAME", hint="usage: holdfast name HEAD works-again")


def _require_order(
    invocation: Invocation, opened: Workspace, words: list[str], found: Checkpoint
) -> None:
    """Refuse a name before an id: both are checkpoints, and renaming the first is probably not
    intended."""
    if len(words[1]) < _SHORTEST_ID or found.name != words[0]:
        return
    try:
        other = invocation.resolve(opened, words[1])
    except (UnknownReference, NotFound):
        return
    if other.id.startswith(words[1]):
        raise UsageError(
            f"{words[1]!r} is a checkpoint, not a name",
            hint=f"put the checkpoint first: holdfast name {words[1]} {quote(words[0])}",
        )

"""`holdfast name REF NAME`: name or tag a checkpoint that is already there."""

from __future__ import annotations

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation


def configure(parser: Parser) -> None:
    parser.usage = "holdfast name REF [NAME] [--tag TAG ...] [--untag TAG ...] [--remove]"
    parser.description = """\
Give an existing checkpoint a name, another name, or tags. REF is an id, the beginning of one, a
name, HEAD, HEAD~n, initial, approved or a time. A name is unique in its session, and a checkpoint
with a name never expires. --remove takes the name away; --tag and --untag may be given several
times."""
    parser.epilog = """\
examples:
  $ holdfast name HEAD works-again
  $ holdfast name 3f2a9c81d4 before-refactor --tag nightly
  $ holdfast name before-refactor --untag nightly"""
    parser.add_argument("words", nargs="*", metavar="REF NAME", help="the checkpoint, and its name")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="add this tag")
    parser.add_argument(
        "--untag", action="append", default=[], metavar="TAG", help="remove this tag"
    )
    parser.add_argument("--remove", action="store_true", help="take its name away")


def run(invocation: Invocation) -> int:
    from holdfast.engine.naming import name_checkpoint
    from holdfast.interfaces.cli import json_output
    from holdfast.interfaces.cli.checkpoint_view import identifier
    from holdfast.interfaces.cli.terminal import GREEN, visible

    words, options = invocation.at_most(2, "a checkpoint", "a name"), invocation.options
    if not words or not (len(words) == 2 or options.tag or options.untag or options.remove):
        raise UsageError("NAME is missing", hint="for example: holdfast name HEAD works-again")
    if len(words) == 2 and options.remove:
        raise UsageError("NAME and --remove do not go together", hint="choose one")
    with invocation.open() as opened:
        found = invocation.resolve(opened, words[0])
        with opened.engine.exclusive():
            named = name_checkpoint(
                opened.engine.vault,
                found,
                name=words[1] if len(words) == 2 else None,
                unname=options.remove,
                tags=options.tag,
                untags=options.untag,
            )
    if invocation.json:
        invocation.emit(json_output.checkpoint(named) | {"tags": list(named.intent.tags)})
        return 0
    terminal = invocation.terminal
    tags = ", ".join(visible(tag) for tag in named.intent.tags)
    told = f" with the tags {tags}" if tags else ""
    called = "is called" if named.name else "has no name"
    name = f" {visible(named.name)}" if named.name else ""
    mark = terminal.paint("✓", GREEN)
    terminal.line(f"{mark} {identifier(terminal, found)} {called}{name}{told}")
    return 0

"""Reading a command line: the verb first, then its own parser.

The options of every command may stand before the verb or after it. Everything behind `--` is taken
literally. A mistake raises `UsageError`, so that it is reported like any other error.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.verbs import OTHER_WORDS, VERBS

_PAGE_WIDTH = 90
_WITH_VALUE = ("-C", "--session")


class Page(argparse.HelpFormatter):
    """A help page: paragraphs are wrapped to the terminal, examples are left as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from textwrap import fill

        return "\n\n".join(
            part if "\n  " in part else fill(part, width) for part in text.split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of printing."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see: {self.prog} --help")


def split_verb(tokens: Sequence[str]) -> tuple[str | None, list[str]]:
    """The verb, and the tokens without it."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token == "--":
            break
        if token in _WITH_VALUE:
            position += 2
        elif token.startswith("-") and token != "-":
            position += 1
        else:
            return token, [*tokens[:position], *tokens[position + 1 :]]
    return None, list(tokens)


def has_flag(tokens: Sequence[str], *names: str) -> bool:
    """Whether one of these flags is given; for what must be known before parsing."""
    for token in tokens:
        if token == "--":
            return False
        if token in names:
            return True
    return False


def require_verb(verb: str) -> str:
    """The verb, or an error that guesses what was meant."""
    if verb in VERBS:
        return verb
    from difflib import get_close_matches

    other = OTHER_WORDS.get(verb)
    meant = [
        f"holdfast {name}" for name in ([other] if other else get_close_matches(verb, VERBS, 2))
    ]
    hint = f"did you mean: {' or '.join(meant)}" if meant else "see all commands: holdfast --help"
    raise UsageError(f"there is no command {verb!r}", hint=hint)


def parse(
    verb: str, configure: Callable[[Parser], None], tokens: Sequence[str], *, width: int
) -> tuple[argparse.Namespace, list[str]]:
    """The options of one verb, and the words that stand behind `--`."""

    def page(prog: str) -> Page:
        # Left to find the width itself, argparse loads shutil, and that the compression modules.
        return Page(prog, width=min(width, _PAGE_WIDTH) - 2)

    parser = Parser(
        prog=f"holdfast {verb}",
        formatter_class=page,
        allow_abbrev=False,
        add_help=False,
    )
    configure(parser)
    _add_global_options(parser)
    end = tokens.index("--") if "--" in tokens else len(tokens)
    options = parser.parse_intermixed_args(list(tokens[:end]))
    literal = list(tokens[end + 1 :])
    if not hasattr(options, "words"):
        if literal:
            parser.error(f"unexpected argument {literal[0]!r}")
        options.words = []
    return options, literal


def add_restore_options(parser: Parser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be done, and do nothing"
    )
    parser.add_argument(
        "-y", "--yes", action="store_true", help="do not ask, however many files are affected"
    )


def _add_global_options(parser: Parser) -> None:
    group = parser.add_argument_group("options of every command")
    group.add_argument(
        "-C",
        dest="directory",
        metavar="DIR",
        help="work on DIR instead of the current directory",
    )
    group.add_argument(
        "--session",
        metavar="ID",
        help="use this session instead of the workspace's current one",
    )
    group.add_argument("--json", action="store_true", help="print one JSON value")
    group.add_argument(
        "--force",
        action="store_true",
        help="accept a directory that does not look like a project",
    )
    group.add_argument("-h", "--help", action="help", help="show this page")

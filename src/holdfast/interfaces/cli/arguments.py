"""Parses a command line: the verb first, then its own parser.

Global options may come before or after the verb. Words after `--` are taken literally. A mistake
raises `UsageError`, which names the mistake and suggests a fix.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.verbs import ALIASES, TOPICS, VERBS, verbs_known_as

_PAGE_WIDTH = 90
_USAGE_UNITS = r"\[(?:[^][|]|(?<=\S)\|(?=\S))*\]|\S+"
"""Keeps an option on the same line as its value."""
_LONGEST_CONTEXT = 10_000
WITH_VALUE = {"-C": "DIR", "--session": "ID", "--color": "WHEN"}
COLOURS = ("auto", "always", "never")
_GLOBAL_FLAGS = ("--json", "-q", "--quiet", "--force", "-h", "--help", "--version")
_NOT_ALLOWED_WITH = "not allowed with argument "
_ALL_COMMANDS = "all commands: holdfast help all"
_NEVER_GUESSED = ("-y", "--yes", "--force")
"""Never suggested for a typo, because they skip a question or a refusal."""


class Page(argparse.HelpFormatter):
    """A help page. Usage and paragraphs are wrapped to the terminal; examples are not."""

    def _format_usage(self, usage: str | None, *others: Any) -> str:
        forms = re.split(r"\n +(?=holdfast )", super()._format_usage(usage, *others))
        lines: list[str] = []
        for form in forms:
            lines.append(" " * len("usage:") if lines else "")
            for unit in re.findall(_USAGE_UNITS, form):
                if len(lines[-1]) + 1 + len(unit) > self._width:
                    lines.append(" " * (len("usage:") + 4))
                lines[-1] += f" {unit}" if lines[-1] else unit
        return "\n".join(lines) + "\n\n"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from textwrap import fill

        return "\n\n".join(
            part if "\n  " in part else fill(part, width) for part in text.split("\n\n")
        )


class HelpWanted(Exception):
    """`--help` was given; carries the page to show."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of printing, and names the arguments it does not
    know."""

    one_step = False
    """The command goes one step at a time; a number of steps is a likely mistake."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see: {self.prog} --help")

    def print_help(self, file: object = None) -> NoReturn:
        raise HelpWanted(self.format_help())

    def read(self, tokens: list[str]) -> argparse.Namespace:
        try:
            options, extras = self.parse_known_intermixed_args(tokens)
        except argparse.ArgumentError as error:
            raise _bad_option(self, error) from None
        if extras:
            raise _unexpected(self, extras)
        return options


def split_verb(tokens: Sequence[str]) -> tuple[str | None, list[str]]:
    """The verb, and the tokens without it."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token == "--":
            break
        if token in WITH_VALUE:
            position += 2
        elif token.startswith("-") and token != "-":
            position += 1
        else:
            return token, [*tokens[:position], *tokens[position + 1 :]]
    return None, list(tokens)


def has_flag(tokens: Sequence[str], *names: str) -> bool:
    """Whether one of these flags is given; for checks before parsing."""
    for token in tokens:
        if token == "--":
            return False
        if token in names:
            return True
    return False


def colour_choice(tokens: Sequence[str]) -> str:
    """The value of `--color`; the default if it is missing or invalid."""
    for position, token in enumerate(tokens):
        if token == "--":
            break
        given = token.removeprefix("--color=") if token.startswith("--color=") else None
        if token == "--color":
            given = tokens[position + 1] if position + 1 < len(tokens) else None
        if given in COLOURS:
            return given
    return "auto"


def require_verb(verb: str, tokens: Sequence[str]) -> str:
    """The canonical name of the verb, or an error that suggests one; `tokens` is the whole command
    line."""
    if (known := ALIASES.get(verb, verb)) in VERBS:
        return known

    raise _unknown_verb(verb, tokens[: tokens.index(verb)])


def make_parser(verb: str, configure: Callable[[Parser], None], *, width: int) -> Parser:
    """The parser of one verb, with the global options."""

    def page(prog: str) -> Page:
        # argparse would load shutil, and with it the compression modules, to find the width itself.
        return Page(prog, width=min(width, _PAGE_WIDTH) - 2)

    parser = Parser(
        prog=f"holdfast {verb}",
        formatter_class=page,
        allow_abbrev=False,
        add_help=False,
        exit_on_error=False,
    )
    configure(parser)
    _add_global_options(parser)
    return parser


def parse(
    verb: str, configure: Callable[[Parser], None], tokens: Sequence[str], *, width: int
) -> tuple[argparse.Namespace, list[str]]:
    """The options of one verb, and the words after `--`."""
    parser = make_parser(verb, configure, width=width)
    end = tokens.index("--") if "--" in tokens else len(tokens)
    options = parser.read(list(tokens[:end]))
    _require_text(options)
    literal = list(tokens[end + 1 :])
    options.dashes = end < len(tokens)
    if not hasattr(options, "words"):
        if literal:
            parser.error(f"unexpected argument {literal[0]!r}: {verb} takes no arguments")
        options.words = []
    return options, literal


def _require_text(options: argparse.Namespace) -> None:
    """Names and similar options must be text. A directory may have any bytes in its name."""
    for name, value in vars(options).items():
        if name in ("directory", "words"):
            continue
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not text.isascii() and not _is_utf8(text):
                raise UsageError(
                    f"--{name} is not UTF-8 text: {text!r}",
                    hint="use a UTF-8 locale, or remove the invalid bytes",
                )


def _is_utf8(text: str) -> bool:
    """Undecodable bytes appear as lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def number_option(option: str, text: str, most: int, *, of: str = "", hint: str) -> float:
    """The value of an option that takes a number `of` something, starting at 0."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= most:
        raise UsageError(
            f"{option} must be a number {of}from 0 to {most:,}, not {text!r}", hint=hint
        )
    return found


def limit_option(text: str | None, default: int, *, least: int) -> int:
    """The value of `-n`; if 0 is allowed, it means all."""
    if text is None:
        return default
    # More than any workspace has, and within the range of the database.
    found = min(int(text.lstrip("0")[:20] or 0), sys.maxsize) if _is_number(text) else -1
    if found < least:
        which, hint = (f" from {least} on", None) if least else ("", "0 lists all")
        raise UsageError(f"-n must be a number{which}, not {text!r}", hint=hint)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def port_option(text: str) -> int:
    """The value of `--port`."""
    if not (_is_number(text) and int(text) < 65536):
        raise UsageError(f"--port must be a number from 0 to 65535, not {text!r}")
    return int(text)


def context_lines(text: str) -> int:
    """The value of `-U`."""
    if not (_is_number(text) and int(text) <= _LONGEST_CONTEXT):
        raise UsageError(f"-U must be a number up to {_LONGEST_CONTEXT}, not {text!r}")
    return int(text)


def add_restore_options(parser: Parser) -> None:
    parser.set_defaults(restores=True)
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would happen, and change nothing"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--stop-agents",
        action="store_true",
        help="first ask agents with an open session here to end (SIGTERM), and wait for them",
    )


def _add_global_options(parser: Parser) -> None:
    group = parser.add_argument_group("options for every command")
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
        "--color", metavar="WHEN", choices=COLOURS, help="colours: auto, always or never"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="print errors and warnings only")
    group.add_argument(
        "--force",
        action="store_true",
        help="accept a directory that does not look like a project",
    )
    group.add_argument("-h", "--help", action="help", help="show this help")


def _unknown_verb(verb: str, before: Sequence[str]) -> UsageError:
    """`before` are the options in front of it; one of them may have swallowed the verb."""
    if (wrong := _unknown_global(before)) is not None:
        return wrong
    from difflib import get_close_matches

    wants_help = "help" in before
    names = ["--version"] if verb == "version" else verbs_known_as(verb)
    names = names or get_close_matches(verb, [*VERBS, *(TOPICS if wants_help else ())], 2)
    meant = [f"holdfast {'help ' if wants_help else ''}{name}" for name in names]
    hint = f"did you mean: {' or '.join(meant)}" if meant else _ALL_COMMANDS
    kind = "command or topic" if wants_help else "command"
    return UsageError(f"unknown {kind}: {verb!r}", hint=hint)


def no_verb(tokens: Sequence[str]) -> UsageError:
    """Only options were given, and none of them prints an answer."""
    if (wrong := _unknown_global(tokens)) is not None:
        return wrong
    if tokens[-1] == "-C":
        hint = "DIR is a directory: holdfast -C DIR status"
        return UsageError("-C needs a value: DIR", hint=hint)
    if tokens[-1] == "--session":
        return UsageError("--session needs a value: ID", hint=_ALL_COMMANDS)
    return UsageError("missing command", hint=_ALL_COMMANDS)


def _unknown_global(tokens: Sequence[str]) -> UsageError | None:
    """The error for the first option that is not global."""
    known = (*WITH_VALUE, *_GLOBAL_FLAGS)
    for token in tokens:
        is_known = token.partition("=")[0] in known or token.startswith("-C")
        if token.startswith("-") and not is_known:
            return _unknown_option("holdfast", token, known, _ALL_COMMANDS)
    return None


def _unexpected(parser: Parser, extras: Sequence[str]) -> UsageError:
    """The error for words that a command does not take. An unknown option among them comes
    first."""
    see, verb = f"see: {parser.prog} --help", parser.prog.removeprefix("holdfast ")
    if parser.one_step and any(text.rpartition("=")[2].lstrip("-").isdigit() for text in extras):
        hint = f"run it again for the next step: {parser.prog}. To pick a moment: holdfast restore"
        return UsageError(f"{verb} takes no number: it goes one step at a time", hint=hint)
    option = next((token for token in extras if token.startswith("-") and token != "-"), None)
    if option is None:
        return UsageError(f"unexpected argument {extras[0]!r}: {verb} takes no arguments", hint=see)
    if " " in option:
        hint = f"put arguments that start with a dash after --: {parser.prog} -- '-…'"
        return UsageError(f"unknown option for {verb}: {option!r}", hint=hint)
    names = [name for action in parser._actions for name in action.option_strings]
    return _unknown_option(verb, option, names, see)


def _bad_option(parser: Parser, error: argparse.ArgumentError) -> UsageError:
    """The error for a known option that was used wrongly."""
    see = f"see: {parser.prog} --help"
    name = error.argument_name or "an argument"
    short = name.rpartition("/")[2]
    if error.message.startswith(_NOT_ALLOWED_WITH):
        first = error.message.removeprefix(_NOT_ALLOWED_WITH).rpartition("/")[2]
        return UsageError(f"{short} cannot be used with {first}", hint=f"choose one; {see}")
    if "expected one argument" in error.message:
        action = next(a for a in parser._actions if name == "/".join(a.option_strings))
        value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        return UsageError(f"{short} needs a value: {value}", hint=see)
    if "ignored explicit argument" in error.message:
        return UsageError(f"{short} takes no value", hint=see)
    return UsageError(f"{name}: {error.message}", hint=see)


def _unknown_option(who: str, option: str, known: Iterable[str], see: str) -> UsageError:
    from difflib import get_close_matches

    typed = option.partition("=")[0]
    known = sorted(set(known) - set(_NEVER_GUESSED))
    near = [name for name in known if len(typed) > 2 and name.startswith(typed)]
    if not near:  # compare without dashes, which all options share
        close = get_close_matches(typed.lstrip("-"), [name.lstrip("-") for name in known], 1)
        near = [name for name in known if name.lstrip("-") in close]
    hint = f"did you mean {near[0]}? {see}" if near else see
    return UsageError(f"unknown option for {who}: {typed}", hint=hint)

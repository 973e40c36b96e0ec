"""A command line that was not understood: what it was is named, what was meant is guessed."""

from __future__ import annotations

import re
from argparse import ArgumentError
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.verbs import GLOBAL_OPTIONS, VERBS, verbs_known_as

if TYPE_CHECKING:
    from holdfast.interfaces.cli.arguments import Parser

GLOBAL_NAMES = tuple(re.findall(r"(?<=[ ,] )--?\w+", GLOBAL_OPTIONS))
_NOT_ALLOWED_WITH = re.compile(r"not allowed with argument (\S+)")
_ALL_COMMANDS = "see all commands: holdfast --help"
_NEVER_GUESSED = ("-y", "--yes", "--force")
"""Typed in place of something else, they would skip a question or a refusal."""
_FIRST = "DIR is a directory: holdfast -C DIR status"


def unknown_verb(verb: str, before: Sequence[str]) -> UsageError:
    """`before` are the options in front of it, one of which may have swallowed the verb."""
    strangers = [token for token in before if token.startswith("-") and not _is_global(token)]
    if strangers:
        return _unknown_option("holdfast", strangers[0], GLOBAL_NAMES, _ALL_COMMANDS)
    names = ["--version"] if verb == "version" else verbs_known_as(verb)
    names = names or get_close_matches(verb, VERBS, 2)
    meant = [f"holdfast {name}" for name in names]
    hint = f"did you mean: {' or '.join(meant)}" if meant else _ALL_COMMANDS
    return UsageError(f"there is no command {verb!r}", hint=hint)


def no_verb(tokens: Sequence[str]) -> UsageError:
    """Only options, and none of them an answer in itself."""
    strangers = [token for token in tokens if token.startswith("-") and not _is_global(token)]
    if strangers:
        return _unknown_option("holdfast", strangers[0], GLOBAL_NAMES, _ALL_COMMANDS)
    if tokens[-1] == "-C":
        return UsageError("-C needs a value: DIR", hint=_FIRST)
    if tokens[-1] == "--session":
        return UsageError("--session needs a value: ID", hint=_ALL_COMMANDS)
    return UsageError("the command is missing", hint=_ALL_COMMANDS)


def unexpected(parser: Parser, extras: Sequence[str]) -> UsageError:
    """Words that a command does not take; an option among them is what went wrong first."""
    see = f"see: {parser.prog} --help"
    if parser.one_step and any(map(_is_number, extras)):
        return _one_step(parser.prog)
    option = next((token for token in extras if token.startswith("-") and token != "-"), None)
    verb = parser.prog.removeprefix("holdfast ")
    if option is None:
        return UsageError(f"unexpected argument {extras[0]!r}: {verb} takes none", hint=see)
    if " " in option:
        hint = f"what begins with a dash and is no option stands behind --: {parser.prog} -- '-…'"
        return UsageError(f"{verb} has no option {option!r}", hint=hint)
    names = [name for action in parser._actions for name in action.option_strings]
    return _unknown_option(verb, option, names, see)


def bad_option(parser: Parser, error: ArgumentError) -> UsageError:
    """An option that is known but was given in a wrong way."""
    see = f"see: {parser.prog} --help"
    name = error.argument_name or "an argument"
    short = name.rpartition("/")[2]
    if other := _NOT_ALLOWED_WITH.search(error.message):
        first = other[1].rpartition("/")[2]
        return UsageError(f"{short} and {first} do not go together", hint=f"choose one; {see}")
    if "expected one argument" in error.message:
        action = next(a for a in parser._actions if name == "/".join(a.option_strings))
        value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        return UsageError(f"{short} needs a value: {value}", hint=see)
    if "ignored explicit argument" in error.message:
        return UsageError(f"{short} takes no value", hint=see)
    return UsageError(f"{name}: {error.message}", hint=see)


def _is_number(text: str) -> bool:
    return text.rpartition("=")[2].lstrip("-").isdigit()


def _one_step(command: str) -> UsageError:
    return UsageError(
        f"{command.removeprefix('holdfast ')} goes one step at a time",
        hint=f"run it again for the next step: {command}. To pick a moment: holdfast restore",
    )


def _is_global(token: str) -> bool:
    return token.partition("=")[0] in GLOBAL_NAMES or token.startswith("-C")


def _unknown_option(who: str, option: str, known: Iterable[str], see: str) -> UsageError:
    typed = option.partition("=")[0]
    known = sorted(set(known) - set(_NEVER_GUESSED))
    near = [name for name in known if len(typed) > 2 and name.startswith(typed)]
    near = near or get_close_matches(typed, known, 1)
    hint = f"did you mean {near[0]}? {see}" if near else see
    return UsageError(f"{who} has no option {typed}", hint=hint)

"""The help of each command in parts: the source of the manual pages and the reference."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

from holdfast.interfaces.cli.arguments import make_parser
from holdfast.interfaces.cli.verbs import VERBS
from holdfast.values.classes import NamedTuple

_WIDTH = 100
_MARGIN = "\n" + " " * len("usage: ")


class Option(NamedTuple):
    """An option or positional argument as users write it, and its meaning."""

    shown: str
    meaning: str


class CommandPage(NamedTuple):
    """The help of one command in parts, without global options."""

    name: str
    summary: str
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[Option, ...]
    shared_options: tuple[Option, ...]
    epilog: str


def command_pages() -> Iterator[CommandPage]:
    """One page per command, in the order of `holdfast help all`."""
    for name, verb in VERBS.items():
        module = import_module(f"holdfast.interfaces.cli.commands.{name.replace('-', '_')}")
        parser = make_parser(name, module.configure, width=_WIDTH)
        shared = parser._action_groups[-1]._group_actions
        yield CommandPage(
            name,
            verb.summary,
            (parser.usage or "").replace("%%", "%").replace(_MARGIN, "\n"),
            tuple((parser.description or "").strip().split("\n\n")),
            tuple(_options(action for action in parser._actions if action not in shared)),
            tuple(_options(shared)),
            (parser.epilog or "").strip(),
        )


def is_laid_out(paragraph: str) -> bool:
    """Whether the line breaks of a paragraph must be kept."""
    return "\n  " in paragraph


def _options(actions: Iterator[argparse.Action] | list[argparse.Action]) -> Iterator[Option]:
    for action in actions:
        if action.help == argparse.SUPPRESS:
            continue
        value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        shown = ", ".join(action.option_strings)
        if action.nargs != 0:
            shown = f"{shown} {value}".strip()
        yield Option(shown, (action.help or "").replace("%%", "%"))

"""The manual pages, generated from the parsers when the package is built.

    holdfast.1            every command, the global options, and the help topics
    holdfast-COMMAND.1    one command, as `holdfast help COMMAND` shows it

The pages are roff with the `man` macros. They use the text of the help pages, so that the two
cannot differ, and need only the standard library. `command_pages` has that text in parts; the
reference in the documentation is made from it too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from holdfast import __version__
from holdfast.interfaces.cli.arguments import make_parser
from holdfast.interfaces.cli.verbs import GLOBAL_OPTIONS, GROUPS, TOPICS, VERBS, command_module
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
        parser = make_parser(name, command_module(name).configure, width=_WIDTH)
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


def _options(actions: Iterable[argparse.Action]) -> Iterator[Option]:
    for action in actions:
        if action.help == argparse.SUPPRESS:
            continue
        value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
        shown = ", ".join(action.option_strings)
        if action.nargs != 0:
            shown = f"{shown} {value}".strip()
        yield Option(shown, (action.help or "").replace("%%", "%"))


def manual_pages() -> dict[str, str]:
    """The text of each page by its file name."""
    pages = {"holdfast.1": "\n".join(_main_page()) + "\n"}
    for page in command_pages():
        pages[f"holdfast-{page.name}.1"] = "\n".join(_command_page(page)) + "\n"
    return pages


def _main_page() -> Iterator[str]:
    yield from _head("holdfast", "undo for AI coding agents")
    yield from (".SH SYNOPSIS", ".B holdfast", _text("[-C DIR] [--session ID] COMMAND ..."))
    yield ".SH DESCRIPTION"
    yield "Holdfast snapshots a project before an agent changes it."
    yield "One command puts every file back, and that can be undone too."
    yield ".SH COMMANDS"
    for title, group in GROUPS.items():
        yield f".SS {_text(title)}"
        for name, verb in group.items():
            yield from (".TP", f".BR holdfast-{_text(name)} (1)", _text(verb.summary))
    yield from (".SH OPTIONS", *_as_it_is(GLOBAL_OPTIONS))
    for topic, page in TOPICS.items():
        yield from (f".SH {_text(topic.upper())}", *_as_it_is(page))


def _command_page(page: CommandPage) -> Iterator[str]:
    yield from _head(f"holdfast-{page.name}", page.summary)
    yield from (".SH SYNOPSIS", *_as_it_is(page.usage))
    yield ".SH DESCRIPTION"
    for number, paragraph in enumerate(page.paragraphs):
        if number:
            yield ".PP"
        lines = paragraph.splitlines()
        yield from _as_it_is(paragraph) if is_laid_out(paragraph) else map(_text, lines)
    yield ".SH OPTIONS"
    for option in (*page.options, *page.shared_options):
        yield from (".TP", f".B {_text(option.shown)}", _text(option.meaning))
    if page.epilog:
        yield from (".SH NOTES AND EXAMPLES", *_as_it_is(page.epilog))
    yield from (".SH SEE ALSO", ".BR holdfast (1)")


def _head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH "{_text(name.upper())}" "1" "" "Holdfast {__version__}" "Holdfast Manual"'
    yield from (".SH NAME", f"{_text(name)} \\- {_text(summary)}")


def _as_it_is(text: str) -> Iterator[str]:
    yield ".nf"
    yield from map(_text, text.strip("\n").splitlines())
    yield ".fi"


def _text(line: str) -> str:
    """A line that roff prints as it is: no escapes, no requests, plain dashes and quotes."""
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    line = line.replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    return f"\\&{line}" if line.startswith(".") else line

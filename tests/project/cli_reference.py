"""docs/reference/cli.md, made from the parsers of the commands, as the manual pages are.

python -m tests.project.cli_reference --write     write the page again
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator

from holdfast.interfaces.cli.manual import (
    CommandPage,
    Option,
    command_pages,
    is_laid_out,
)
from holdfast.interfaces.cli.verbs import ALIASES, GROUPS, VERBS
from tests.project.repository import ROOT

PAGE = ROOT / "docs" / "reference" / "cli.md"

_WIDTH = 120
_INTRODUCTION = """\
<!-- Made from the parsers: python -m tests.project.cli_reference --write -->

# Commands

    holdfast [-C DIR] [--session ID] [--json] COMMAND ...

This page is the text of `holdfast help COMMAND`. With pip or pipx it is installed as manual pages
too, such as `man holdfast-undo`; uv installs no manual pages. See also
[how to name a checkpoint or a file](references.md),
[exit statuses](exit-statuses.md), [JSON output](json.md) and
[environment variables](environment.md).
"""
_ARGUMENTS = r"(?: (?:[A-Z]{2,}\b|--(?![\w])|--[a-z][a-z-]*))*"
_VALUE = r"(?: (?:[A-Z]+\b(?!\.\w)|-(?!\S)))?"
_MARKED_UP = re.compile(
    rf"`[^`]+`|\bholdfast (?:{'|'.join(VERBS)})\b(?! \w+ agents){_ARGUMENTS}"
    r"|\bgit reset --soft HEAD~1|--git (?:exact|branch|revert)\b"
    rf"|(?<![\w-])--[a-z][a-z-]*{_VALUE}"
    r"|\b[a-z]+_[a-z_]+\b|\b[A-Z]+_[A-Z_]+\b|(?<!\w)@\{[^}]*\}|'[^' ]*\*[^' ]*'"
)


def reference() -> str:
    """The whole page."""
    pages = {page.name: page for page in command_pages()}
    parts = [_INTRODUCTION]
    parts.append("| group | commands |\n|---|---|")
    for title, group in GROUPS.items():
        names = ", ".join(f"[`{name}`](#{name})" for name in group)
        parts.append(f"| {title} | {names} |")
    aliases = ", ".join(f"`{alias}` for `{name}`" for alias, name in ALIASES.items())
    parts.append(f"\nAliases: {aliases}.\n")
    shared = _table(pages["undo"].shared_options)
    parts.append(f"## Options for every command\n\nBefore or after the command.\n\n{shared}\n")
    parts += ["\n".join(_section(page)) for page in pages.values()]
    return "\n".join(parts)


def _section(page: CommandPage) -> Iterator[str]:
    yield f"## {page.name}\n"
    yield textwrap.indent(textwrap.dedent(page.usage), "    ") + "\n"
    for paragraph in page.paragraphs:
        yield (_laid_out(paragraph) if is_laid_out(paragraph) else _prose(paragraph)) + "\n"
    if page.options:
        yield _table(page.options) + "\n"
    if page.epilog:
        _, _, examples = page.epilog.partition(":\n")
        yield f"```console\n{textwrap.dedent(examples)}\n```\n"


def _table(options: tuple[Option, ...]) -> str:
    rows = [
        f"| `{shown.replace('|', chr(92) + '|')}` | {_marked_up(text)} |" for shown, text in options
    ]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _laid_out(paragraph: str) -> str:
    """A line of introduction, then lines that are already in columns."""
    first, _, rest = paragraph.partition("\n  ")
    block = textwrap.dedent("  " + rest)
    return f"{_prose(first)}\n\n```text\n{block}\n```"


def _prose(paragraph: str) -> str:
    text = _marked_up(" ".join(paragraph.split()))
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _marked_up(text: str) -> str:
    """Plain text as Markdown: commands are links, options and names are code."""
    parts, end = [], 0
    for found in _MARKED_UP.finditer(text):
        parts += [_escaped(text[end : found.start()]), _code(found[0])]
        end = found.end()
    return "".join([*parts, _escaped(text[end:])])


def _code(words: str) -> str:
    program, _, rest = words.strip("`").partition(" ")
    verb = rest.partition(" ")[0] if program == "holdfast" else ""
    code = words if words.startswith("`") else f"`{words}`"
    return f"[{code}](#{verb})" if verb in VERBS else code


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<\[\]|])", r"\\\1", text)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(reference(), "utf-8")
    else:
        sys.stdout.write(reference())

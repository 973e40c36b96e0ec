"""A shell command line as data: the simple commands in it, in any context.

Quotes are removed, substitutions become separate commands, and redirections that write are listed.
`read_script` is a simple tokenizer for texts that need no bash grammar, would take its parser too
long, or cannot be parsed. It treats every bracket and backtick as a command boundary, so it finds
too many commands rather than too few.

Guarantees: it handles any text in linear time, up to a maximum length. Not known: the values of
variables, globs and aliases at run time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOST_READ = 65_536
MOST_COMMANDS = 2_000
_MOST_WORD = 4_096
_DEEPEST = 4
SUBSTITUTION = "$(…)"
"""The placeholder for a value that only the shell knows."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """Output to a file; `appends` keeps the old content."""

    target: str
    appends: bool = False


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One simple command. `fed` is its input from a here-document or here-string. `scope` lists the
    subshells around it, outermost first, because a `cd` ends with its subshell."""

    words: tuple[str, ...]
    redirects: tuple[Redirect, ...] = ()
    fed: str = ""
    scope: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ShellScript:
    """Commands in text order. Not `whole` if the text was too long to read completely."""

    commands: tuple[ShellCommand, ...]
    whole: bool = True


# The longer operator comes first.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)
      | (?P<continued>\\\n)
      | (?P<newline>\n)
      | (?P<comment>(?<![^\s;&|()])\#[^\n]*)
      | (?P<herestring><<<)
      | (?P<heredoc><<-?)
      | (?P<duplicate>\d*[<>]&[\d-])
      | (?P<write>(?:\d+|&)?>>|(?:\d+|&)?>\||(?:\d+|&)?>&?|<>)
      | (?P<read><(?!\())
      | (?P<substitution>\$\(\(?|[<>]\()
      | (?P<border>&&|\|\||;;&|;;|;&|[;&|()`])
      | (?P<ansi>\$'(?:[^'\\]|\\.)*(?:'|$))
      | (?P<single>'[^']*(?:'|$))
      | (?P<double>\$?"(?:[^"\\]|\\.)*(?:"|$))
      | (?P<escaped>\\.)
      | (?P<plain>[^\s;&|()<>`'"\\$]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_WORDS_OF_GRAMMAR = frozenset(
    "if then elif else fi while until do done case esac in function time ! { }".split()
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def read_script(text: str, *, depth: int = 0) -> ShellScript:
    """The commands of a text, tokenized without a grammar."""
    reader = _Reader(text[:MOST_READ], depth)
    commands = tuple(reader.commands())
    return ShellScript(commands, len(text) <= MOST_READ and len(commands) < MOST_COMMANDS)


@dataclass(slots=True)
class _Draft:
    words: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    fed: list[str] = field(default_factory=list)
    scope: tuple[int, ...] = ()

    def finished(self) -> ShellCommand | None:
        words = list(self.words)
        while words and words[0] in _WORDS_OF_GRAMMAR:
            del words[0]
        if not words and not self.redirects:
            return None
        return ShellCommand(tuple(words), tuple(self.redirects), "\n".join(self.fed), self.scope)


class _Reader:
    """Reads the tokens once. Text in double quotes is parsed again for its substitutions."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._depth = depth
        self._drafts: list[_Draft] = [_Draft()]
        self._word: list[str] | None = None
        self._expecting: str | None = None
        self._heredocs: list[tuple[str, _Draft]] = []
        self._inner: list[str] = []
        self._subshells: list[int] = []
        self._scope: tuple[int, ...] | None = ()
        self._brackets: list[bool] = []

    def commands(self) -> list[ShellCommand]:
        position = 0
        while position < len(self._text) and len(self._drafts) <= MOST_COMMANDS:
            match = _TOKEN.match(self._text, position)
            if match is None:  # every character is a token, so this is the end
                break
            position = match.end()
            kind, token = match.lastgroup or "", match.group()
            if kind in ("newline", "border", "substitution"):
                self._end_command(substitutes=kind == "substitution" or token == "`")
                self._enter_or_leave(kind, token, position)
                if kind == "newline" and self._heredocs:
                    position = self._read_heredocs(position)
            else:
                self._take(kind, token)
        self._end_command(substitutes=False)
        found = [c for draft in self._drafts if (c := draft.finished()) is not None]
        if self._depth < _DEEPEST:
            for inner in self._inner:
                found += read_script(inner, depth=self._depth + 1).commands
                if len(found) >= MOST_COMMANDS:
                    break
        return found[:MOST_COMMANDS]

    def _end_command(self, *, substitutes: bool) -> None:
        if substitutes:
            self._append(SUBSTITUTION)
        self._end_word()
        if self._drafts[-1].words or self._drafts[-1].redirects:
            self._drafts.append(_Draft())

    def _enter_or_leave(self, kind: str, token: str, position: int) -> None:
        """Track open brackets, and which of them are subshells."""
        if kind == "substitution" or token == "(":
            subshell = not self._text.startswith(")", position)  # f() begins a function
            self._brackets.append(subshell)
            if subshell:
                self._subshells.append(position)
                self._scope = None
        elif token == ")" and self._brackets and self._brackets.pop():
            self._subshells.pop()
            self._scope = None

    def _begin_command(self) -> None:
        """Set the scope here and not at each bracket: many may be open, and few begin a command."""
        if self._scope is None:
            self._scope = tuple(self._subshells)
        self._drafts[-1].scope = self._scope

    def _read_heredocs(self, position: int) -> int:
        """Read the here-documents of the previous line's commands."""
        for marker, draft in self._heredocs:
            last = re.compile(rf"^\t*{re.escape(marker)}[ \t]*$", re.MULTILINE)
            end = last.search(self._text, position)
            text = self._text[position : end.start() if end else len(self._text)]
            position = end.end() if end else len(self._text)
            draft.fed.append(text)
            if "$(" in text or "`" in text:
                self._inner.append(text)
        self._heredocs.clear()
        return position

    def _take(self, kind: str, token: str) -> None:
        if kind in ("space", "comment"):
            self._end_word()
        elif kind in ("write", "herestring", "heredoc", "read"):
            self._end_word()
            self._expecting = token.lstrip("0123456789&")
        elif kind == "duplicate":
            self._end_word()
        elif kind == "single":
            self._append(token[1:].removesuffix("'"))
        elif kind == "ansi":
            self._append(_ESCAPE.sub(r"\1", token[2:].removesuffix("'")))
        elif kind == "double":
            content = token.removeprefix("$")[1:].removesuffix('"')
            if "$(" in content or "`" in content:
                self._inner.append(content)
            self._append(_ESCAPE.sub(r"\1", content))
        elif kind == "escaped":
            self._append(token[1])
        elif kind == "plain":
            self._append(token)

    def _append(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, self._word = "".join(self._word)[:_MOST_WORD], None
        expecting, self._expecting = self._expecting, None
        if not self._drafts[-1].words and not self._drafts[-1].redirects:
            self._begin_command()
        if expecting is None:
            self._drafts[-1].words.append(word)
        elif expecting == "<<<":
            self._drafts[-1].fed.append(word)
        elif expecting in ("<<", "<<-"):
            self._heredocs.append((word, self._drafts[-1]))
        elif expecting != "<":
            self._drafts[-1].redirects.append(Redirect(word, expecting == ">>"))

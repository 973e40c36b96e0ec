"""What a shell makes of a word before a program sees it, as far as the text of the script tells:
variables that it sets, braces, and patterns.

Pure: a pattern is looked up by the caller. What is not known stays as it is written, and so does a
word that would become too many. Quotes are taken away by then, so that a quoted pattern is looked
up too: rather one file too many is named than one too few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

MOST_WORDS = 1_000
"""Of one command, after expansion."""
_MOST_VALUES = 200
_NAME = r"[A-Za-z_]\w*"
_ASSIGNMENT = re.compile(rf"({_NAME})(\+?)=(.*)", re.DOTALL)
_VARIABLE = re.compile(rf"\$(?:({_NAME})|\{{({_NAME})\}})")
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_PATTERN = re.compile(r"[*?\[]")
_SETTERS = frozenset("export declare local readonly typeset".split())
UNKNOWN = re.compile(r"[$`]")


class Variables:
    """The variables that a script has set so far, each with the words that it stands for: those of
    a loop, or one."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, ...]] = {}

    def follow(self, words: Sequence[str]) -> None:
        """Take what a command assigns: `A=x`, `export A=x`, `for a in x y`."""
        if not words:
            return
        if words[0] in ("for", "select") and words[2:3] == ("in",):
            values = [value for word in words[3:] for value in self.replaced(word)]
            self._set(words[1], tuple(values[:_MOST_VALUES]))
            return
        given = words[1:] if words[0] in _SETTERS else words
        if words[0] not in _SETTERS and not all(map(_ASSIGNMENT.match, words)):
            return  # `A=x run`: the shell itself does not have it
        for word in given:
            match = _ASSIGNMENT.match(word)
            if match is not None:
                before = self._values.get(match.group(1), ("",)) if match.group(2) else ("",)
                self._set(
                    match.group(1),
                    tuple(b + v for b in before for v in self.replaced(match.group(3))),
                )

    def _set(self, name: str, values: tuple[str, ...]) -> None:
        if len(self._values) < _MOST_VALUES or name in self._values:
            self._values[name] = values[:_MOST_VALUES]

    def replaced(self, word: str) -> list[str]:
        """The word with each known variable put in."""
        if "$" not in word or not self._values:
            return [word]
        words = [word]
        for match in _VARIABLE.finditer(word):
            values = self._values.get(match.group(1) or match.group(2))
            if values is not None:
                words = [one.replace(match.group(), value, 1) for one in words for value in values]
            if len(words) > _MOST_VALUES:
                return [word]
        return words


def expanded(
    words: Sequence[str], variables: Variables, look_up: Callable[[str], Sequence[str]]
) -> tuple[str, ...]:
    """The words of a command; `look_up` gives the names that fit a pattern."""
    found: list[str] = []
    for word in words:
        for one in variables.replaced(word):
            for part in _without_braces(one):
                found += (look_up(part) if _PATTERN.search(part) else ()) or (part,)
        if len(found) > MOST_WORDS:
            return tuple(words)
    return tuple(found)


def _without_braces(word: str) -> Iterator[str]:
    waiting = [word]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        one = waiting.pop(0)
        match = None if "${" in one else _BRACES.search(one)
        if match is None:
            yield one
        else:
            waiting[:0] = [
                one[: match.start()] + part + one[match.end() :]
                for part in match.group(1).split(",")
            ]

"""Many name patterns at once: find the highest-ranked one that matches a name.

Algorithm: patterns that match few texts are dictionary entries. `*tail` is found by the extension
of its tail, or else by its last byte. All others form one alternation, highest rank first, whose
empty groups tell which alternative matched. The answer is the highest rank found.

Guarantee: the answer does not depend on the form of a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.domain.ignore.glob import Run, Token, Tokens, expression_of, texts_of
from holdfast.values.classes import NamedTuple, dataclass

NONE = -1
_Key = TypeVar("_Key", bytes, int)


class NumberedTokens(NamedTuple):
    """A pattern with its rank: a higher number wins over a lower one."""

    number: int
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Alternation:
    """Patterns that need a regular expression, highest rank first."""

    fullmatch: Callable[[bytes], re.Match[bytes] | None]
    numbers: tuple[int, ...]

    def highest(self, text: bytes) -> int:
        match = self.fullmatch(text)
        return self.numbers[(match.lastindex or 1) - 1] if match else NONE

    def raised(self, by: int) -> Alternation:
        return Alternation(self.fullmatch, tuple(number + by for number in self.numbers))


class Tail(NamedTuple):
    """The text that a name must end with, from a pattern such as `*.tar.gz`."""

    text: bytes
    number: int

    def raised(self, by: int) -> Tail:
        return Tail(self.text, self.number + by)


Tails = tuple[Tail, ...]


@dataclass(frozen=True, slots=True)
class NameTable:
    """Name patterns, grouped by the cheapest test that excludes them."""

    whole: dict[bytes, int]  # names without a wildcard
    dotted: dict[bytes, Tails]  # `*.log`, `*.tar.gz`, under the text after their last dot
    dotless: dict[int, Tails]  # `*~`, under their last byte
    every: int  # the highest `*`
    opening_bytes: frozenset[int]  # first bytes of the names that `opened` can match
    opened: tuple[Alternation, ...]
    unopened: tuple[Alternation, ...]  # patterns such as `*.so.*`, which can match any first byte

    def highest(self, name: bytes) -> int:
        """The number of the highest pattern that matches, or NONE.

        Called for each name in a workspace, nearly always without a match, so it is optimised for
        speed.
        """
        best = self.every
        found = self.whole.get(name, NONE)
        if found > best:
            best = found
        extension = name.rpartition(b".")[2]
        if extension in self.dotted:
            best = _longest_reach(self.dotted[extension], name, best)
        last = name[-1]
        if last in self.dotless:
            best = _longest_reach(self.dotless[last], name, best)
        if name[0] in self.opening_bytes:
            for alternation in self.opened:
                if alternation.fullmatch(name):
                    best = max(best, alternation.highest(name))
        for alternation in self.unopened:
            if alternation.fullmatch(name):
                best = max(best, alternation.highest(name))
        return best

    def merged(self, other: NameTable) -> NameTable:
        """The patterns of both."""
        whole = self.whole.copy()
        for text, number in other.whole.items():
            whole[text] = max(number, whole.get(text, NONE))
        return NameTable(
            whole=whole,
            dotted=_merged_tails(self.dotted, other.dotted),
            dotless=_merged_tails(self.dotless, other.dotless),
            every=max(self.every, other.every),
            opening_bytes=self.opening_bytes | other.opening_bytes,
            opened=self.opened + other.opened,
            unopened=self.unopened + other.unopened,
        )

    def raised(self, by: int) -> NameTable:
        """The same patterns with higher numbers."""
        return NameTable(
            whole={text: number + by for text, number in self.whole.items()},
            dotted=_raised_tails(self.dotted, by),
            dotless=_raised_tails(self.dotless, by),
            every=NONE if self.every == NONE else self.every + by,
            opening_bytes=self.opening_bytes,
            opened=tuple(alternation.raised(by) for alternation in self.opened),
            unopened=tuple(alternation.raised(by) for alternation in self.unopened),
        )


EMPTY_NAMES = NameTable({}, {}, {}, NONE, frozenset(), (), ())


def make_name_table(patterns: Sequence[NumberedTokens]) -> NameTable:
    """A table of name patterns given in rising order."""
    whole: dict[bytes, int] = {}
    dotted: dict[bytes, Tails] = {}
    dotless: dict[int, Tails] = {}
    every = NONE
    opened: list[NumberedTokens] = []
    unopened: list[NumberedTokens] = []
    opening_bytes: set[int] = set()
    for pattern in patterns:
        number, tokens = pattern.number, pattern.tokens
        first, rest = tokens[0], tokens[1:]
        texts = texts_of(tokens)
        tails = texts_of(rest) if first is Run.WITHIN_NAME else None
        if texts is not None:
            whole.update((text, number) for text in texts)
        elif not rest and first is Run.WITHIN_NAME:
            every = number
        elif tails is not None:
            for text in tails:
                if b"." in text:
                    extension = text.rpartition(b".")[2]
                    dotted[extension] = (Tail(text, number), *dotted.get(extension, ()))
                else:
                    dotless[text[-1]] = (Tail(text, number), *dotless.get(text[-1], ()))
        elif isinstance(first, Run):
            unopened.append(pattern)
        else:
            opened.append(pattern)
            opening_bytes.update(first)
    return NameTable(
        whole,
        dotted,
        dotless,
        every,
        frozenset(opening_bytes),
        make_alternation(opened),
        make_alternation(unopened),
    )


def make_alternation(
    patterns: Sequence[NumberedTokens], before: Sequence[Token] = ()
) -> tuple[Alternation, ...]:
    """The patterns, given in rising order, as one expression; empty if there are none."""
    if not patterns:
        return ()
    falling = patterns[::-1]
    # The group comes last, so an alternative starts with its literal, which is tested first.
    alternatives = b"|".join(expression_of(pattern.tokens) + b"()" for pattern in falling)
    expression = re.compile(expression_of(before) + b"(?:" + alternatives + b")", re.DOTALL)
    return (Alternation(expression.fullmatch, tuple(pattern.number for pattern in falling)),)


def _longest_reach(tails: Tails, name: bytes, best: int) -> int:
    for tail in tails:
        if tail.number > best and name.endswith(tail.text):
            best = tail.number
    return best


def _merged_tails(one: dict[_Key, Tails], other: dict[_Key, Tails]) -> dict[_Key, Tails]:
    merged = one.copy()
    for key, tails in other.items():
        merged[key] = tails + merged.get(key, ())
    return merged


def _raised_tails(tails: dict[_Key, Tails], by: int) -> dict[_Key, Tails]:
    return {key: tuple(tail.raised(by) for tail in group) for key, group in tails.items()}

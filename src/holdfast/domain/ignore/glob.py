"""One pattern of an ignore file, parsed like git does and compiled into a matcher.

Algorithm: read the pattern into tokens (a set of allowed bytes, `*`, `**`, `**/`); tokens that
allow only a few texts become those texts; all others become one regular expression. In it, the text
between two stars is matched as far left as possible and never reconsidered (an atomic group).

Guarantees: matches exactly what git matches, including its quirks. Time is at most proportional to
path length times pattern length: between two stars, the leftmost match is always a best one, so
there is no backtracking.
Not supported: case-insensitive matching (`core.ignoreCase`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise, product
from math import prod

_SLASH, _BACKSLASH, _STAR, _QUESTION, _BRACKET, _COLON = b"/\\*?[:"
_WILDCARD = re.compile(rb"[*?\[\\]")
_NAME_BYTES = bytes(byte for byte in range(1, 256) if byte != _SLASH)
# `*.py[cod]` and `[Bb]in` are cheaper as a few texts in a dictionary than as an expression.
_MOST_TEXTS = 16

# The classes as git defines them in every locale: ASCII only, and spaces without the vertical tab.
_DIGITS = b"0123456789"
_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()
_PRINTABLE = bytes(range(0x20, 0x7F))
_CLASSES = {
    b"alnum": _DIGITS + _LOWER + _UPPER,
    b"alpha": _LOWER + _UPPER,
    b"blank": b" \t",
    b"cntrl": bytes(range(0x20)) + b"\x7f",
    b"digit": _DIGITS,
    b"graph": _PRINTABLE[1:],
    b"lower": _LOWER,
    b"print": _PRINTABLE,
    b"punct": bytes(set(_PRINTABLE[1:]) - set(_DIGITS + _LOWER + _UPPER)),
    b"space": b" \t\n\r",
    b"upper": _UPPER,
    b"xdigit": _DIGITS + b"abcdefABCDEF",
}


class Run(Enum):
    """A token that matches a run of bytes, possibly empty."""

    WITHIN_NAME = "*"
    ANYTHING = "**"
    DIRECTORIES = "**/"


# A `bytes` token matches one byte: any of these.
Token = bytes | Run
Tokens = tuple[Token, ...]


def literal_length(pattern: bytes) -> int:
    """How many bytes come before the first wildcard or escape."""
    found = _WILDCARD.search(pattern)
    return found.start() if found else len(pattern)


def read_name_pattern(pattern: bytes) -> Tokens | None:
    """Tokens of a pattern without a slash; None when it can match nothing."""
    return _read(pattern, deep=False)


def read_path_pattern(pattern: bytes) -> Tokens | None:
    """Tokens of a pattern that is matched against a path; None when it can match nothing."""
    tokens = _read(pattern, deep=True)
    # No path contains an empty name, so a pattern that requires one cannot match.
    if tokens is None or b"/" in (tokens[0], tokens[-1]) or (b"/", b"/") in pairwise(tokens):
        return None
    return tokens


def _read(pattern: bytes, deep: bool) -> Tokens | None:
    tokens: list[Token] = []
    # git compares the part before the first wildcard separately and starts over after it. Stars
    # there count as the start of a pattern: `a**/b` crosses directories, `a?**/b` does not.
    fresh = literal_length(pattern)
    at = 0
    while at < len(pattern):
        byte = pattern[at]
        at += 1
        if byte == _STAR:
            run, at = _read_stars(pattern, at, deep, fresh)
            tokens.append(run)
        elif byte == _QUESTION:
            tokens.append(_NAME_BYTES)
        elif byte == _BRACKET:
            found = _read_class(pattern, at)
            if found is None:
                return None
            members, at = found
            tokens.append(members)
        elif byte == _BACKSLASH:
            if at == len(pattern):
                return None
            tokens.append(pattern[at : at + 1])
            at += 1
        else:
            tokens.append(pattern[at - 1 : at])
    return tuple(tokens) if tokens else None


def _read_stars(pattern: bytes, at: int, deep: bool, fresh: int) -> tuple[Run, int]:
    """The token for the stars that begin before `at`, and where they end."""
    first = at - 1
    while pattern[at : at + 1] == b"*":
        at += 1
    two_or_more = at - first > 1
    opens = first == fresh or pattern[first - 1] == _SLASH
    if deep and two_or_more and opens:
        if at == len(pattern) or pattern.startswith(b"\\/", at):
            return Run.ANYTHING, at
        if pattern[at] == _SLASH:
            return Run.DIRECTORIES, at + 1
    return Run.WITHIN_NAME, at


def _read_class(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """The bytes that the class with its `[` before `at` allows, and where it ends; None if
    broken."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first = at
    members: set[int] = set()
    low: int | None = None  # what a following `-` would start a range from
    while pattern[at : at + 1] != b"]" or at == first:
        if pattern.startswith(b"[:", at):
            close = pattern.find(b"]", at + 2)
            if close > at + 2 and pattern[close - 1] == _COLON:
                named = _CLASSES.get(pattern[at + 2 : close - 1])
                if named is None:
                    return None
                members.update(named)
                low, at = None, close + 1
                continue
        in_range = (
            low is not None
            and pattern.startswith(b"-", at)
            and pattern[at + 1 : at + 2] not in (b"", b"]")
        )
        at += in_range
        at += pattern.startswith(b"\\", at)
        if at >= len(pattern):
            return None
        high = pattern[at]
        at += 1
        if in_range and low is not None:
            members.update(range(low, high + 1))
            low = None
        else:
            members.add(high)
            low = high
    allowed = (set(_NAME_BYTES) - members) if negated else (members - {_SLASH})
    return (bytes(sorted(allowed)), at + 1) if allowed else None


def texts_of(tokens: Sequence[Token]) -> tuple[bytes, ...] | None:
    """All texts that the tokens allow, if they are few; else None."""
    sets: list[bytes] = []
    for token in tokens:
        if isinstance(token, Run):
            return None
        sets.append(token)
    if prod(map(len, sets)) > _MOST_TEXTS:
        return None
    return tuple(bytes(text) for text in product(*sets))


def expression_of(tokens: Sequence[Token]) -> bytes:
    """A regular expression (for `re.DOTALL` and `fullmatch`) that matches what the tokens allow."""
    openings = [at for at, token in enumerate(tokens) if token in (Run.ANYTHING, Run.DIRECTORIES)]
    parts = [_stretch(tokens[: openings[0]] if openings else tokens)]
    for opening, end in pairwise([*openings, len(tokens)]):
        skip = b".*?" if tokens[opening] is Run.ANYTHING else b"(?:[^/]*/)*?"
        part = skip + _stretch(tokens[opening + 1 : end])
        # A stretch ends at a slash, so its start decides its end, and the earliest end leaves most
        # to the rest. The last one must reach the end of the path instead.
        parts.append(part if end == len(tokens) else b"(?>" + part + b")")
    return b"".join(parts)


def _stretch(tokens: Sequence[Token]) -> bytes:
    """The expression for tokens that cross directories only at a literal slash."""
    parts: list[bytes] = []
    name: list[Token] = []
    for token in tokens:
        if token == b"/":
            parts += (_name(name), b"/")
            name = []
        else:
            name.append(token)
    return b"".join(parts) + _name(name)


def _name(tokens: Sequence[Token]) -> bytes:
    """The expression for the tokens of one name, or of its end or start."""
    pieces: list[list[bytes]] = [[]]
    for token in tokens:
        if isinstance(token, Run):
            pieces.append([])
        else:
            pieces[-1].append(_one_of(token))
    fixed = [b"".join(piece) for piece in pieces]
    if len(fixed) == 1:
        return fixed[0]
    middle = b"".join(b"(?>[^/]*?" + piece + b")" for piece in fixed[1:-1])
    return fixed[0] + middle + b"[^/]*" + fixed[-1]


def _one_of(members: bytes) -> bytes:
    if len(members) == 1:
        return re.escape(members)
    if len(members) > 128:
        return b"[^" + _hexadecimal(byte for byte in range(256) if byte not in members) + b"]"
    return b"[" + _hexadecimal(members) + b"]"


def _hexadecimal(members: Iterable[int]) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in members)

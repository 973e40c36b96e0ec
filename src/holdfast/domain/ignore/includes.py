"""Include patterns: paths that are captured even if an ignore rule excludes them.

Patterns have the syntax of an ignore file in the workspace root, except that `!` is not supported.
Every match is included, a directory with everything in it.

Guarantees: a pattern that could never match is refused, so users do not rely on it.
`may_match_below` is exact for patterns with a slash. Not guaranteed: that anything below a
directory does match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from holdfast.domain.ignore.glob import Run, Token, Tokens, expression_of
from holdfast.domain.ignore.rules import (
    ParsedPattern,
    RuleStack,
    parse_pattern,
    parse_rules,
    pattern_lines,
)
from holdfast.domain.paths import from_text, to_text, typed
from holdfast.values.classes import dataclass

_PATTERN_CHARACTERS = re.compile(r"([*?\[\\]|^[!#])")


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a pattern with a slash can match: a test for each level, then everything below or
    nothing."""

    levels: tuple[Callable[[bytes], re.Match[bytes] | None], ...]
    goes_deeper: bool

    def extends_below(self, names: Sequence[bytes]) -> bool:
        """Whether something below the directory with these names can match."""
        if not all(fits(name) for fits, name in zip(self.levels, names, strict=False)):
            return False
        return self.goes_deeper or len(names) < len(self.levels)


class IncludePatterns:
    """The value of the `include` setting."""

    __slots__ = ("_has_name_patterns", "_reaches", "_stack", "fingerprint")

    fingerprint: bytes
    """A digest of everything that influences decisions."""

    def __init__(self, stack: RuleStack, reaches: Sequence[Reach], has_name_patterns: bool) -> None:
        self._stack = stack
        self._reaches = tuple(reaches)
        self._has_name_patterns = has_name_patterns
        self.fingerprint = stack.fingerprint

    @classmethod
    def parse(cls, patterns: Sequence[str]) -> IncludePatterns:
        """Raises `ValueError` for a pattern that is empty, negated, or cannot match."""
        lines = [_line_of(pattern) for pattern in patterns]
        parsed = [_parse(line) for line in lines]
        return cls(
            RuleStack.of(parse_rules(b"\n".join(lines), b"", "include")),
            [_reach_of(each.tokens) for each in parsed if not each.names_only],
            any(each.names_only for each in parsed),
        )

    def matches(self, path: bytes, is_dir: bool) -> bool:
        """Whether a pattern names this path.

        Everything below a matching directory is included too; the caller applies that.
        """
        return self._stack.decide(path, is_dir) is not None

    def may_match_below(self, directory: bytes, ignored_by_default_rule: bool) -> bool:
        """Whether an ignored directory has to be searched for included paths.

        A name pattern such as `.env` could match in any directory. Directories ignored by the
        user's own rules are searched for it. `node_modules` and the like are not; that takes a
        pattern with a slash.
        """
        if self._has_name_patterns and not ignored_by_default_rule:
            return True
        names = directory.split(b"/") if directory else []
        return any(reach.extends_below(names) for reach in self._reaches)


def include_command(paths: Iterable[bytes]) -> str:
    """The command that adds these paths to the `include` setting."""
    wanted = dict.fromkeys(_PATTERN_CHARACTERS.sub(r"\\\1", to_text(path)) for path in paths)
    words = " ".join(typed(from_text(pattern)) for pattern in wanted)
    return f"holdfast config add include {words}"


def _line_of(pattern: str) -> bytes:
    """The pattern as a line of an ignore file."""
    if any(char in pattern for char in "\0\r\n"):
        raise ValueError(f"{pattern!r} contains a line break or a zero byte")
    if pattern.startswith("#"):
        raise ValueError(f"{pattern!r} is a comment; write '\\{pattern}' for a name with '#'")
    lines = [line for _, line in pattern_lines(from_text(pattern))]
    if not lines:
        raise ValueError("an include pattern cannot be empty")
    return lines[0]


def _parse(line: bytes) -> ParsedPattern:
    shown = to_text(line)
    if line.startswith(b"!"):
        raise ValueError(f"{shown!r} excludes; put it in .holdfastignore without the '!'")
    if {b".", b".."} & set(line.split(b"/")):
        raise ValueError(f"{shown!r}: a pattern is relative to the workspace, without '.' or '..'")
    parsed = parse_pattern(line)
    if parsed is None:
        raise ValueError(f"{shown!r} can match nothing")
    return parsed


def _reach_of(tokens: Tokens) -> Reach:
    deep = [at for at, token in enumerate(tokens) if token in (Run.ANYTHING, Run.DIRECTORIES)]
    level: list[Token] = []
    levels: list[list[Token]] = [level]
    for token in tokens[: deep[0]] if deep else tokens:
        if token == b"/":
            level = []
            levels.append(level)
        else:
            level.append(token)
    if deep and level:
        # `a**/b`: the stars match the rest of this name and everything below.
        level.append(Run.WITHIN_NAME)
    return Reach(
        tuple(re.compile(expression_of(each), re.DOTALL).fullmatch for each in levels if each),
        goes_deeper=bool(deep),
    )

"""Which paths belong to the state of agents: patterns below the workspace, the home or the root.

A pattern is `~/...`, `/...`, or a path inside the workspace. `*`, `?` and `[...]` match a part of
one name, `**` any number of directories. A directory that a pattern names includes everything in
it. Files outside the patterns are never read and never written.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.paths import from_text

ANY_DEPTH = b"**"
_WILD = re.compile(rb"[*?\[]")
_LONGEST_PATTERN = 4096


class Root(StrEnum):
    """The directory a pattern starts at."""

    WORKSPACE = "workspace"
    HOME = "home"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, split into names."""

    root: Root
    names: tuple[bytes, ...]

    def start(self) -> frozenset[int]:
        """The match position before the first name; further positions come from `step`."""
        return self._with_skipped({0})

    def step(self, positions: frozenset[int], name: bytes) -> frozenset[int]:
        """The possible match positions after one more name; empty if it does not match."""
        end = len(self.names)
        reached = set()
        for position in positions:
            if position == end or self.names[position] == ANY_DEPTH:
                reached.add(position)  # matches everything below, or `**` skips this name
            elif fnmatch.fnmatchcase(name, self.names[position]):
                reached.add(position + 1)
        return self._with_skipped(reached)

    def _with_skipped(self, positions: set[int]) -> frozenset[int]:
        for position in sorted(positions):
            while position < len(self.names) and self.names[position] == ANY_DEPTH:
                position += 1
                positions.add(position)
        return frozenset(positions)

    def is_full(self, positions: frozenset[int]) -> bool:
        return len(self.names) in positions

    def next_names(self, positions: frozenset[int]) -> frozenset[bytes] | None:
        """The only names that can match next, or None if the directory has to be listed."""
        names = set()
        for position in positions:
            if position == len(self.names) or _WILD.search(self.names[position]):
                return None
            names.add(self.names[position])
        return frozenset(names)

    def matches(self, path: Iterable[bytes]) -> bool:
        positions = self.start()
        for name in path:
            positions = self.step(positions, name)
        return self.is_full(positions)


def parse_pattern(text: str) -> Pattern:
    """Parse a pattern. `ValueError` says what is wrong with it."""
    if not text.strip() or len(text) > _LONGEST_PATTERN or set(text) & {"\0", "\n"}:
        raise ValueError(f"{text!r:.80} is not a pattern")
    root, rest = Root.WORKSPACE, text
    if text.startswith("~/"):
        root, rest = Root.HOME, text[2:]
    elif text.startswith("~"):
        raise ValueError(f"{text!r} names another user's home; write the full path")
    elif text.startswith("/"):
        root, rest = Root.SYSTEM, text[1:]
    names = tuple(from_text(name) for name in rest.split("/") if name not in ("", "."))
    if not names or b".." in names:
        raise ValueError(f"{text!r} must name a path below its root, without '..'")
    if any(ANY_DEPTH in name and name != ANY_DEPTH for name in names):
        raise ValueError(f"in {text!r}, ** must be the whole name between two slashes")
    if root is not Root.WORKSPACE and _WILD.search(names[0]):
        raise ValueError(f"{text!r} matches everything; start with a directory name")
    return Pattern(root, names)


def parse_agent_state(value: object) -> tuple[str, ...]:
    """Parse the setting `agent_state`: agent names and patterns. A name is also a valid pattern, so
    a list is accepted even where an agent is unknown."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ValueError("expects a list of patterns and agent names")
    for entry in value:
        if not isinstance(entry, str):
            raise ValueError(f"{entry!r} is not a pattern")
        parse_pattern(entry)
    return tuple(value)

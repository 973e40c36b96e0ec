"""Git branches: names in settings, and how a branch's reflog records a merge.

    entries since the last known commit → without those that a reset dropped
    one by `git merge` or `git pull` → merged; one that gives no reason → unclear

Pure. The reflog may be forged, so it is not trusted. At worst, a checkpoint gets a wrong name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from holdfast.values.classes import NamedTuple

DEFAULT_MIRROR = "holdfast-checkpoints"
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\.(?:/|\Z)")
_RESERVED = "heads remotes stash bisect rewritten worktree notes replace holdfast".split()
_LONGEST = 200
_MOST_MAIN = 20


def valid_ref_path(text: str) -> bool:
    """Whether this is a valid name below `refs/`, by the rules of `git check-ref-format`."""
    return (
        0 < len(text) <= _LONGEST
        and text.isprintable()
        and not text.startswith(("/", ".", "-"))
        and not text.endswith("/")
        and text != "@"
        and _FORBIDDEN.search(text) is None
    )


def mirror_branch(value: object) -> str:
    """Parse the setting `mirror`: a name, true for the default, false or empty for none."""
    if value is True:
        return DEFAULT_MIRROR
    if value is False or value == "":
        return ""
    if not isinstance(value, str) or not valid_ref_path(value):
        raise ValueError("expects a branch name, true or false")
    if value.partition("/")[0] in (*_RESERVED, "tags"):
        raise ValueError("this branch name would hide one of git's own names")
    return value


def mirror_place(value: object) -> str:
    """Parse the setting `mirror_refs`: a place below `refs/` that git does not use."""
    if value == "":
        return ""
    if not isinstance(value, str) or not valid_ref_path(value):
        raise ValueError("expects a place below refs/, such as tags")
    first = value.partition("/")[0]
    if first in _RESERVED:
        raise ValueError(f"refs/{first} is reserved")
    return value


def main_branches(value: object) -> tuple[str, ...]:
    """Parse the setting `auto_merge`: a list of branch names, possibly empty."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ValueError('expects a list of branches, e.g. ["main", "master"]')
    for name in value:
        if not isinstance(name, str) or not valid_ref_path(name):
            raise ValueError(f"{name!r} is not a branch name")
    if len(value) > _MOST_MAIN:
        raise ValueError(f"takes at most {_MOST_MAIN} branches")
    return tuple(dict.fromkeys(value))


_ENTRY = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t\n]*\t?(.*)")
_MERGED = re.compile(rb"(?:merge|pull)\b|commit \(merge\)")
_NOT_MERGED = re.compile(
    rb"(?:commit|reset|rebase|cherry-pick|revert|checkout|branch|am|holdfast|clone)\b"
)
_REVERTED = re.compile(rb"reset\b|rebase\b|holdfast\b")
_SOURCE = re.compile(rb"merge ([^:]+)(?::|$)")
_LONGEST_NAME = 80


class Unclear(Enum):
    """The reflog does not say; ask git."""

    UNCLEAR = 0


class MainBranches(NamedTuple):
    """`tips` has the commit of each main branch. `current` is the one at HEAD, if any. `under_way`:
    a merge into it has started and not finished."""

    tips: Mapping[str, str]
    current: str | None
    under_way: bool


@dataclass(frozen=True, slots=True)
class Move:
    """One reflog entry: the branch moved from one commit to another, and why."""

    old: str
    new: str
    why: bytes


def read_moves(log: bytes) -> list[Move]:
    """Reflog entries in order. Invalid lines are ignored."""
    found = (_ENTRY.fullmatch(line) for line in log.split(b"\n"))
    return [Move(m[1].decode(), m[2].decode(), m[3]) for m in found if m is not None]


def merged_since(moves: Sequence[Move], known: str, tip: str) -> str | Unclear | None:
    """Describe the merge since the branch was at `known`; None if there was none."""
    if not moves or moves[-1].new != tip:
        return Unclear.UNCLEAR
    since: list[Move] = []
    for move in reversed(moves):
        if move.new == known:
            break
        since.append(move)
        if _REVERTED.match(move.why):
            break  # earlier entries that the reset dropped no longer count
        if move.old == known:
            break
    else:
        return Unclear.UNCLEAR
    for move in since:
        if _MERGED.match(move.why):
            return _words(move.why)
    known_reasons = all(_NOT_MERGED.match(move.why) for move in since)
    return None if known_reasons else Unclear.UNCLEAR


def _words(why: bytes) -> str:
    if why.startswith(b"pull"):
        return "Pulled"
    source = _SOURCE.match(why)
    if source is None:
        return "Merged a branch"
    name = " ".join(source[1].decode("utf-8", "backslashreplace").split())
    return f"Merged {name[:_LONGEST_NAME]}"

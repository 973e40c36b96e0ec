"""Names of branches and places of refs in git, as settings give them."""

from __future__ import annotations

import re

DEFAULT_MIRROR = "holdfast-checkpoints"
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|\Z)|\.(?:/|\Z)")
_TAKEN = "heads remotes stash bisect rewritten worktree notes replace holdfast".split()
_LONGEST = 200
_MOST_MAIN = 20


def valid_ref_path(text: str) -> bool:
    """Whether this may stand below `refs/`, by the rules of `git check-ref-format`."""
    return (
        0 < len(text) <= _LONGEST
        and text.isprintable()
        and not text.startswith(("/", ".", "-"))
        and not text.endswith("/")
        and text != "@"
        and _FORBIDDEN.search(text) is None
    )


def mirror_branch(value: object) -> str:
    """The setting `mirror`: a name, true for the default, false or nothing for none."""
    if value is True:
        return DEFAULT_MIRROR
    if value is False or value == "":
        return ""
    if not isinstance(value, str) or not valid_ref_path(value):
        raise ValueError("expects the name of a branch, true or false")
    if value.partition("/")[0] in (*_TAKEN, "tags"):
        raise ValueError("a branch of that name would hide names that git has itself")
    return value


def mirror_place(value: object) -> str:
    """The setting `mirror_refs`: a place below `refs/` that is not git's own."""
    if value == "":
        return ""
    if not isinstance(value, str) or not valid_ref_path(value):
        raise ValueError("expects a place below refs/, such as tags")
    first = value.partition("/")[0]
    if first in _TAKEN:
        raise ValueError(f"refs/{first} belongs to somebody else")
    return value


def main_branches(value: object) -> tuple[str, ...]:
    """The setting `auto_merge`: names of branches, or none."""
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ValueError('expects a list of branches, e.g. ["main", "master"]')
    for name in value:
        if not isinstance(name, str) or not valid_ref_path(name):
            raise ValueError(f"{name!r} is not the name of a branch")
    if len(value) > _MOST_MAIN:
        raise ValueError(f"takes {_MOST_MAIN} branches at most")
    return tuple(dict.fromkeys(value))

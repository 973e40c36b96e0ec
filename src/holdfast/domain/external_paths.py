"""Where a path that a tool names leads outside the workspace, by its letters alone.

What a shell would still have to expand is followed as far as it can be: the home directory is put
in, and of a pattern there is the directory that it looks in. System trees are nobody's files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST_NAMES = 500
SYSTEM_TREES = ("/proc", "/sys", "/dev", "/run", "/System", "/boot")
_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?=/|\Z)")
_PATTERN = re.compile(r"[*?\[{]")


class NotFollowed(ValueError):
    """It cannot be told where the path leads, or nothing there is kept, for the reason given."""


def followed(place: str, home: str | None) -> str:
    """The absolute path that is meant; `NotFollowed` when that cannot be told."""
    match = _HOME.match(place)
    if match is not None and home is not None and home.startswith("/"):
        place = home.rstrip("/") + place[match.end() :]
    if not place.startswith("/") or "\0" in place:
        raise NotFollowed("only the shell knows where it leads")
    if "$" in place or "`" in place:
        raise NotFollowed("only the shell knows where it leads")
    parts = [part for part in place.split("/") if part not in ("", ".")]
    for number, part in enumerate(parts):
        if _PATTERN.search(part):
            parts = parts[:number]
            break
    path = "/" + "/".join(parts)
    if ".." in parts:
        raise NotFollowed("it leads up and down again")
    require_kept(path)
    return path


def by_home(places: Iterable[str], home: str | None) -> Iterator[str]:
    """Of places that a command spells, those that can be followed, with the home directory put in:
    what is spelled by way of it may be in the workspace after all."""
    for place in places:
        try:
            yield followed(place, home)
        except NotFollowed:
            continue


def require_kept(path: str) -> None:
    """`NotFollowed` for what belongs to the system itself."""
    if path == "/":
        raise NotFollowed("it is the whole file system")
    if any(path == tree or path.startswith(tree + "/") for tree in SYSTEM_TREES):
        raise NotFollowed("it belongs to the system")

"""What the reader of a shell command asks of the disk: what is at a path, and what fits a pattern.

Bounded: a pattern with many parts, or with more matches than a command can have words, is not
looked up. The directory that it looks in then stands for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice

from holdfast.domain.external_paths import at_home
from holdfast.domain.risk.assessment import Disk

_MOST_MATCHES = 500
_MOST_PARTS = 2


def shell_disk() -> Disk:
    """As the user's own files are; `~` is their home directory."""
    return Disk(_exists, _is_file, os.path.isdir, _matching)


def _at_home(place: str) -> str:
    return at_home(place, os.environ.get("HOME"))


def _exists(place: str) -> bool:
    try:
        return os.path.lexists(_at_home(place))
    except ValueError:  # a text that no path can be
        return False


def _is_file(place: str) -> bool:
    path = _at_home(place)
    try:
        return os.path.isfile(path) or (os.path.islink(path) and not os.path.isdir(path))
    except ValueError:
        return False


def _matching(pattern: str) -> Sequence[str]:
    import glob

    path = _at_home(pattern)
    if path.endswith("/*"):
        return ()  # all that is in a directory: that stands for it
    if not path.startswith("/") or "\0" in path or _exists(path):
        return ()
    if sum(glob.has_magic(part) for part in path.split("/")) > _MOST_PARTS:
        return ()
    found = list(islice(glob.iglob(path), _MOST_MATCHES + 1))
    return found if len(found) <= _MOST_MATCHES else ()

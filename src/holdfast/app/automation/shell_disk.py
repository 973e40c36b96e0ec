"""The disk as the risk rules for shell commands ask about it: existing paths, pattern matches.

Bounded: a pattern with many parts, or with more matches than a command can have words, is not
looked up. Neither is `DIRECTORY/*`. The directory stands for such a pattern.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice

from holdfast.domain.external_paths import at_home
from holdfast.domain.risk.assessment import Disk

_MOST_MATCHES = 500
_MOST_PARTS = 2


def shell_disk(home: str | None) -> Disk:
    """The user's own files; `~` stands for the directory `home`."""

    def exists(place: str) -> bool:
        try:
            return os.path.lexists(at_home(place, home))
        except ValueError:  # a text that no path can be
            return False

    def is_file(place: str) -> bool:
        path = at_home(place, home)
        try:
            return os.path.isfile(path) or (os.path.islink(path) and not os.path.isdir(path))
        except ValueError:
            return False

    def matching(pattern: str) -> Sequence[str]:
        path = at_home(pattern, home)
        if not path.startswith("/") or "\0" in path or exists(path):
            return ()
        return () if path.endswith("/*") else _matches(path)

    return Disk(exists, is_file, os.path.isdir, matching)


def _matches(path: str) -> Sequence[str]:
    import glob

    if sum(glob.has_magic(part) for part in path.split("/")) > _MOST_PARTS:
        return ()
    found = list(islice(glob.iglob(path), _MOST_MATCHES + 1))
    return found if len(found) <= _MOST_MATCHES else ()

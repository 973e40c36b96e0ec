"""Paths that git would not take into a tree, because some system would take them for its own data.

The same on every system, whatever is configured: a mirror that is built elsewhere is equal, and
`git fsck --strict` finds nothing in it.
"""

from __future__ import annotations

import re

_GIT = re.compile(rb"(?:\.git|git~1)[. ]*(?::.*)?\Z", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(
    rb"(?:\.git(?:modules|ignore|attributes)|\.mailmap|(?:gitmod|gitign|gitatt|mailma)~[1-4]"
    rb"|g[a-f0-9]{1,5}~\d+|ma[a-f0-9]{1,4}~\d+)[. ]*(?::.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def git_takes(path: bytes, *, link: bool = False) -> bool:
    """`link` tells a symbolic link, for which more names are reserved."""
    for name in path.split(b"/"):
        for part in {name, *name.split(b"\\")}:
            plain = _without_ignored(part)
            if not plain or plain in (b".", b"..") or _GIT.match(plain):
                return False
    return not (link and _LINK.match(_without_ignored(path.rpartition(b"/")[2])))


def _without_ignored(name: bytes) -> bytes:
    text = name.decode("utf-8", "surrogateescape")
    return _IGNORED_BY_HFS.sub("", text).encode("utf-8", "surrogateescape")

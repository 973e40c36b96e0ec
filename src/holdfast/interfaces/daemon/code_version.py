"""Whether a new process would run other code, so that an outdated daemon makes room for a new one.

    the package was installed again  → one file is looked at, with each request
    a source file was edited         → all are looked at, every few seconds at most

An installer replaces all files, even those of the same version. In an editable installation one
file changes alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import holdfast

_BETWEEN_LOOKS_S = 5.0

Stamp = tuple[str, int, int, int]


class CodeOnDisk:
    """As it was when this was made: what this process has loaded, or would load next."""

    def __init__(self) -> None:
        self._package = os.path.dirname(os.path.abspath(holdfast.__file__))
        self._first = _stamp(self._main_file)
        self._all = hash(frozenset(_stamps(self._package)))
        self._looked_at = time.monotonic()

    @property
    def _main_file(self) -> str:
        return os.path.join(self._package, "__init__.py")

    def was_installed_anew(self) -> bool:
        return _stamp(self._main_file) != self._first

    def was_edited(self) -> bool:
        """False without a look when the last one was a moment ago."""
        if time.monotonic() - self._looked_at < _BETWEEN_LOOKS_S:
            return False
        found = hash(frozenset(_stamps(self._package)))
        self._looked_at = time.monotonic()
        return found != self._all


def _stamps(directory: str) -> Iterator[Stamp]:
    for above, names, files in os.walk(directory):
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            if name.endswith(".py") and (stamp := _stamp(os.path.join(above, name))) is not None:
                yield stamp


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_ino, status.st_mtime_ns, status.st_size

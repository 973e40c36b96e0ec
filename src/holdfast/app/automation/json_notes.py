"""Hints as JSON: in a store, through its port, which encrypts them in encrypted stores; and in
small files beside the stores, which are private, bounded, replaced whole, and never synced.

Nothing depends on a hint. A missing, damaged or too large one reads as empty. Write failures are
ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.ports.store import Hints

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def read_hint(hints: Hints, name: str) -> Any:
    """The content of a store's hint; None if it cannot be read."""
    data = hints.read(name)
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None


def write_hint(hints: Hints, name: str, value: object) -> None:
    hints.write(name, json.dumps(value).encode())


def read_json(path: Path, *, most_bytes: int = 64 << 10) -> Any:
    """The content of the file; None if it cannot be read."""
    try:
        with os.fdopen(os.open(path, _READ), "rb") as file:
            return json.loads(file.read(most_bytes))
    except (OSError, ValueError, RecursionError):
        return None


def write_json(path: Path, value: object) -> bool:
    """Replace the file; returns whether that worked."""
    new = path.with_name(f".{path.name}.{threading.get_native_id()}.new")
    try:
        with os.fdopen(os.open(new, _WRITE, 0o600), "wb") as file:
            file.write(json.dumps(value).encode())
        os.replace(new, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new)
        return False
    return True

"""File systems that take no writes: mounted so, or as far as the calls of the system tell."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@contextmanager
def told_read_only(directory: Path) -> Iterator[None]:
    """Opening a file below it for writing fails as on a read-only file system; for those who may
    not mount."""
    really = os.open

    def open_to_read(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if flags & _WRITING and os.fsencode(path).startswith(os.fsencode(directory)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return really(path, flags, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", open_to_read)
        yield


@contextmanager
def seen_read_only(directory: Path, view: Path, *, mounting: bool) -> Iterator[None]:
    """`view` shows what is in the directory and takes no writes, while the directory does."""
    if not mounting:
        view.symlink_to(directory)
        with told_read_only(view):
            yield
        return
    view.mkdir()
    subprocess.run(["mount", "--bind", str(directory), str(view)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(view)], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(view)], check=True)

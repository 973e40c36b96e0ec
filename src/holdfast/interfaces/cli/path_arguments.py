"""Paths as people type them, relative to where they stand, turned into paths of the workspace.

Nothing but the workspace itself is resolved: a link that is named is meant, not what it points to.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.domain.errors import UsageError
from holdfast.domain.paths import GIT_DIRECTORY


def workspace_paths(typed: Sequence[str], base: Path, workspace: Path) -> list[bytes]:
    """Each path relative to the workspace; an empty list when all of it is meant."""
    found = [_workspace_path(text, base, workspace) for text in typed]
    return [] if b"" in found else found


def _workspace_path(text: str, base: Path, workspace: Path) -> bytes:
    raw = os.fsencode(text)
    if not raw or b"\0" in raw:
        raise UsageError(f"{text!r} is not a path", hint="name a file or directory")
    root = os.fsencode(workspace)
    wanted = os.path.normpath(os.path.join(os.path.realpath(os.fsencode(base)), raw))
    relative = _below(wanted, root)
    if relative is None:
        # Named through another way to the same place, such as a link to the workspace.
        directory, name = os.path.split(wanted)
        relative = _below(os.path.join(os.path.realpath(directory), name), root)
    if relative is None:
        raise UsageError(
            f"{text!r} lies outside the workspace {workspace}",
            hint="name paths inside it, relative to the current directory",
        )
    if GIT_DIRECTORY in relative.split(b"/"):
        raise UsageError(
            f"{text!r} is git's own data, which checkpoints do not hold",
            hint="name working files; use git itself for its data",
        )
    return relative


def _below(path: bytes, root: bytes) -> bytes | None:
    if path == root:
        return b""
    prefix = root if root.endswith(b"/") else root + b"/"
    return path[len(prefix) :] if path.startswith(prefix) else None

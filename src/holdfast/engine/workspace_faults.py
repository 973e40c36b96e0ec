"""Trouble with the workspace's own file system, in the words of the error family."""

from __future__ import annotations

import errno
from pathlib import Path

from holdfast.domain.errors import HoldfastError, NoSpace, WorkspaceTrouble

FULL = (errno.ENOSPC, errno.EDQUOT)


def workspace_trouble(workspace: Path, error: OSError) -> HoldfastError:
    if error.errno in FULL:
        return NoSpace(
            f"no space left on the disk of {workspace}", hint="free some disk space and try again"
        )
    return WorkspaceTrouble(
        f"the workspace {workspace} failed: {error.strerror or error}",
        hint="put the cause right and try again; nothing was lost",
    )

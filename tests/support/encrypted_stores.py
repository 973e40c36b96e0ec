"""Workspaces whose store is encrypted, and a look at everything that their stores hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.bootstrap.keys import key_file_secret
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import StoreDamaged
from holdfast.engine.repair.check import run_checks
from holdfast.ports.progress import NoProgress
from holdfast.ports.store import Secret

HIDDEN = (
    b"the-launch-code",
    b"confidential-name",
    b"a-telling-reason",
    b"secret-session",
    b"my-tag",
)
"""What tests put into stores, to look for it in their files."""


def make_encrypted(workspace: Path, key: Path) -> None:
    """Make the store of a workspace an encrypted one, with a key file that is made if missing."""

    def secret(workspace: Path) -> Secret:
        return key_file_secret(key, workspace, os.environ)

    open_workspace(workspace, create=True, new_secret=secret).close()


_UNMISTAKABLE_BYTES = 5


def files_with(home: Path, *needles: bytes) -> Iterator[tuple[str, bytes]]:
    """Every file below `home` that has one of these bytes in its name or content. Shorter ones than
    these are to be found in any megabyte of random bytes, sooner or later."""
    assert min(map(len, needles)) >= _UNMISTAKABLE_BYTES
    for path in sorted(home.rglob("*")):
        inside = path.read_bytes() if path.is_file() else b""
        for needle in needles:
            if needle in inside or needle in os.fsencode(path.relative_to(home)):
                yield str(path.relative_to(home)), needle


def problems(workspace: Path) -> list[str]:
    """What `check --data` finds, or why the store does not even open."""
    try:
        with open_workspace(workspace, create=False) as opened:
            found = run_checks(opened.engine.vault, data=True, progress=NoProgress())
            return [problem.problem for problem in found]
    except StoreDamaged as error:
        return [error.message]

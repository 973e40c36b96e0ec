"""Hooks that a person has taken out with `holdfast uninstall`: meant, and so nothing to warn of.

One empty file for each, below `$HOLDFAST_HOME/removed-hooks`, named by a digest of the agent and of
the workspace, or of the user's own settings. Where it cannot be written, the hooks are missed as if
somebody else had removed them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from holdfast.bootstrap.locations import holdfast_home

_DIRECTORY = "removed-hooks"


def note_removed(agent: str, scope: str, workspace: Path) -> None:
    place = _place(agent, scope, workspace)
    if not place.parent.parent.is_dir():
        return  # nothing was ever saved, so nobody misses anything
    with contextlib.suppress(OSError):
        place.parent.mkdir(mode=0o700, exist_ok=True)
        place.touch(mode=0o600)


def forget_removed(agent: str, workspace: Path) -> None:
    """The agent has hooks again: from now on they are missed when they are gone."""
    for scope in ("project", "user"):
        with contextlib.suppress(OSError):
            _place(agent, scope, workspace).unlink()


def was_removed(agent: str, workspace: Path) -> bool:
    return any(_place(agent, scope, workspace).exists() for scope in ("project", "user"))


def _place(agent: str, scope: str, workspace: Path) -> Path:
    whose = os.fsencode(workspace.resolve()) if scope == "project" else b""
    digest = hashlib.sha256(b"\0".join((agent.encode(), scope.encode(), whose))).hexdigest()
    return holdfast_home(os.environ) / _DIRECTORY / digest[:32]

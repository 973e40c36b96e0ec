"""A word on the command line if the hooks of an agent do not run: once a day and reason."""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.interfaces.cli.invocation import Invocation

_AGAIN_S = 24 * 3600
_NAME = "unprotected.told"


def tell_of_unprotected(invocation: Invocation) -> None:
    """After a command, on a terminal; nothing that goes wrong here is the command's."""
    with contextlib.suppress(Exception):
        from holdfast.api.stores import holdfast_home
        from holdfast.api.workspaces import workspace_around
        from holdfast.interfaces.agent_setup.protection import protections, unprotected

        workspace = workspace_around(invocation.directory)
        found = unprotected(protections(workspace)) if workspace is not None else []
        if not found:
            return
        said = "\0".join(f"{workspace} {one.agent} {one.finding}" for one in found)
        digest = hashlib.sha256(os.fsencode(said)).hexdigest()
        place = holdfast_home(os.environ) / _NAME
        age_s = invocation.now.timestamp() - place.stat().st_mtime if place.exists() else _AGAIN_S
        if place.exists() and place.read_text() == digest and age_s < _AGAIN_S:
            return
        place.write_text(digest)  # where this cannot be kept, `status` tells
        for one in found:
            invocation.terminal.warn(f"{one.agent} is not protected: {one.finding}")
            if one.cure is not None:
                invocation.terminal.note(f"  {one.cure}")

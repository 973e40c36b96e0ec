"""An index in two files: a small one, and one that it shares with the indexes before it and names.

The name of the shared one is its checksum, so it never changes; git drops it when no index has
needed it for a while. A checkpoint therefore holds both, and a restore puts back what is gone.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.plain_files import read_whole, replace_file
from holdfast.components.git.states import SHARED_INDEX
from holdfast.ports.component import ComponentProblem, RestoreOf

_NAME = re.compile(r"sharedindex\.[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_MODE = 0o644


def shared_name(git: Git) -> str | None:
    """The file that the index of the repository shares; None when it is whole by itself."""
    shown = os.fsdecode(git.run("rev-parse", "--shared-index-path").rstrip(b"\n"))
    if not shown:
        return None
    name = os.path.basename(shown)
    if not _NAME.match(name) or not os.path.isfile(git.repository.own(os.fsencode(name))):
        raise GitFailed(f"the file {name} that the index shares is not there", "run: git reset")
    return name


def place_shared(git: Git, request: RestoreOf) -> None:
    """Let the file that the index of a checkpoint shares be there; durable with its directory."""
    name = named(request.target.facts)
    if name is None:
        return
    place = git.repository.own(os.fsencode(name))
    data = b"".join(request.contents.read(SHARED_INDEX))
    if read_whole(place) != data:
        replace_file(place, data, _MODE)
    with contextlib.suppress(OSError):
        os.utime(place)  # git drops the ones that nothing has used for long


def is_placed(git: Git, request: RestoreOf) -> bool:
    name = named(request.target.facts)
    return name is None or os.path.isfile(git.repository.own(os.fsencode(name)))


def named(facts: Any) -> str | None:
    """What a checkpoint says; it may come from anywhere."""
    name = facts.get("shared_index")
    if name is not None and not (isinstance(name, str) and _NAME.match(name)):
        raise ComponentProblem("what the checkpoint says about git is unusable: its shared index")
    return name

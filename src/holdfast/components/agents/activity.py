"""Agents that are at work in a workspace, as far as the system tells without being asked long.

Linux only: elsewhere no process is seen, and the sessions of the store have to do. Only processes
of the same user can be looked at, and only those whose directory is the workspace or below it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.components.agents.component import KnownAgent

_PROCESSES = Path("/proc")
_ARGUMENT_BYTES = 4096
_LOOKED_AT = 2
"""The program, or the script that an interpreter was told to run."""


def running_agents(workspace: Path, agents: Iterable[KnownAgent]) -> Iterator[tuple[str, int]]:
    """The name of each of these agents that runs, with the id of its process."""
    programs = {program: agent.name for agent in agents for program in agent.programs}
    try:
        processes = [entry for entry in os.listdir(_PROCESSES) if entry.isdecimal()]
    except OSError:
        return
    for process in sorted(processes, key=int):
        agent = _agent(_PROCESSES / process, programs)
        if agent is not None and _is_inside(_PROCESSES / process, workspace):
            yield agent, int(process)


def _agent(process: Path, programs: Mapping[str, str]) -> str | None:
    try:
        with open(process / "cmdline", "rb") as file:
            arguments = file.read(_ARGUMENT_BYTES).split(b"\0")
    except OSError:
        return None
    for argument in arguments[:_LOOKED_AT]:
        name = os.path.basename(os.fsdecode(argument)).partition(".")[0]
        if name in programs:
            return programs[name]
    return None


def _is_inside(process: Path, workspace: Path) -> bool:
    try:
        directory = Path(os.readlink(process / "cwd"))
    except OSError:
        return False
    return directory == workspace or workspace in directory.parents

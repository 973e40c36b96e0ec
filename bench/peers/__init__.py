"""The tools that are measured, Holdfast and the reference first."""

from bench.peers import (
    agent_tools,
    backup_tools,
    holdfast_library,
    holdfast_watched,
    python_libraries,
    shadow_git,
)

HOLDFAST = holdfast_library.KIND
WATCHED = holdfast_watched.KIND
REFERENCE = shadow_git.KIND
KINDS = (
    HOLDFAST,
    WATCHED,
    REFERENCE,
    *agent_tools.KINDS,
    *python_libraries.KINDS,
    *backup_tools.KINDS,
)

"""Holdfast: a save-game system for AI coding agents.

Names are loaded when first used, so that `import holdfast` costs nothing.
"""

TYPE_CHECKING = False  # the module that has it costs more than all of this
if TYPE_CHECKING:
    from holdfast.api.session import SessionCheckpointer, start_session
    from holdfast.api.workspace import Workspace
    from holdfast.domain.errors import HoldfastError
    from holdfast.domain.intent import SnapshotIntent
    from holdfast.domain.snapshots import CheckpointSummary, WorkspaceSnapshot

__version__ = "0.1.0"

_HOMES = {
    "CheckpointSummary": "holdfast.domain.snapshots",
    "HoldfastError": "holdfast.domain.errors",
    "SessionCheckpointer": "holdfast.api.session",
    "SnapshotIntent": "holdfast.domain.intent",
    "Workspace": "holdfast.api.workspace",
    "WorkspaceSnapshot": "holdfast.domain.snapshots",
    "start_session": "holdfast.api.session",
}

__all__ = [
    "CheckpointSummary",
    "HoldfastError",
    "SessionCheckpointer",
    "SnapshotIntent",
    "Workspace",
    "WorkspaceSnapshot",
    "__version__",
    "start_session",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)

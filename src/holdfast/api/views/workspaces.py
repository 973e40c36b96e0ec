"""The workspaces of a user as data, for a page that shows all of them."""

from typing import TYPE_CHECKING, TypedDict

from holdfast.domain.wording import iso_from_ns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from holdfast.api.stores import KnownWorkspace
    from holdfast.api.workspace import Workspace


class WorkspaceView(TypedDict):
    """One workspace. `is_own`: the one that the server was started in."""

    id: str
    path: str
    name: str
    last_activity: str
    is_own: bool


class WorkspacesView(TypedDict):
    """All workspaces, most recently active first."""

    workspaces: list[WorkspaceView]


class WorkspaceOverviewView(WorkspaceView):
    """A workspace with its counts. `unapproved` counts unapproved checkpoints of all sessions."""

    sessions: int
    checkpoints: int
    unapproved: int
    store_bytes: int
    budget_bytes: int
    encrypted: bool


def workspace_view(one: "KnownWorkspace", *, is_own: bool) -> WorkspaceView:
    return {
        "id": one.id,
        "path": str(one.path),
        "name": one.path.name,
        "last_activity": iso_from_ns(one.last_activity_ns),
        "is_own": is_own,
    }


def workspace_overview_view(workspace: "Workspace", *, is_own: bool) -> WorkspaceOverviewView:
    sessions = workspace.sessions.overview()
    last_ns = max((one.last_activity_ns for one in sessions), default=0)
    return {
        "id": workspace.store_directory.name,
        "path": str(workspace.path),
        "name": workspace.path.name,
        "last_activity": iso_from_ns(last_ns),
        "is_own": is_own,
        "sessions": len(sessions),
        "checkpoints": sum(one.checkpoints for one in sessions),
        "unapproved": sum(one.unapproved for one in sessions),
        "store_bytes": workspace.upkeep.size_bytes(),
        "budget_bytes": workspace.upkeep.budget_bytes,
        "encrypted": workspace.is_encrypted,
    }


def workspaces_view(known: "Iterable[KnownWorkspace]", own: "Path") -> WorkspacesView:
    return {"workspaces": [workspace_view(one, is_own=one.path == own) for one in known]}

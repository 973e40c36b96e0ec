"""Which directory is the workspace of a directory, asked before one is open (CP-16)."""

from holdfast.bootstrap.locations import require_project, why_no_project
from holdfast.bootstrap.stores import nearest_workspace
from holdfast.bootstrap.workspace_choice import (
    holds_repositories,
    is_left_out,
    is_project,
    repository_top,
    workspace_around,
    workspace_for,
)

__all__ = [
    "holds_repositories",
    "is_left_out",
    "is_project",
    "nearest_workspace",
    "repository_top",
    "require_project",
    "why_no_project",
    "workspace_around",
    "workspace_for",
]

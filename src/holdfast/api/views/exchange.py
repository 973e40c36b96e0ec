"""Exports and imports as data."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from holdfast.api.exchange import ExportOutcome, ImportOutcome, MirrorOutcome


class ExportView(TypedDict):
    """A bundle that was written."""

    file: str
    sessions: list[str]
    checkpoints: int
    objects: int
    content_bytes: int
    file_bytes: int
    latest: str
    warnings: list[str]
    elapsed_ms: float


class GitExportView(TypedDict):
    """A git bundle that was written."""

    file: str
    commits: int
    file_bytes: int
    warnings: list[str]
    elapsed_ms: float


class ImportView(TypedDict):
    """What a bundle added, or with `dry_run` would add."""

    sessions: list[str]
    added: list[str]
    already_there: int
    renamed: int
    latest: str
    latest_session: str
    workspace: str
    workspace_id: str
    stored_bytes: int
    dry_run: bool
    elapsed_ms: float


def export_view(
    path: Path, outcome: "ExportOutcome", warnings: Iterable[str], elapsed_ms: float
) -> ExportView:
    return {
        "file": str(path),
        "sessions": list(outcome.sessions),
        "checkpoints": outcome.checkpoints,
        "objects": outcome.objects,
        "content_bytes": outcome.content_bytes,
        "file_bytes": outcome.file_bytes,
        "latest": outcome.latest,
        "warnings": list(warnings),
        "elapsed_ms": elapsed_ms,
    }


def git_export_view(
    path: Path,
    outcome: "MirrorOutcome",
    file_bytes: int,
    warnings: Iterable[str],
    elapsed_ms: float,
) -> GitExportView:
    return {
        "file": str(path),
        "commits": outcome.commits,
        "file_bytes": file_bytes,
        "warnings": list(warnings),
        "elapsed_ms": elapsed_ms,
    }


def import_view(outcome: "ImportOutcome", elapsed_ms: float, *, dry_run: bool) -> ImportView:
    return {
        "sessions": list(outcome.sessions),
        "added": list(outcome.added),
        "already_there": outcome.already_there,
        "renamed": outcome.renamed,
        "latest": outcome.latest,
        "latest_session": outcome.latest_session,
        "workspace": outcome.origin.workspace,
        "workspace_id": outcome.origin.workspace_id,
        "stored_bytes": outcome.stored_bytes,
        "dry_run": dry_run,
        "elapsed_ms": elapsed_ms,
    }

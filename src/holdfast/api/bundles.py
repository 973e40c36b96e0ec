"""Bundles: sessions and checkpoints in one file, written and read, and clones for git."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.engine.bundles.importer import ImportRequest as ImportRequest

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.ids import SessionId
    from holdfast.engine.bundles.exporter import ExportOutcome as ExportOutcome
    from holdfast.engine.bundles.importer import ImportOutcome as ImportOutcome
    from holdfast.engine.bundles.selection import Selection as Selection
    from holdfast.ports.progress import Progress
    from holdfast.ports.repository import MirrorOutcome as MirrorOutcome


def verify_bundle(request: ImportRequest, progress: Progress) -> ImportOutcome:
    """Look at a bundle where there is no store yet; nothing is written."""
    from holdfast.bootstrap.workspace import verify_bundle

    return verify_bundle(request, progress)


class Bundles:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def select_all(self) -> Selection:
        from holdfast.engine.bundles.selection import select_all

        return select_all(self._vault)

    def select_session(self, session_id: SessionId) -> Selection:
        from holdfast.engine.bundles.selection import select_sessions

        return select_sessions(self._vault, [session_id])

    def select_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> Selection:
        from holdfast.engine.bundles.selection import select_checkpoints

        return select_checkpoints(self._vault, checkpoints)

    def export(
        self, selection: Selection, path: Path, *, replace: bool, progress: Progress
    ) -> ExportOutcome:
        """Write a bundle; the file is there whole, or not at all."""
        return self._engine.export(selection, path, replace=replace, progress=progress)

    def export_to(self, selection: Selection, fd: int, *, progress: Progress) -> None:
        """Write a bundle to an open file, such as standard output."""
        from holdfast.engine.bundles.exporter import export_to

        export_to(self._vault, selection, fd, progress=progress)

    def export_git(
        self, path: Path, *, sessions: Sequence[SessionId] | None, replace: bool
    ) -> MirrorOutcome:
        """Write a bundle for `git clone`, of these sessions or, for None, of all."""
        from holdfast.engine.git_mirror import export_git_bundle

        return export_git_bundle(self._vault, path, sessions=sessions, replace=replace)

    def import_file(self, request: ImportRequest, *, progress: Progress) -> ImportOutcome:
        """Import a bundle after everything in it was verified; all of it or nothing."""
        return self._engine.import_bundle(request, progress=progress)

"""Bundles in and out, git bundles, and checkpoints squashed into a commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.git.commits import AcceptOutcome
from holdfast.engine import git_accept as accept
from holdfast.engine.bundles import selection
from holdfast.engine.bundles.importer import ImportRequest as ImportRequest
from holdfast.ports.repository import CommitWish as CommitWish

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.ids import SessionId
    from holdfast.engine.bundles.exporter import ExportOutcome as ExportOutcome
    from holdfast.engine.bundles.importer import ImportOutcome as ImportOutcome
    from holdfast.engine.bundles.selection import Selection as Selection
    from holdfast.engine.git_accept import Acceptance
    from holdfast.engine.git_accept import AcceptRange as AcceptRange
    from holdfast.ports.progress import Progress
    from holdfast.ports.repository import MirrorOutcome as MirrorOutcome


def verify_bundle(request: ImportRequest, progress: Progress) -> ImportOutcome:
    """Verify a bundle without a store; nothing is written."""
    from holdfast.bootstrap.workspace import verify_bundle

    return verify_bundle(request, progress)


class Bundles:
    """Export and import in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def select_all(self) -> Selection:
        return selection.select_all(self._vault)

    def select_session(self, session_id: SessionId) -> Selection:
        return selection.select_sessions(self._vault, [session_id])

    def select_checkpoints(self, checkpoints: Sequence[Checkpoint]) -> Selection:
        return selection.select_checkpoints(self._vault, checkpoints)

    def export(
        self, selection: Selection, path: Path, *, replace: bool, progress: Progress
    ) -> ExportOutcome:
        """Write a bundle. The file appears only when it is complete."""
        from holdfast.engine.bundles.exporter import export_to_file

        return export_to_file(self._vault, selection, path, replace=replace, progress=progress)

    def export_to(self, selection: Selection, fd: int, *, progress: Progress) -> None:
        """Write a bundle to an open file, such as standard output."""
        from holdfast.engine.bundles.exporter import export_to

        export_to(self._vault, selection, fd, progress=progress)

    def export_git(
        self, path: Path, *, sessions: Sequence[SessionId] | None, replace: bool
    ) -> MirrorOutcome:
        """Write a bundle for `git clone`, with these sessions, or all for None."""
        from holdfast.engine.git_mirror import export_git_bundle

        return export_git_bundle(self._vault, path, sessions=sessions, replace=replace)

    def import_file(self, request: ImportRequest, *, progress: Progress) -> ImportOutcome:
        """Verify a whole bundle, then import all of it or nothing."""
        from holdfast.engine.bundles.importer import import_bundle

        return import_bundle(self._vault, request, progress=progress)


class Acceptances:
    """Checkpoints squashed into commits, in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def prepare(
        self,
        session_id: SessionId | None,
        checkpoints: str | None,
        *,
        message: str | None = None,
        co_authors: Sequence[str] = (),
    ) -> Acceptance:
        """The range that would be committed, and its message."""
        return accept.prepare(
            self._vault, session_id, checkpoints, message=message, co_authors=co_authors
        )

    def preview(self, acceptance: Acceptance) -> AcceptOutcome:
        """What would be committed; nothing is changed."""
        plan = accept.plan(self._vault, acceptance)
        return AcceptOutcome(None, acceptance.message, plan, self._warnings(acceptance))

    def commit(self, acceptance: Acceptance, wish: CommitWish) -> AcceptOutcome:
        outcome = accept.accept(self._vault, acceptance, wish)
        warnings = (*outcome.warnings, *self._warnings(acceptance))
        return AcceptOutcome(outcome.commit, outcome.message, outcome.plan, warnings)

    def _warnings(self, acceptance: Acceptance) -> tuple[str, ...]:
        """Warnings about work that is not in the commit, although users may expect it."""
        end = acceptance.range.end
        session = self._vault.catalog.session(end.session_id)
        if session is None or session.head != end.id:
            return acceptance.warnings
        unsaved = self._engine.changes(end, None, renames=False)
        if not unsaved:
            return acceptance.warnings
        what = (
            "1 path changed since the checkpoint and is"
            if len(unsaved) == 1
            else f"{len(unsaved):,} paths changed since the checkpoint and are"
        )
        return (*acceptance.warnings, f"{what} not in the commit")

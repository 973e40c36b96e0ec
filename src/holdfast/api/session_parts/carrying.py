"""What a session offers beyond this machine and this moment: bundles, and removal for good."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import session_id as valid_session_id
from holdfast.domain.paths import from_text

if TYPE_CHECKING:
    from holdfast.domain.ids import SessionId
    from holdfast.domain.purges import PurgeOutcome
    from holdfast.engine.bundles.exporting import ExportOutcome
    from holdfast.engine.bundles.importing import ImportOutcome
    from holdfast.engine.engine import Engine


class Carrying:
    """Part of `SessionCheckpointer`."""

    _engine: Engine
    _id: SessionId

    def export(self, path: Path, *references: str, replace: bool = False) -> ExportOutcome:
        """Write the whole session, or some checkpoints of it, into one file."""
        from holdfast.engine.bundles.selection import select_checkpoints, select_sessions

        vault = self._engine.vault
        if references:
            chosen = [self._engine.resolve(self._id, reference) for reference in references]
            selection = select_checkpoints(vault, chosen)
        else:
            selection = select_sessions(vault, [self._id])
        return self._engine.export(selection, Path(path), replace=replace)

    @classmethod
    def import_bundle(
        cls,
        workspace: Path,
        path: Path,
        *,
        as_session: str | None = None,
        foreign: bool = False,
        dry_run: bool = False,
    ) -> ImportOutcome:
        """Take in what `export` wrote; `foreign` accepts a file of another workspace."""
        from holdfast.engine.bundles.importing import ImportRequest

        name = None if as_session is None else valid_session_id(as_session)
        request = ImportRequest(Path(path), name, foreign=foreign, dry_run=dry_run)
        with open_workspace(Path(workspace), create=True) as opened:
            return opened.engine.import_bundle(request)

    def purge(self, *references: str, force: bool = False) -> PurgeOutcome:
        """Remove checkpoints for good, with everything that only they need, and prove it."""
        from holdfast.engine.purge.planning import PurgeRequest

        self._engine.finish_purge()
        chosen = tuple(self._engine.resolve(self._id, reference) for reference in references)
        return self._engine.purge(PurgeRequest(checkpoints=chosen, force=force))

    def purge_paths(
        self,
        *paths: str,
        everywhere: bool = False,
        keep_shared: bool = False,
        force: bool = False,
    ) -> PurgeOutcome:
        """Remove paths for good from every checkpoint of the workspace, and prove it."""
        from holdfast.engine.purge.planning import PurgeRequest

        return self._engine.purge(
            PurgeRequest(
                tuple(from_text(path) for path in paths),
                everywhere=everywhere,
                keep_shared=keep_shared,
                force=force,
            )
        )

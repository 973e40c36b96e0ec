"""The checkpoints of a workspace: found, listed, searched, explained and replayed.

Where a session is None, all sessions of the workspace are meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.ids import SessionId
    from holdfast.domain.line_origins import Explanation
    from holdfast.domain.search_hits import SearchResult
    from holdfast.domain.snapshots import WorkspaceSnapshot
    from holdfast.domain.timeline import Timeline
    from holdfast.engine.replay.replay import Replay


class History:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def named(self, session_id: SessionId, name: str) -> Checkpoint | None:
        return self._vault.catalog.checkpoint_named(session_id, name)

    def checkpoints(
        self, session_id: SessionId | None, *, limit: int | None = None, records: bool = False
    ) -> list[Checkpoint]:
        """Newest first; `records` adds the records of restores."""
        return list(self._vault.catalog.history(session_id, limit=limit, records=records))

    def snapshots(self, checkpoints: Iterable[Checkpoint]) -> list[WorkspaceSnapshot]:
        """With their files, whose content is read when asked for."""
        from holdfast.api.snapshots import snapshots_of

        return snapshots_of(self._vault, checkpoints)

    def timeline(
        self, session_id: SessionId, *, limit: int = 100, before: str | None = None
    ) -> Timeline:
        """Every event, newest first, with lanes; `before` is the `next` of the page before."""
        from holdfast.engine.history.timeline import timeline

        return timeline(self._vault, session_id, limit=limit, before=before)

    def search(
        self, query: str, *, session_id: SessionId | None = None, limit: int = 20
    ) -> SearchResult:
        """Moments that match, best first."""
        return self._engine.search(query, session_id=session_id, limit=limit)

    def why(
        self,
        session_id: SessionId | None,
        path: bytes,
        *,
        line: int | None = None,
        reference: str | None = None,
    ) -> Explanation:
        """Which checkpoint wrote each line of a file, or one line, and why; of the file as it is
        now, or as it is in a checkpoint."""
        from holdfast.engine.why.why import why

        return why(self._vault, session_id, path, line=line, reference=reference)

    def replay(self, session_id: SessionId, reference: str | None = None) -> Replay:
        """A walk through a session, from a checkpoint or from its last step. It never touches the
        workspace. Use it as a context."""
        import tempfile

        from holdfast.engine.replay.replay import Replay, last_step

        start = self._engine.resolve(session_id, reference or "HEAD")
        if reference is None:
            start = last_step(self._vault, start)
        return Replay(self._vault, session_id, start, temporary=Path(tempfile.gettempdir()))

"""The checkpoints of a workspace: listing, search, line origins and replay.

A session of None means all sessions of the workspace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.engine.history.history import HistoryFilter as HistoryFilter

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint, Kind
    from holdfast.domain.diff.line_origins import Explanation
    from holdfast.domain.ids import SessionId
    from holdfast.domain.outcomes import DeleteOutcome
    from holdfast.domain.search.hits import SearchResult
    from holdfast.domain.snapshots import WorkspaceSnapshot
    from holdfast.domain.timeline.timeline import Timeline
    from holdfast.engine.replay.replay import Replay as Replay


_DAY_NS = 86_400 * 1_000_000_000


class History:
    """The history of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def named(self, session_id: SessionId, name: str) -> Checkpoint | None:
        return self._vault.catalog.checkpoint_named(session_id, name)

    def delete(self, checkpoint: Checkpoint) -> DeleteOutcome:
        """Delete a checkpoint and the content that only it needs. This cannot be undone."""
        from holdfast.engine.retention.deletion import delete

        return delete(self._engine, checkpoint)

    def checkpoints(
        self,
        session_id: SessionId | None,
        *,
        limit: int | None = None,
        records: bool = False,
        before: int | None = None,
        kinds: tuple[Kind, ...] = (),
    ) -> list[Checkpoint]:
        """Checkpoints, newest first; `records` adds restore records. `before` is the sequence
        number of the previous page's last checkpoint, and cannot be combined with `kinds`."""
        if kinds:
            return self.filtered(HistoryFilter(session_id, records, kinds=kinds), limit)[0]
        catalog = self._vault.catalog
        return list(catalog.history(session_id, limit=limit, records=records, before=before))

    def ancestry(self, checkpoint: Checkpoint) -> Iterator[Checkpoint]:
        """A checkpoint and its ancestors up to the first, without restore records."""
        step: Checkpoint | None = checkpoint
        while step is not None:
            if not step.kind.is_record or step is checkpoint:
                yield step
            parent, session_id = step.parent, checkpoint.session_id
            step = self._vault.catalog.checkpoint(session_id, parent)

    def snapshots(self, checkpoints: Iterable[Checkpoint]) -> list[WorkspaceSnapshot]:
        """Checkpoints with their files, whose content is read on demand."""
        from holdfast.api.contents import snapshots_of

        return snapshots_of(self._vault, checkpoints)

    def filtered(self, wanted: HistoryFilter, limit: int | None) -> tuple[list[Checkpoint], int]:
        """Matching checkpoints, newest first, and how many more there are."""
        from holdfast.engine.history.history import history

        return history(self._vault, wanted, limit)

    def name(
        self,
        checkpoint: Checkpoint,
        *,
        name: str | None = None,
        unname: bool = False,
        tags: Sequence[str] = (),
        untags: Sequence[str] = (),
    ) -> Checkpoint:
        """Add or remove the name and tags of an existing checkpoint."""
        from holdfast.engine.history.annotations import name_checkpoint

        with self._engine.recovered():
            return name_checkpoint(
                self._vault, checkpoint, name=name, unname=unname, tags=tags, untags=untags
            )

    def timeline(
        self,
        session_id: SessionId | None,
        *,
        limit: int = 100,
        before: str | None = None,
        messages: bool = True,
        since_ns: int | None = None,
        days: int | None = None,
    ) -> Timeline:
        """Every event, newest first, with lanes. `before` is the previous page's `next`. `since_ns`
        and the number of days limit how far it goes back."""
        from holdfast.engine.history.timeline import timeline, workspace_timeline

        if days is not None:
            since_ns = self._vault.clock.now_ns() - days * _DAY_NS
        if session_id is None:
            return workspace_timeline(
                self._vault, limit=limit, before=before, messages=messages, since_ns=since_ns
            )
        return timeline(
            self._vault,
            session_id,
            limit=limit,
            before=before,
            messages=messages,
            since_ns=since_ns,
        )

    def search(
        self,
        query: str,
        *,
        session_id: SessionId | None = None,
        limit: int = 20,
        patience_s: float | None = 10.0,
    ) -> SearchResult:
        """Matching checkpoints and messages, best first."""
        from holdfast.engine.search.search import search

        return search(self._vault, query, session_id=session_id, limit=limit, patience_s=patience_s)

    def why(
        self,
        session_id: SessionId | None,
        path: bytes,
        *,
        line: int | None = None,
        reference: str | None = None,
    ) -> Explanation:
        """Which checkpoint wrote each line of a file, or one line, and why. The file is the current
        one or, with a reference, the one in a checkpoint."""
        from holdfast.engine.why.why import why

        return why(self._vault, session_id, path, line=line, reference=reference)

    def replay(
        self, session_id: SessionId, start: Checkpoint, *, from_last_step: bool = False
    ) -> Replay:
        """Replay a session, starting at a checkpoint or at the last step. The workspace is never
        touched. Use it as a context manager."""
        import tempfile

        from holdfast.engine.replay.replay import Replay, last_step

        first = last_step(self._vault, start) if from_last_step else start
        return Replay(self._vault, session_id, first, temporary=Path(tempfile.gettempdir()))

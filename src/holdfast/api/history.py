"""The checkpoints of a workspace: found, listed, searched, explained and replayed.

Where a session is None, all sessions of the workspace are meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint, Skipped
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.diff.line_origins import Explanation
    from holdfast.domain.ids import SessionId
    from holdfast.domain.outcomes import DeleteOutcome
    from holdfast.domain.search.hits import SearchResult
    from holdfast.domain.snapshots import WorkspaceSnapshot
    from holdfast.domain.timeline.timeline import Timeline
    from holdfast.domain.trees.entries import Entry
    from holdfast.engine.replay.replay import Replay


class History:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def named(self, session_id: SessionId, name: str) -> Checkpoint | None:
        return self._vault.catalog.checkpoint_named(session_id, name)

    def entry(self, checkpoint: Checkpoint, path: bytes) -> Entry | None:
        """What a checkpoint has at a path."""
        from holdfast.engine.stored_objects import entry_at

        return entry_at(self._vault.load_tree, checkpoint.tree, path)

    def skipped(self, checkpoint: Checkpoint) -> list[Skipped]:
        """What the checkpoint left out, and why."""
        return self._engine.skipped(checkpoint)

    def delete(self, checkpoint: Checkpoint) -> DeleteOutcome:
        """Delete a checkpoint, and the content that nothing else needs. It cannot be undone."""
        return self._engine.delete(checkpoint.session_id, checkpoint)

    def component_lines(self, checkpoint: Checkpoint) -> dict[str, str]:
        """What each component saved, in words; failed and damaged ones are left out."""
        from holdfast.domain.errors import StoreDamaged
        from holdfast.domain.git.place import git_place
        from holdfast.engine.components.manifests import describe_components, read_states

        try:
            states = {state.name: state for state in read_states(self._vault.objects, checkpoint)}
            described = describe_components(self._vault, checkpoint)
        except StoreDamaged:
            return {}
        lines: dict[str, str] = {}
        for name, line in described:
            if states[name].failure is None:
                lines[name] = f"{lines[name]}; {line}" if name in lines else line
        git = states.get("git")
        if "git" in lines and git is not None and (place := git_place(git, checkpoint)) is not None:
            lines["git"] = place
        return lines

    def git_state(self, checkpoint: Checkpoint) -> ComponentState | None:
        """The state of git in a checkpoint; None without one, and where it is damaged."""
        from holdfast.domain.errors import StoreDamaged
        from holdfast.engine.components.manifests import state_of

        try:
            return state_of(self._vault.objects, checkpoint, "git")
        except StoreDamaged:
            return None

    def newest_with(self, path: bytes) -> Checkpoint | None:
        """The newest checkpoint that has something at this path."""
        from holdfast.engine.history.history import newest_with

        return newest_with(self._vault, path)

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

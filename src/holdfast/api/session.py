"""The library: save and restore one workspace in one session.

>>> from holdfast import SessionCheckpointer
>>> session = SessionCheckpointer(Path("my-project"), "refactor")
>>> before = session.checkpoint("before the refactor")
>>> session.restore(before)
0
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from holdfast.api.session_parts.approving import Approving
from holdfast.api.session_parts.argument_checks import checked
from holdfast.api.session_parts.carrying import Carrying
from holdfast.api.session_parts.conversing import Conversing
from holdfast.api.session_parts.explaining import Explaining
from holdfast.api.session_parts.guarding import Guarding
from holdfast.api.session_parts.handing_over import HandingOver
from holdfast.api.session_parts.snapshots import snapshots_of
from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.changes import ChangeType
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import session_id as valid_session_id
from holdfast.domain.intent import DEFAULT_CONFIDENCE, ToolCall, make_intent
from holdfast.domain.outcomes import RestoreOutcome, SaveOutcome
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.restore_plans import RestorePlan
from holdfast.domain.snapshots import CheckpointSummary, WorkspaceSnapshot
from holdfast.engine.workspace_head import standing_on

if TYPE_CHECKING:
    from holdfast.domain.hunk_choice import NumberedHunk
    from holdfast.domain.search_hits import SearchResult
    from holdfast.domain.timeline import Timeline
    from holdfast.engine.engine import Engine
    from holdfast.engine.replay.replay import Replay
    from holdfast.engine.restore.records import RestoreRequest


@checked
class SessionCheckpointer(Conversing, Guarding, Approving, Carrying, HandingOver, Explaining):
    """Checkpoints of a workspace within one session; safe to share between threads.

    `file_filter` gets the absolute path of each file and returns whether to capture it.
    """

    def __init__(
        self,
        workspace: Path,
        session_id: str,
        file_filter: Callable[[Path], bool] | None = None,
    ) -> None:
        self._id = valid_session_id(session_id)
        self._open = open_workspace(
            Path(workspace), create=True, file_filter=file_filter, purpose=f"session {self._id}"
        )
        self._engine = self._open.engine
        for problem in self._open.setting_problems:
            warnings.warn(f"{problem.finding}: {problem.cure}", stacklevel=2)

    @classmethod
    def load(cls, workspace: Path, session_id: str) -> SessionCheckpointer:
        """Open a session that exists; `NotFound` (a ValueError) when it does not."""
        wanted = valid_session_id(session_id)
        with open_workspace(Path(workspace), create=False) as opened:
            if opened.engine.vault.catalog.session(wanted) is None:
                from holdfast.api.session_parts.elsewhere import unknown_session
                from holdfast.engine.session_overview import listed_sessions

                known = [one.id for one in listed_sessions(opened.engine.vault)]
                raise unknown_session(wanted, known)
        return cls(workspace, session_id)

    @property
    def session_id(self) -> str:
        return self._id

    @property
    def workspace(self) -> Path:
        return self._open.engine.vault.workspace

    @property
    def opened(self) -> OpenWorkspace:
        """The workspace behind the session, for interfaces that need more than the library."""
        return self._open

    def checkpoint(
        self,
        reasoning: str,
        *,
        goal_id: str | None = None,
        task_id: str | None = None,
        tool_calls: Iterable[ToolCall] = (),
        confidence: float = DEFAULT_CONFIDENCE,
        name: str | None = None,
        tags: Iterable[str] = (),
        reuse: bool = False,
    ) -> str:
        """Save the workspace; returns the checkpoint's id once it is durable. With `reuse`, and no
        name, HEAD serves as well if it is less than a minute old and nothing has changed since."""
        return self.save_checkpoint(
            reasoning,
            goal_id=goal_id,
            task_id=task_id,
            tool_calls=tool_calls,
            confidence=confidence,
            name=name,
            tags=tags,
            reuse=reuse,
        ).checkpoint.id

    def save_checkpoint(
        self,
        reasoning: str,
        *,
        goal_id: str | None = None,
        task_id: str | None = None,
        tool_calls: Iterable[ToolCall] = (),
        confidence: float = DEFAULT_CONFIDENCE,
        name: str | None = None,
        tags: Iterable[str] = (),
        reuse: bool = False,
    ) -> SaveOutcome:
        """Like `checkpoint`, with everything there is to say: what was left out, and why, and
        whether it is one that was there (`deduplicated`)."""
        intent = make_intent(
            reasoning,
            goal_id=goal_id,
            task_id=task_id,
            tool_calls=tool_calls,
            confidence=confidence,
            name=name,
            tags=tags,
        )
        return self._engine.save(self._id, intent, reuse=reuse)

    def restore(self, snapshot_id: str | None = None) -> int:
        """Take the workspace back; returns how many files changed on disk.

        Without an argument: to the checkpoint before the one HEAD stands on.
        """
        return self.restore_checkpoint(snapshot_id).files_changed

    def restore_checkpoint(
        self,
        reference: str | None = None,
        paths: Sequence[str | PathLike[str]] | None = None,
        *,
        hunks: Sequence[int | str] | None = None,
        best_effort: bool = False,
        components: Mapping[str, str] | None = None,
    ) -> RestoreOutcome:
        """Like `restore`, for some paths if asked, with everything there is to say about it.

        `hunks` are numbers or names of hunks of the one file in `paths`, as `hunks()` gives them.
        `components` says how state other than files comes back: `{"git": "exact"}`, or "branch",
        "revert", or "files" to leave it alone.
        """
        request = self._restore_request(reference, paths, hunks, best_effort, components)
        return self._engine.restore(request)

    def plan_restore(
        self,
        reference: str | None = None,
        paths: Sequence[str | PathLike[str]] | None = None,
        *,
        hunks: Sequence[int | str] | None = None,
        components: Mapping[str, str] | None = None,
    ) -> RestorePlan:
        """What `restore_checkpoint` would do now, without doing any of it."""
        request = self._restore_request(reference, paths, hunks, False, components)
        return self._engine.plan(request)

    def hunks(self, reference: str, path: str | PathLike[str]) -> list[NumberedHunk]:
        """What differs in a file between a checkpoint and now, in parts that can be restored."""
        from holdfast.engine.restore.chosen_hunks import hunks_of_file

        request = self._engine.restore_request(self._id, reference, paths=_paths([path]))
        scan = self._engine.look((request.target.tree,))
        return list(hunks_of_file(self._engine.vault, scan, request.target, *request.paths))

    def undo(self) -> RestoreOutcome:
        """Take back the last restore: the workspace is exactly what it was before it."""
        return self._engine.restore(lambda: self._engine.undo_request(self._id))

    def redo(self) -> RestoreOutcome:
        """Take back the last undo."""
        return self._engine.restore(lambda: self._engine.redo_request(self._id))

    def search(self, query: str, limit: int = 20, *, everywhere: bool = False) -> SearchResult:
        """Moments of this session that say it, best first; with `everywhere` of all sessions."""
        wanted = None if everywhere else self._id
        return self._engine.search(query, session_id=wanted, limit=limit)

    def set_agent_state(self, agent_id: str, state: Mapping[str, Any] | None) -> None:
        """Let every further checkpoint hold what an agent says about itself; None for no longer."""
        from holdfast.api.session_parts.agent_states import set_agent_state

        set_agent_state(self._open, self._id, agent_id, state)

    def agent_states(self) -> dict[str, dict[str, Any]]:
        """What each agent gave last, or what a restore brought back."""
        from holdfast.api.session_parts.agent_states import agent_states

        return agent_states(self._open, self._id)

    def timeline(self, limit: int = 100, *, before: str | None = None) -> Timeline:
        """Everything that happened, newest first, with lanes; `before` is the page's `next`."""
        from holdfast.engine.timeline import timeline

        return timeline(self._engine.vault, self._id, limit=limit, before=before)

    def diff(self, from_id: str | None = None, to_id: str | None = None) -> dict[str, str]:
        """Changed paths between two checkpoints (default: the first one and HEAD)."""
        old = self._engine.resolve(self._id, from_id or "initial")
        new = self._engine.resolve(self._id, to_id or "HEAD")
        changes = self._engine.changes(old, new, renames=False)
        return {to_text(c.path): ChangeType(c.type).value for c in changes}

    def history(self, limit: int | None = 20, *, records: bool = False) -> list[WorkspaceSnapshot]:
        """Newest first; `records` adds what restores leave behind."""
        found = self._engine.vault.catalog.history(self._id, limit=limit, records=records)
        return snapshots_of(self._engine.vault, found)

    def summaries(
        self, limit: int | None = None, *, records: bool = False
    ) -> list[CheckpointSummary]:
        found = self._engine.vault.catalog.history(self._id, limit=limit, records=records)
        return [CheckpointSummary.of(checkpoint) for checkpoint in found]

    def get(self, reference: str) -> WorkspaceSnapshot:
        return self._snapshot(self._engine.resolve(self._id, reference))

    def get_by_name(self, name: str) -> WorkspaceSnapshot | None:
        found = self._engine.vault.catalog.checkpoint_named(self._id, name)
        return None if found is None else self._snapshot(found)

    @property
    def head(self) -> str | None:
        """The id of the newest state in this session's line, or None before the first."""
        session = self._engine.vault.catalog.session(self._id)
        return session.head if session else None

    @property
    def standing_on(self) -> str | None:
        """The checkpoint that HEAD stands for, with the records of restores looked through."""
        found = standing_on(self._engine.vault, self._id)
        return found.id if found else None

    @property
    def checkpoint_count(self) -> int:
        return self._engine.vault.catalog.counts(self._id).checkpoints

    @property
    def stats(self) -> dict[str, int]:
        return self._engine.statistics(self._id)

    def save(self) -> Path:
        """Nothing to flush: a checkpoint is durable when it is returned. The store's directory."""
        return self._open.store.directory

    def archive(self) -> Path | None:
        """Close the session; it stays listable and restorable. None when it has no checkpoint."""
        return self._open.store.directory if self._engine.archive(self._id) else None

    def delete_session(self) -> int:
        """Remove the session with everything that only it has; how many checkpoints that were.
        It cannot be undone. The workspace stays as it is, and the id can be used again."""
        from holdfast.api.session_parts.agent_states import forget_agent_states

        forget_agent_states(self._open, self._id)
        return self._engine.delete_session(self._id).checkpoints

    def replay(self, reference: str | None = None) -> Replay:
        """A walk through the session, which never touches the workspace. It begins at a checkpoint
        or, without one, at the last step. Use it as a context."""
        import tempfile

        from holdfast.engine.replay.replay import Replay, last_step

        start = self._engine.resolve(self._id, reference or "HEAD")
        place = Path(tempfile.gettempdir())
        vault = self._engine.vault
        if reference is None:
            start = last_step(vault, start)
        return Replay(vault, self._id, start, temporary=place)

    def close(self) -> None:
        """Let go of the store. A second time does nothing; anything else is refused from now on."""
        from holdfast.api.session_parts.closed import ClosedEngine

        self._open.close()
        self._engine = cast("Engine", ClosedEngine(self._id))

    def __enter__(self) -> SessionCheckpointer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _restore_request(
        self,
        reference: str | None,
        paths: Sequence[str | PathLike[str]] | None,
        hunks: Sequence[int | str] | None,
        best_effort: bool,
        components: Mapping[str, str] | None,
    ) -> RestoreRequest:
        from holdfast.engine.components.choosing import ComponentChoice

        if paths is not None and not paths and hunks is None:
            raise UsageError("paths is empty", hint="leave it out to restore everything")
        request = self._engine.restore_request(
            self._id,
            reference,
            paths=_paths(paths),
            best_effort=best_effort,
            components=ComponentChoice(components or {}),
        )
        if hunks is None:
            return request
        from holdfast.engine.restore.chosen_hunks import choose_hunks

        scan = self._engine.look((request.target.tree,))
        return choose_hunks(self._engine.vault, scan, request, hunks)

    def _snapshot(self, checkpoint: Checkpoint) -> WorkspaceSnapshot:
        return snapshots_of(self._engine.vault, [checkpoint])[0]


def _paths(paths: Sequence[str | PathLike[str]] | None) -> list[bytes]:
    return [from_text(fspath(path)) for path in paths or ()]


def start_session(
    workspace: Path,
    session_id: str | None = None,
    *,
    title: str | None = None,
    agent: str | None = None,
    file_filter: Callable[[Path], bool] | None = None,
) -> SessionCheckpointer:
    """Begin a session with a checkpoint of how things are, or resume one that was cut off."""
    return SessionCheckpointer.start(
        workspace, session_id, title=title, agent=agent, file_filter=file_filter
    )

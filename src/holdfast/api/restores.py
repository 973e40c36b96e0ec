"""Restores of a workspace: requests, plans, execution, undo and redo.

    a request, or the step that undo reverts → a plan, for the preview → the restore

A request is checked again when it runs. A plan shows what a restore would do now. The restore plans
again before it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.diff.hunk_choice import NumberedHunk
    from holdfast.domain.git.drift import PresentGit
    from holdfast.domain.ids import CheckpointId, SessionId
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.domain.restore.plan import Missing, RestorePlan, Step
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.components.database_rows import ChangedRows as ChangedRows
    from holdfast.engine.engine import Engine
    from holdfast.engine.restore.change_authors import LastChange as LastChange
    from holdfast.engine.restore.records import RestoreRequest as RestoreRequest
    from holdfast.engine.scan.scanner import Scan
    from holdfast.engine.undo.causes import Loss as Loss
    from holdfast.engine.undo.undo import UndoStep as UndoStep


class Restores:
    """Restores in an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def request(
        self,
        scope: SessionId | None,
        reference: str | None,
        *,
        paths: Sequence[bytes] = (),
        best_effort: bool = False,
        components: Mapping[str, str] | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> RestoreRequest:
        """A request to restore a checkpoint, or some of its paths. `components` sets how state
        other than files is restored. `include` and `exclude` change which components take part."""
        from holdfast.engine.components.selection import ComponentChoice

        return self._engine.restore_request(
            scope,
            reference,
            paths=paths,
            best_effort=best_effort,
            components=ComponentChoice(components or {}, include, exclude),
        )

    def undo_request(
        self, session_id: SessionId, elsewhere: Collection[CheckpointId] = ()
    ) -> RestoreRequest:
        """The restore that undoes the last restore of a session. `elsewhere` are records of its
        restores that are in other sessions."""
        from holdfast.engine.undo.undo import undo_request

        return undo_request(self._vault, session_id, elsewhere)

    def redo_request(
        self, session_id: SessionId, elsewhere: Collection[CheckpointId] = ()
    ) -> RestoreRequest:
        """The restore that undoes the last undo of a session. `elsewhere` are records of its
        restores that are in other sessions."""
        from holdfast.engine.undo.undo import redo_request

        return redo_request(self._vault, session_id, elsewhere)

    def last_step(self, *, turn: bool = False) -> UndoStep:
        """The last change to the workspace, no matter who made it; with `turn`, everything since
        the last message to an agent. Raises `NothingToUndo` if there is none."""
        return self._engine.last_step(turn=turn)

    def next_step(self) -> UndoStep:
        """The state that a redo would restore in the whole workspace."""
        from holdfast.engine.undo.undo import next_step

        return next_step(self._vault)

    def last_loss(self) -> Loss | None:
        """Files that the last tool calls deleted and no checkpoint has, if nothing else changed."""
        return self._engine.last_loss()

    def undone_words(self, step: UndoStep) -> str:
        """A description of the step, such as `the Bash call "rm -rf src" by AGENT`."""
        from holdfast.engine.undo.causes import undone_words

        return undone_words(self._vault, step)

    def loss_words(self, loss: Loss) -> str:
        from holdfast.engine.undo.causes import loss_words

        return loss_words(self._vault, loss)

    def include_command(self, missing: Sequence[Missing]) -> str | None:
        """The command that saves such files from now on; None if no setting does."""
        from holdfast.domain.ignore.includes import include_command

        paths = [gone.path for gone in missing if gone.can_be_included]
        return include_command(paths) if paths else None

    def plan(self, request: RestoreRequest) -> RestorePlan:
        """What a restore would do now; nothing is written."""
        return self._engine.plan(request)

    def last_changes(self, request: RestoreRequest, plan: RestorePlan) -> list[LastChange]:
        """Who changed each file of a plan last, according to checkpoints since its target."""
        from holdfast.engine.restore.change_authors import last_changes

        return last_changes(self._vault, plan, request.target)

    def changed_rows(self, plan: RestorePlan) -> list[ChangedRows]:
        """Row counts, now and at the checkpoint, of the SQLite databases that a plan rewrites."""
        from holdfast.domain.errors import Refused
        from holdfast.domain.sqlite_files import SUFFIXES

        if not any(step.path.endswith(SUFFIXES) for step in plan.steps):
            return []
        from holdfast.engine.components.database_rows import changed_rows

        try:
            return list(changed_rows(plan, self.step_contents))
        except Refused:  # an ignored file: its content is not shown
            return []

    def step_contents(self, step: Step) -> tuple[bytes | None, bytes | None]:
        """The content that a plan's step would write, and the current content; None if there is
        none. Raises `Refused` for an ignored file."""
        from holdfast.domain.trees.changes import Change, ChangeType
        from holdfast.engine.compare.changed_content import contents_of
        from holdfast.engine.compare.tree_diff import IgnoredContent

        IgnoredContent(self._vault).require_shown(step.path)
        change = Change(step.path, ChangeType.MODIFIED, step.after, step.before)
        then, now = contents_of(self._vault, change, new_in_workspace=True)
        return (
            None if then is None else b"".join(then.chunks()),
            None if now is None else b"".join(now.chunks()),
        )

    def working_agents(self, request: RestoreRequest) -> tuple[str, ...]:
        """Warnings about agents in the middle of a tool call on the files of a restore."""
        from holdfast.engine.edits.open_activities import working_tools
        from holdfast.engine.restore.preview import working_warnings
        from holdfast.engine.stored_objects import loader_for

        if not working_tools(self._vault):
            return ()
        affected = list(self._engine.plan(request).affected_files)
        if not affected:
            return ()
        scan = self._engine.scan()
        return tuple(working_warnings(self._vault, loader_for(self._vault, scan), scan, affected))

    def restore(self, request: RestoreRequest | Callable[[], RestoreRequest]) -> RestoreOutcome:
        """Carry out a request, or the one that is found once the store is locked."""
        return self._engine.restore(request)

    def look(self, target: Checkpoint | None = None) -> PresentState:
        """Scan the current workspace, to compare it with checkpoints such as this target."""
        return PresentState(
            self._engine, self._engine.scan(() if target is None else (target.tree,))
        )

    def generated_reason(self) -> str:
        """A reason for a new checkpoint, generated from the changes since the last one."""
        from holdfast.domain.ids import short
        from holdfast.domain.trees.changes import describe_changes
        from holdfast.engine.history.history import head_checkpoint

        head = head_checkpoint(self._vault, None)
        if head is None:
            return "First checkpoint"
        changed = describe_changes(self.look().changes(head))
        return changed or f"No changes since {short(head.id)}"

    def newest_operation_ns(self) -> int:
        """The time of the newest entry in the operation log; 0 in a new store."""
        newest = self._vault.catalog.newest_operation()
        return 0 if newest is None else newest.at_ns

    def git_now(self, restored: RestoreOutcome | None = None) -> PresentGit | None:
        """The current git position. Directly after a restore, it comes from the safety
        checkpoint."""
        from holdfast.engine.components.git_drift import present_git

        return present_git(self._vault, restored=restored)

    def other_git_references(
        self, request: RestoreRequest, outcome: RestoreOutcome | None = None
    ) -> list[str]:
        """Branches, tags and stash entries that a restore does not bring back. After the restore,
        the safety checkpoint has git's state, so git does not run again."""
        if request.paths or request.target.components is None or "git" in dict(request.components):
            return []
        from holdfast.engine.components.manifests import read_states
        from holdfast.engine.components.restore import plan_components

        present = None
        if outcome is not None and outcome.recorded:
            safety = self._vault.catalog.checkpoint(request.session_id, outcome.safety)
            present = read_states(self._vault.objects, safety) if safety is not None else None
        steps = plan_components(self._vault, request.target, (("git", "refs:"),), present)
        return [line for step in steps for _, line in step.choices]


class PresentState:
    """One scan of the workspace."""

    def __init__(self, engine: Engine, scan: Scan) -> None:
        self._engine, self._scan = engine, scan

    def is_state_of(self, checkpoint: Checkpoint) -> bool:
        """Whether nothing differs at all; False even if only ignore rules differ."""
        return checkpoint.tree == self._scan.tree

    def affected_files(self, checkpoint: Checkpoint) -> frozenset[bytes]:
        """The files that restoring the checkpoint would change."""
        from holdfast.engine.restore.plan import make_plan

        request = self._engine.restore_request(None, checkpoint.id)
        return frozenset(make_plan(self._engine.vault, self._scan, request).affected_files)

    def changes(self, since: Checkpoint) -> list[Change]:
        return self._engine.changes_in(self._scan, since, renames=False)

    def hunks(
        self, target: Checkpoint, path: bytes, *, context: int = DEFAULT_CONTEXT
    ) -> Iterator[NumberedHunk]:
        """The differences in a text file, as hunks that can be restored."""
        from holdfast.engine.restore.hunks import hunks_of_file

        return hunks_of_file(self._engine.vault, self._scan, target, path, context=context)

    def choose_hunks(
        self,
        request: RestoreRequest,
        wanted: Sequence[int | str],
        *,
        context: int = DEFAULT_CONTEXT,
    ) -> RestoreRequest:
        """The request, limited to these hunks of its one file."""
        from holdfast.engine.restore.hunks import choose_hunks

        return choose_hunks(self._engine.vault, self._scan, request, wanted, context=context)

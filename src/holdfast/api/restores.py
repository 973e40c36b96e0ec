"""Restores of a workspace: requested, previewed, carried out, undone and redone.

    request, or the step that undo takes → plan, to show it → restore

A request is checked again when its turn comes. A plan shows what a restore would do at the moment
of the look; the restore looks again before it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.domain.diff.hunk_choice import DEFAULT_CONTEXT

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.diff.hunk_choice import NumberedHunk
    from holdfast.domain.git.drift import PresentGit
    from holdfast.domain.ids import SessionId
    from holdfast.domain.outcomes import RestoreOutcome
    from holdfast.domain.restore.plan import Missing, RestorePlan, Step
    from holdfast.domain.trees.changes import Change
    from holdfast.engine.components.database_rows import ChangedRows as ChangedRows
    from holdfast.engine.engine import Engine
    from holdfast.engine.restore.last_changes import LastChange as LastChange
    from holdfast.engine.restore.records import RestoreRequest as RestoreRequest
    from holdfast.engine.scan.scanner import Scan
    from holdfast.engine.undo.causes import Loss as Loss
    from holdfast.engine.undo.undo import UndoStep as UndoStep


class Restores:
    """Topic of an open workspace."""

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
        """A restore of a checkpoint, or of some paths of it. `components` says how state other
        than files comes back; `include` and `exclude`, which does besides the usual."""
        from holdfast.engine.components.selection import ComponentChoice

        return self._engine.restore_request(
            scope,
            reference,
            paths=paths,
            best_effort=best_effort,
            components=ComponentChoice(components or {}, include, exclude),
        )

    def undo_request(self, session_id: SessionId) -> RestoreRequest:
        """The restore that undoes the last restore of a session."""
        from holdfast.engine.undo.undo import undo_request

        return undo_request(self._vault, session_id)

    def redo_request(self, session_id: SessionId) -> RestoreRequest:
        """The restore that undoes the last undo of a session."""
        from holdfast.engine.undo.undo import redo_request

        return redo_request(self._vault, session_id)

    def last_step(self, *, turn: bool = False) -> UndoStep:
        """The last change to the workspace, no matter who made it; with `turn`, everything since
        the last message to an agent. `NothingToUndo` where there is none."""
        return self._engine.last_step(turn=turn)

    def next_step(self) -> UndoStep:
        """What a redo of the whole workspace brings back."""
        from holdfast.engine.undo.undo import next_step

        return next_step(self._vault)

    def last_loss(self) -> Loss | None:
        """Files that the last tool calls deleted and no checkpoint has, if nothing else changed."""
        return self._engine.last_loss()

    def undone_words(self, step: UndoStep) -> str:
        """What the step undoes: `the Bash call "rm -rf src" by AGENT`."""
        from holdfast.engine.undo.causes import undone_words

        return undone_words(self._vault, step)

    def loss_words(self, loss: Loss) -> str:
        from holdfast.engine.undo.causes import loss_words

        return loss_words(self._vault, loss)

    def include_command(self, missing: Sequence[Missing]) -> str | None:
        """The command that has such files saved from now on; None where no setting does."""
        from holdfast.domain.ignore.includes import include_command

        paths = [gone.path for gone in missing if gone.can_be_included]
        return include_command(paths) if paths else None

    def plan(self, request: RestoreRequest) -> RestorePlan:
        """What a restore would do now; nothing is written."""
        return self._engine.plan(request)

    def last_changes(self, request: RestoreRequest, plan: RestorePlan) -> list[LastChange]:
        """Who changed each file of a plan last, as far as checkpoints since its target tell."""
        from holdfast.engine.restore.last_changes import last_changes

        return last_changes(self._vault, plan, request.target)

    def changed_rows(self, plan: RestorePlan) -> list[ChangedRows]:
        """Rows of the SQLite databases that a plan rewrites, now and then."""
        from holdfast.domain.errors import Refused
        from holdfast.engine.components.database_rows import changed_rows

        try:
            return list(changed_rows(plan, self.step_contents))
        except Refused:  # an ignored file: its content is not shown
            return []

    def step_contents(self, step: Step) -> tuple[bytes | None, bytes | None]:
        """The content that a step of a plan would bring about, and the present one; None where
        there is none. `Refused` for an ignored file."""
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
        return self._engine.working_agents(request)

    def restore(self, request: RestoreRequest | Callable[[], RestoreRequest]) -> RestoreOutcome:
        """Carry a request out, or the one found when the store's lock is held."""
        return self._engine.restore(request)

    def look(self, target: Checkpoint | None = None) -> PresentState:
        """The workspace as it is now, to compare with checkpoints, such as this target."""
        return PresentState(
            self._engine, self._engine.scan(() if target is None else (target.tree,))
        )

    def generated_reason(self) -> str:
        """A reason for a checkpoint that is made now, from what changed since the last one."""
        from holdfast.domain.ids import short
        from holdfast.domain.trees.changes import describe_changes
        from holdfast.engine.history.history import head_checkpoint

        head = head_checkpoint(self._vault, None)
        if head is None:
            return "First checkpoint"
        changed = describe_changes(self.look().changes(head))
        return changed or f"No changes since {short(head.id)}"

    def newest_operation_ns(self) -> int:
        """When the newest entry of the operation log was made; 0 in a new store."""
        newest = self._vault.catalog.newest_operation()
        return 0 if newest is None else newest.at_ns

    def git_now(self, restored: RestoreOutcome | None = None) -> PresentGit | None:
        """Where git is; directly after a restore, its safety checkpoint saves a look."""
        from holdfast.engine.components.git_drift import present_git

        return present_git(self._vault, restored=restored)

    def other_git_references(
        self, request: RestoreRequest, outcome: RestoreOutcome | None = None
    ) -> list[str]:
        """Branches, tags and stash entries that a restore leaves deleted or moved. After the
        restore, its safety checkpoint says how git is: git is not run again."""
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
    """One look at the workspace."""

    def __init__(self, engine: Engine, scan: Scan) -> None:
        self._engine, self._scan = engine, scan

    def is_state_of(self, checkpoint: Checkpoint) -> bool:
        """Whether nothing differs at all; False also where only ignore rules do."""
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
        """What differs in a text file, in parts that can be restored."""
        from holdfast.engine.restore.hunks import hunks_of_file

        return hunks_of_file(self._engine.vault, self._scan, target, path, context=context)

    def choose_hunks(
        self,
        request: RestoreRequest,
        wanted: Sequence[int | str],
        *,
        context: int = DEFAULT_CONTEXT,
    ) -> RestoreRequest:
        """The request for these hunks of its one file only."""
        from holdfast.engine.restore.hunks import choose_hunks

        return choose_hunks(self._engine.vault, self._scan, request, wanted, context=context)

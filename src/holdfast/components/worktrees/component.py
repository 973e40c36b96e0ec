"""The worktrees component: the repository's other worktrees in a checkpoint.

Modules that a save does not need are imported on first use: few repositories have other worktrees.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.components.git.repository import find_repository, require_repository
from holdfast.domain.component_states import EXACT, ComponentState
from holdfast.domain.paths import to_text
from holdfast.domain.wording import Remark, printable
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    RestoreOf,
)

if TYPE_CHECKING:
    from holdfast.components.worktrees.restore import WorktreesRestore

NAME = "worktrees"
GONE_ONLY = "gone"
_ORDER = 20
_SHOWN = 5


class WorktreesComponent:
    """Linked worktrees besides the workspace's own. Path and HEAD of each are always saved. The
    setting `files` says when their uncommitted files are: `always`, `never`, or with manual
    checkpoints and those before something risky (`manual`).

    By default a restore recreates missing worktrees and leaves the others alone."""

    name = NAME
    order = _ORDER
    outside = False
    restored_by_default = True
    default_mode = GONE_ONLY
    modes = (EXACT, GONE_ONLY)

    def __init__(self, environment: Mapping[str, str], *, files: str) -> None:
        self._environment = environment
        self._files = files

    def applies(self, workspace: Path) -> bool:
        repository = find_repository(workspace)
        return repository is not None and os.path.isdir(repository.shared(b"worktrees"))

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        from holdfast.components.worktrees.capture import WorktreesCapture

        repository = require_repository(request.workspace)
        with_files = self._files == "always" or (self._files == "manual" and request.thorough)
        if request.intended is not None and request.intended.mode == GONE_ONLY:
            with_files = False  # existing ones are left alone
        return WorktreesCapture(repository, request, self._environment, with_files=with_files).run(
            sink
        )

    def describe(self, state: ComponentState) -> Sequence[str]:
        rows: list[dict[str, Any]] = list(state.facts["worktrees"])
        lines = [_described(row) for row in rows[:_SHOWN]]
        if len(rows) > _SHOWN:
            lines.append(f"and {len(rows) - _SHOWN:,} more")
        return lines or ["no other worktree"]

    def plan(self, request: RestoreOf) -> ComponentPreview:
        restore = self._restorer(request)
        steps = restore.steps()
        bare = _not_captured(request.target) if steps.make or steps.rebuild else []
        left = [
            Remark(
                f"the worktree {printable(to_text(path))[:300]} has changed since and is not "
                "restored; to restore its files: --with worktrees"
            )
            for path in restore.changed_but_kept()
        ]
        warnings = (*steps.warnings, *bare, *left)
        return ComponentPreview(tuple(steps.actions()), warnings, tuple(steps.blocked))

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        return ()

    def restore(self, request: RestoreOf) -> None:
        from holdfast.components.git.references import BrokenReference

        try:
            self._restorer(request).run()
        except (BrokenReference, OSError) as error:
            raise ComponentProblem(f"cannot change worktrees: {error}") from error

    def verify(self, request: RestoreOf) -> Sequence[str]:
        return list(self._restorer(request).differences())

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        from holdfast.components.git.commands import Git
        from holdfast.components.git.keep_alive import drop, owned_references
        from holdfast.components.worktrees.capture import owner_of
        from holdfast.domain.paths import from_text

        repository = find_repository(workspace)
        if repository is None or not (kept := owned_references(repository, owner_of(owner))):
            return
        wanted = {from_text(state.notes["ref"]) for state in needed if "ref" in state.notes}
        gone = [ref for ref in kept if ref not in wanted]
        if gone:
            drop(Git(repository, self._environment, 30.0), gone)

    def _restorer(self, request: RestoreOf) -> WorktreesRestore:
        from holdfast.components.worktrees.restore import WorktreesRestore

        return WorktreesRestore(require_repository(request.workspace), request, self._environment)


def _not_captured(state: ComponentState) -> list[str]:
    """The worktrees whose uncommitted files are not in a checkpoint."""
    rows: list[dict[str, Any]] = list(state.facts["worktrees"])
    bare = ", ".join(str(row["path"]) for row in rows if not row["files"])
    return [f"uncommitted files were not saved for {printable(bare)[:300]}"] if bare else []


def _described(row: Mapping[str, Any]) -> str:
    ref, commit = row["ref"], row["commit"]
    where = f"on {ref.removeprefix('refs/heads/')}" if ref is not None else "detached"
    position = "no commit yet" if commit is None else f"at {commit[:10]}"
    files = ", with its files" if row["files"] else ""
    return printable(f"{row['path']}: {where} {position}{files}")

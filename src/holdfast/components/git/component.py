"""The git component: what a checkpoint knows of the repository, and how it comes back.

What a save does not need is imported by what does: hardly any save finds that git has changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.components.git.finding import Repository, find_repository
from holdfast.domain.component_states import EXACT, ComponentState
from holdfast.domain.paths import from_text
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    RestoreOf,
)

if TYPE_CHECKING:
    from holdfast.components.git.commands import Git

NAME = "git"
_ORDER = 10


class GitComponent:
    """The repository that the workspace belongs to. `environment` is where git and the user's
    settings are found; `timeout_s` how long one command may take when nobody says."""

    name = NAME
    order = _ORDER
    restored_by_default = False
    modes = (EXACT, "branch", "revert")

    def __init__(self, environment: Mapping[str, str], *, timeout_s: float = 30.0) -> None:
        self._environment = environment
        self._timeout_s = timeout_s

    def applies(self, workspace: Path) -> bool:
        return find_repository(workspace) is not None

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        repository = _required(request.workspace)
        if request.previous is not None and request.intended is None:
            from holdfast.components.git.looking import is_as_before

            if is_as_before(repository, request.previous, now_ns=request.now_ns):
                return None
        from holdfast.components.git.capturing import Capturing

        return Capturing(repository, request, self._environment, request.timeout_s).run(sink)

    def describe(self, state: ComponentState) -> Sequence[str]:
        from holdfast.components.git.describing import describe

        return list(describe(state))

    def plan(self, request: RestoreOf) -> ComponentPreview:
        from holdfast.components.git.planning import describe, make_plan, other_differences
        from holdfast.components.git.references import BrokenReference
        from holdfast.components.git.restoring import present_look
        from holdfast.components.git.states import decode_state

        git = self._git(request)
        target = decode_state(request.target)
        try:
            present = present_look(git, request)
            plan = make_plan(git, present, target, request.mode, request.label)
            if plan.blocked:
                return ComponentPreview(blocked=tuple(plan.blocked))
            actions = describe(git, present, target, plan)
            actions += other_differences(present, request, plan, actions)
        except BrokenReference as error:
            return ComponentPreview(blocked=(f"the repository is damaged: {error}",))
        warnings = []
        if target.operation is not None and not plan.put_operation:
            warnings.append(
                f"a {target.operation} was under way then; only --git exact takes it up again"
            )
        return ComponentPreview(tuple(actions), tuple(warnings))

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        from holdfast.components.git.commands import Git
        from holdfast.components.git.index_file import UnknownIndex
        from holdfast.components.git.references import BrokenReference
        from holdfast.components.git.uncommitted import uncommitted

        git = Git(_required(workspace), self._environment, timeout_s)
        try:
            return uncommitted(git, os.fsencode(workspace), paths)
        except (BrokenReference, ComponentProblem, UnknownIndex):
            return ()  # a broken repository is told about where it matters

    def restore(self, request: RestoreOf) -> None:
        from holdfast.components.git.references import BrokenReference
        from holdfast.components.git.restoring import restore

        try:
            restore(self._git(request), request)
        except (BrokenReference, OSError, ValueError) as error:
            raise ComponentProblem(f"the repository could not be changed: {error}") from error

    def verify(self, request: RestoreOf) -> Sequence[str]:
        from holdfast.components.git.restoring import verify

        return verify(self._git(request), request)

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        from holdfast.components.git import keeping
        from holdfast.components.git.commands import Git

        repository = find_repository(workspace)
        if repository is None:
            return
        kept = keeping.owned_references(repository, owner)
        if not kept:
            return
        wanted = {from_text(state.notes["ref"]) for state in needed if "ref" in state.notes}
        gone = [ref for ref in kept if ref not in wanted]
        if gone:
            keeping.drop(Git(repository, self._environment, self._timeout_s), gone)

    def _git(self, request: RestoreOf) -> Git:
        from holdfast.components.git.commands import Git

        return Git(_required(request.workspace), self._environment, request.timeout_s)


def _required(workspace: Path) -> Repository:
    repository = find_repository(workspace)
    if repository is None:
        raise ComponentProblem("the workspace is in no git repository any more")
    return repository

"""The git component: what a checkpoint saves of the repository, and how it is restored.

Modules that a save does not need are imported on first use, because git rarely changes between
saves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.components.git.repository import find_repository, require_repository
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
    from holdfast.components.git.nested_restore import NestedRestore
    from holdfast.domain.git.drift import GitDrift, PresentGit
    from holdfast.domain.purges import Holder, Purged
    from holdfast.ports.store import NestedRepositories

NAME, NESTED = "git", "nested"
HEADS = b"refs/heads/"
_ORDER = 10
_RELEASE_TIMEOUT_S = 30.0


class GitComponent:
    """The repository that the workspace belongs to. `environment` has PATH and the user's git
    settings."""

    name = NAME
    order = _ORDER
    outside = False
    restored_by_default = False
    also_searches = ("worktrees",)
    """Commits of linked worktrees are in this repository."""
    modes = (EXACT, "branch", "revert", "refs")

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        noted: NestedRepositories | None = None,
        with_nested: bool = False,
        mirror: str = "",
    ) -> None:
        """`noted` records the nested repositories in which commits are kept alive; `with_nested`
        says to save nested ones, even in a workspace without git. `mirror` is the branch that
        Holdfast itself writes, if any."""
        self._ours = frozenset([HEADS + mirror.encode()] if mirror else [])
        self._environment = environment
        self._noted = noted
        self._with_nested = with_nested

    def applies(self, workspace: Path) -> bool:
        return self._with_nested or find_repository(workspace) is not None

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        if self._has_nested(request):
            from holdfast.components.git.nested_capture import NestedCapture

            return NestedCapture(request, self._environment, self._noted, self._ours).run(sink)
        repository = require_repository(request.workspace, ours=self._ours)
        if request.previous is not None and request.intended is None:
            from holdfast.components.git.status import is_unchanged

            if is_unchanged(repository, request.previous, now_ns=request.now_ns):
                changed = request.changed()
                if changed is not None and not changed:
                    return None
                from holdfast.components.git.dirty_files import with_current_dirty_files

                return with_current_dirty_files(
                    repository, request, request.previous, changed, sink
                )
        from holdfast.components.git.capture import RepositoryCapture

        return RepositoryCapture(repository, request, self._environment, request.timeout_s).run(
            sink
        )

    def describe(self, state: ComponentState) -> Sequence[str]:
        from holdfast.components.git.states import describe

        return list(describe(state))

    def plan(self, request: RestoreOf) -> ComponentPreview:
        from holdfast.components.git.restore import preview

        own = ComponentPreview()
        if has_own(request.target):
            own = preview(self._git(request), request)
        if NESTED not in request.target.facts:
            return own
        nested = self._nested(request).plan()
        return ComponentPreview(
            (*own.actions, *nested.actions),
            (*own.warnings, *nested.warnings),
            (*own.blocked, *nested.blocked),
        )

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        from holdfast.components.git.drift import uncommitted
        from holdfast.components.git.references import BrokenReference
        from holdfast.domain.git.index import UnknownIndex

        git = self._find_git(workspace, timeout_s)
        if git is None:
            return ()
        try:
            return uncommitted(git, os.fsencode(workspace), paths)
        except (BrokenReference, ComponentProblem, UnknownIndex):
            return ()  # a broken repository is reported where it matters

    def holders(self, workspace: Path, purged: Purged, *, timeout_s: float) -> Sequence[Holder]:
        from holdfast.components.git.content_holders import holders_in

        git = self._find_git(workspace, timeout_s)
        return () if git is None else holders_in(git, os.fsencode(workspace), purged)

    def drift(
        self,
        workspace: Path,
        state: ComponentState,
        after: Mapping[bytes, Callable[[], bytes | None]],
        *,
        timeout_s: float,
    ) -> GitDrift | None:
        from holdfast.components.git.drift import drift
        from holdfast.components.git.references import BrokenReference

        git = self._find_git(workspace, timeout_s)
        if git is None or not has_own(state):
            return None
        try:
            return drift(git, os.fsencode(workspace), state, after)
        except BrokenReference:
            return None  # a broken repository is reported where it matters

    def place(self, request: CaptureRequest) -> PresentGit | None:
        from holdfast.components.git.drift import present
        from holdfast.components.git.references import BrokenReference

        repository = find_repository(request.workspace, ours=self._ours)
        if repository is None:
            return None
        try:
            return present(repository, self._environment, request)
        except BrokenReference:
            return None  # a broken repository is reported where it matters

    def restore(self, request: RestoreOf) -> None:
        from holdfast.components.git.references import BrokenReference
        from holdfast.components.git.restore import restore

        try:
            if has_own(request.target):
                restore(self._git(request), request)
            if NESTED in request.target.facts:
                self._nested(request).restore()
        except (BrokenReference, OSError, ValueError) as error:
            raise ComponentProblem(f"cannot change the repository: {error}") from error

    def verify(self, request: RestoreOf) -> Sequence[str]:
        from holdfast.components.git.restore import verify

        wrong = verify(self._git(request), request) if has_own(request.target) else []
        if NESTED in request.target.facts:
            wrong += self._nested(request).verify()
        return wrong

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        from holdfast.components.git.commands import Git
        from holdfast.components.git.keep_alive import drop, owned_references, remove_own_locks
        from holdfast.components.git.nested_repositories import (
            drop_nested,
            kept_in_nested,
            owned_in_nested,
        )

        repository = find_repository(workspace)
        kept: list[bytes] = []
        if repository is not None:
            remove_own_locks(repository, owner)
            kept = owned_references(repository, owner)
        nested: dict[str, list[bytes]] = {}
        if self._noted is not None:
            nested = owned_in_nested(workspace, self._noted, self._environment, owner)
        if not kept and not nested:
            return
        wanted: set[bytes] = set()
        wanted_in_nested: set[tuple[str, bytes]] = set()
        for state in needed:
            if "ref" in state.notes:
                wanted.add(from_text(state.notes["ref"]))
            wanted_in_nested.update(kept_in_nested(state))
        gone = [ref for ref in kept if ref not in wanted]
        if repository is not None and gone:
            drop(Git(repository, self._environment, _RELEASE_TIMEOUT_S), gone)
        drop_nested(nested, wanted_in_nested, workspace, self._environment, _RELEASE_TIMEOUT_S)

    def _has_nested(self, request: CaptureRequest) -> bool:
        """Whether there may be nested repositories, or only those."""
        states = (request.previous, None if request.intended is None else request.intended.state)
        if request.repositories or any(s is not None and NESTED in s.facts for s in states):
            return True
        return self._with_nested and find_repository(request.workspace) is None

    def _nested(self, request: RestoreOf) -> NestedRestore:
        from holdfast.components.git.nested_restore import NestedRestore

        return NestedRestore(request, self._environment)

    def _find_git(self, workspace: Path, timeout_s: float) -> Git | None:
        from holdfast.components.git.commands import Git

        repository = find_repository(workspace, ours=self._ours)
        return None if repository is None else Git(repository, self._environment, timeout_s)

    def _git(self, request: RestoreOf) -> Git:
        from holdfast.components.git.commands import Git

        repository = require_repository(request.workspace, ours=self._ours)
        return Git(repository, self._environment, request.timeout_s)


def has_own(state: ComponentState) -> bool:
    """Whether the workspace was in a repository; a state without one has only nested ones."""
    return NESTED not in state.facts or "head" in state.facts

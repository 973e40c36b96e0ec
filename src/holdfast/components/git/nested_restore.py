"""Restores repositories inside the workspace, each independently.

    exact   HEAD, branch, index and operation of each as they were; a submodule's missing `.git`
            file is recreated
    others  they are left alone, and differences are reported

Guarantees: a repository that is gone with its commits is reported and skipped. One that cannot be
restored fails the whole restore. A repository that did not exist then is left alone. All steps can
be repeated.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from holdfast.components.git.durability import sync_changed
from holdfast.components.git.nested_repositories import (
    Nested,
    NestedRow,
    NestedSource,
    NotCaptured,
    Places,
    link_text,
    read_link,
    rows_of,
)
from holdfast.components.git.repository import find_repository, write_new
from holdfast.components.git.restore import preview, restore, verify
from holdfast.components.git.states import way_of
from holdfast.domain.component_states import EXACT
from holdfast.domain.paths import to_text
from holdfast.ports.component import ComponentPreview, ComponentProblem, RestoreOf

_LINK_MODE = 0o644


@dataclass(frozen=True, slots=True)
class _Step:
    """An existing repository, and its wanted state."""

    row: NestedRow
    nested: Nested

    @property
    def shown(self) -> str:
        return to_text(self.row.path)


class NestedRestore:
    """The nested part of one restore."""

    def __init__(self, request: RestoreOf, environment: Mapping[str, str]) -> None:
        self._request = request
        workspace = os.fsencode(request.workspace)
        around = find_repository(request.workspace)
        self._places = Places(workspace, around, environment, request.timeout_s)
        self._is_exact = way_of(request.mode)[0] == EXACT
        self._rows = rows_of(request.target)
        present = [] if request.present is None else rows_of(request.present)
        self._present = {row.path: row.state for row in present}

    def plan(self) -> ComponentPreview:
        actions: list[str] = []
        blocked: list[str] = []
        differing: set[str] = set()
        steps, left = self._steps()
        for step in steps:
            seen = self._preview(step)
            actions += [f"{step.shown}: {line}" for line in seen.actions]
            blocked += [f"{step.shown}: {line}" for line in seen.blocked]
            if seen.actions or seen.blocked:
                differing.add(step.shown)
        if self._is_exact:
            return ComponentPreview(tuple(actions), tuple(left), tuple(blocked))
        if not differing:
            return ComponentPreview()
        names = ", ".join(sorted(differing))
        kept = f"the git state of {names} is kept as it is; to restore it: --git exact"
        return ComponentPreview(warnings=(kept,))

    def restore(self) -> None:
        if not self._is_exact:
            return
        for step in self._steps()[0]:
            with self._named(step):
                git, top = self._places.git(step.nested), self._places.top(step.row.path)
                restore(git, self._of(step))
                if step.row.linked and not step.nested.linked:
                    assert step.row.link is not None
                    os.makedirs(top, exist_ok=True)
                    write_new(os.path.join(top, b".git"), [link_text(step.row.link)], _LINK_MODE)
                    self._sync_link(step)
                elif not step.row.linked and step.nested.linked:
                    self._unlink(step, top)
                    self._sync_link(step)

    def verify(self) -> list[str]:
        if not self._is_exact:
            return []
        wrong = []
        for step in self._steps()[0]:
            found = verify(self._places.git(step.nested), self._of(step))
            if step.row.linked != step.nested.linked:
                found.append(
                    "its .git file is missing" if step.row.linked else "it has a .git file"
                )
            wrong += [f"{step.shown}: {text}" for text in found]
        return wrong

    def _steps(self) -> tuple[list[_Step], list[str]]:
        """The repositories that can be restored, and why the others cannot."""
        steps: list[_Step] = []
        left: list[str] = []
        for row in self._rows:
            shown = to_text(row.path)
            if row.state is None:
                left.append(f"the git state of {shown} was not captured: {row.failure}")
                continue
            try:
                nested = self._places.locate(row.path, row.link)
                if nested is not None:
                    self._places.take(nested)
                    steps.append(_Step(row, nested))
                else:
                    left.append(self._why_not(row))
            except NotCaptured as error:
                left.append(f"the git state of {shown} is kept as it is: {error}")
        return steps, left

    def _why_not(self, row: NestedRow) -> str:
        shown = to_text(row.path)
        if row.link is not None and self._places.is_kept(row.path, row.link):
            return (
                f"{shown} is not registered as a submodule: its files are restored, its git state "
                "is not; run git submodule update --init, then restore again"
            )
        return (
            f"{shown} is no longer a repository and its commits are gone: its files are "
            "restored, its git state is not"
        )

    def _preview(self, step: _Step) -> ComponentPreview:
        seen = preview(self._places.git(step.nested), self._of(step))
        actions = list(seen.actions)
        if step.row.linked and not step.nested.linked:
            actions.append("its .git file, now missing, is restored")
        elif not step.row.linked and step.nested.linked:
            actions.append("its .git file, added since, is removed")
        return replace(seen, actions=tuple(actions))

    def _of(self, step: _Step) -> RestoreOf:
        assert step.row.state is not None
        return replace(
            self._request,
            present=self._present.get(step.row.path),
            target=step.row.state,
            contents=NestedSource(self._request.contents, step.row.number),
            mode=EXACT,
        )

    def _unlink(self, step: _Step, top: bytes) -> None:
        """Undo a `.git` file that a restore created, and its directory if that is empty."""
        if read_link(top) == step.row.link:
            os.unlink(os.path.join(top, b".git"))
            with contextlib.suppress(OSError):
                os.rmdir(top)

    def _sync_link(self, step: _Step) -> None:
        sync_changed(os.fsencode(self._request.workspace), [step.row.path + b"/.git"])

    @contextlib.contextmanager
    def _named(self, step: _Step) -> Iterator[None]:
        try:
            yield
        except ComponentProblem as error:
            raise ComponentProblem(f"{step.shown}: {error}") from error

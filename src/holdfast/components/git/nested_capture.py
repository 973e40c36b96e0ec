"""Captures the workspace's own repository and the nested ones as one state.

    places that the scan found, and those that a restore is about to change → nothing changed in any
    of them: done → otherwise each is captured like a separate repository; an unchanged one is
    reused, without starting git

Guarantees: a failure is reported and does not affect the others. Before anything is kept alive in a
repository, the store records where that is, so it can be released.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.components.git.capture import RepositoryCapture
from holdfast.components.git.commands import Git
from holdfast.components.git.component import NESTED, has_own
from holdfast.components.git.nested_repositories import (
    COMMON,
    LEFT_OUT,
    MOST_ROWS,
    Nested,
    NestedRow,
    NestedSink,
    NotCaptured,
    Places,
    facts_of,
    has_nested,
    new_row,
    rows_of,
)
from holdfast.components.git.repository import Repository, find_repository
from holdfast.components.git.states import DIRTY, way_of
from holdfast.components.git.status import is_unchanged
from holdfast.domain.component_states import EXACT, ComponentState
from holdfast.domain.paths import from_text, to_text
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentProblem,
    ContentSink,
    Intended,
)

if TYPE_CHECKING:
    from holdfast.ports.store import NestedRepositories


@dataclass(slots=True)
class _Found:
    """Existing repositories, and those that are left out, with the reason."""

    nested: list[Nested] = field(default_factory=list)
    left_out: list[list[str]] = field(default_factory=list)


class NestedCapture:
    """One capture of all repositories of a workspace."""

    def __init__(
        self,
        request: CaptureRequest,
        environment: Mapping[str, str],
        noted: NestedRepositories | None,
        ours: frozenset[bytes] = frozenset(),
    ) -> None:
        self._request = request
        self._environment = environment
        self._noted = noted
        self._workspace = os.fsencode(request.workspace)
        self._around = find_repository(request.workspace, ours=ours)
        self._places = Places(self._workspace, self._around, environment, request.timeout_s)
        self._before = _by_path(request.previous)
        self._intended = self._rows_intended()

    def run(self, sink: ContentSink) -> Captured | None:
        found = self._find()
        if self._request.intended is None and self._is_unchanged(found):
            return None
        own = Captured({})
        if self._around is not None:
            own = self._take(self._around, self._request, sink, None)
            own.notes.pop(DIRTY, None)  # this capture would not keep it up to date
        rows: list[dict[str, Any]] = []
        notes: dict[str, Any] = {}
        problems = list(own.problems)
        for nested in found.nested:
            row = new_row(nested.path, nested.link, linked=nested.linked)
            try:
                captured = self._take_nested(nested, NestedSink(sink, len(rows)))
                row["facts"] = facts_of(captured)
                notes[row["path"]] = {**captured.notes, COMMON: self._relative(nested)}
                problems += [f"{row['path']}: {text}" for text in captured.problems]
            except ComponentProblem as error:
                row["failure"] = str(error)
                problems.append(f"{row['path']}: {error}")
            rows.append(row)
        if not self._has_more(found):
            return own
        facts = {**own.facts, NESTED: rows}
        if found.left_out:
            facts[LEFT_OUT] = found.left_out
        return Captured(facts, tuple(problems), {**own.notes, NESTED: notes})

    def _find(self) -> _Found:
        found = _Found()
        wanted = self._request.repositories
        paths = set(self._before if wanted is None else wanted) | set(self._intended)
        for path in sorted(paths)[:MOST_ROWS]:
            row = self._intended.get(path) or (self._before.get(path) if wanted is None else None)
            try:
                nested = self._places.locate(path, None if row is None else row.link)
                if nested is not None:
                    self._places.take(nested)
                    found.nested.append(nested)
            except NotCaptured as error:
                found.left_out.append([to_text(path), str(error)])
        if len(paths) > MOST_ROWS:
            found.left_out.append(["", f"{len(paths) - MOST_ROWS:,} more are not saved"])
        return found

    def _rows_intended(self) -> dict[bytes, NestedRow]:
        intended = self._request.intended
        if intended is None or way_of(intended.mode)[0] != EXACT:
            return {}
        try:
            return _by_path(intended.state)
        except ComponentProblem:
            return {}  # the restore itself will report it

    def _is_unchanged(self, found: _Found) -> bool:
        previous = self._request.previous
        if previous is None or previous.facts.get(LEFT_OUT, []) != found.left_out:
            return False
        if has_own(previous) != (self._around is not None):
            return False
        if has_nested(previous) != self._has_more(found):
            return False
        now_ns = self._request.now_ns
        if self._around is not None and not is_unchanged(self._around, previous, now_ns=now_ns):
            return False
        if len(self._before) != len(found.nested):
            return False
        return all(
            (row := self._before.get(one.path)) is not None
            and (row.link, row.linked) == (one.link, one.linked)
            and row.state is not None
            and is_unchanged(one.repository, row.state, now_ns=now_ns)
            for one in found.nested
        )

    def _has_more(self, found: _Found) -> bool:
        """Whether there is more than the workspace's own repository."""
        return bool(found.nested or found.left_out) or self._around is None

    def _relative(self, nested: Nested) -> str:
        return to_text(os.path.relpath(nested.repository.common_dir, self._workspace))

    def _take_nested(self, nested: Nested, sink: ContentSink) -> Captured:
        before, wanted = self._before.get(nested.path), self._intended.get(nested.path)
        intended = self._request.intended
        if wanted is None or wanted.state is None or intended is None:
            intended = None
        else:
            intended = Intended(wanted.state, EXACT, intended.label)
        request = replace(
            self._request,
            previous=None if before is None else before.state,
            intended=intended,
        )
        if request.checkpoint is not None and self._noted is not None:
            self._noted.add([from_text(self._relative(nested))])
        return self._take(nested.repository, request, sink, self._places.git(nested))

    def _take(
        self, repository: Repository, request: CaptureRequest, sink: ContentSink, git: Git | None
    ) -> Captured:
        previous = request.previous
        if (
            previous is not None
            and request.intended is None
            and has_own(previous)
            and is_unchanged(repository, previous, now_ns=request.now_ns)
        ):
            for content in previous.contents:
                if "/" not in content.name:
                    sink.keep(content.name, content)
            facts = {k: v for k, v in previous.facts.items() if k not in (NESTED, LEFT_OUT)}
            notes = {k: v for k, v in previous.notes.items() if k != NESTED}
            return Captured(facts, (), notes)
        return RepositoryCapture(
            repository, request, self._environment, request.timeout_s, git
        ).run(sink)


def _by_path(state: ComponentState | None) -> dict[bytes, NestedRow]:
    return {} if state is None else {row.path: row for row in rows_of(state)}

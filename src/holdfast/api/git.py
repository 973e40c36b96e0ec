"""Accepting work into git: a range of checkpoints as one commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.git.commits import AcceptOutcome
from holdfast.engine import git_accept as accept
from holdfast.ports.repository import CommitWish as CommitWish

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import SessionId
    from holdfast.engine.git_accept import Acceptance
    from holdfast.engine.git_accept import AcceptRange as AcceptRange


class Acceptances:
    """Topic of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._vault = opened.engine, opened.engine.vault

    def prepare(
        self,
        session_id: SessionId | None,
        checkpoints: str | None,
        *,
        message: str | None = None,
        co_authors: Sequence[str] = (),
    ) -> Acceptance:
        """The range that would be committed, and its message."""
        return accept.prepare(
            self._vault, session_id, checkpoints, message=message, co_authors=co_authors
        )

    def preview(self, acceptance: Acceptance) -> AcceptOutcome:
        """What would be committed; nothing is changed."""
        plan = accept.plan(self._vault, acceptance)
        return AcceptOutcome(None, acceptance.message, plan, self._warnings(acceptance))

    def commit(self, acceptance: Acceptance, wish: CommitWish) -> AcceptOutcome:
        outcome = accept.accept(self._vault, acceptance, wish)
        warnings = (*outcome.warnings, *self._warnings(acceptance))
        return AcceptOutcome(outcome.commit, outcome.message, outcome.plan, warnings)

    def _warnings(self, acceptance: Acceptance) -> tuple[str, ...]:
        """Work that is not in the commit although users may expect it."""
        end = acceptance.range.end
        session = self._vault.catalog.session(end.session_id)
        if session is None or session.head != end.id:
            return acceptance.warnings
        unsaved = self._engine.changes(end, None, renames=False)
        if not unsaved:
            return acceptance.warnings
        what = (
            "1 path changed since the checkpoint and is"
            if len(unsaved) == 1
            else f"{len(unsaved):,} paths changed since the checkpoint and are"
        )
        return (*acceptance.warnings, f"{what} not in the commit")

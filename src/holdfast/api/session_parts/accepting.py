"""Accepting work of a session into git, step by step: the library and the command line share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.domain.commits import AcceptOutcome
from holdfast.engine import accept as engine_accept
from holdfast.engine.accept import Acceptance
from holdfast.ports.repository import CommitWish

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import SessionId


def prepare(
    opened: OpenWorkspace,
    session_id: SessionId | None,
    checkpoints: str | None,
    *,
    message: str | None = None,
    co_authors: Sequence[str] = (),
) -> Acceptance:
    return engine_accept.prepare(
        opened.engine.vault, session_id, checkpoints, message=message, co_authors=co_authors
    )


def previewed(opened: OpenWorkspace, acceptance: Acceptance) -> AcceptOutcome:
    """What would be committed, with the message as composed, and nothing done."""
    plan = engine_accept.plan(opened.engine.vault, acceptance)
    return AcceptOutcome(None, acceptance.message, plan, _warnings(opened, acceptance))


def carry_out(opened: OpenWorkspace, acceptance: Acceptance, wish: CommitWish) -> AcceptOutcome:
    outcome = engine_accept.accept(opened.engine.vault, acceptance, wish)
    warnings = (*outcome.warnings, *_warnings(opened, acceptance))
    return AcceptOutcome(outcome.commit, outcome.message, outcome.plan, warnings)


def _warnings(opened: OpenWorkspace, acceptance: Acceptance) -> tuple[str, ...]:
    """What the commit does not have although somebody may expect it."""
    vault, end = opened.engine.vault, acceptance.range.end
    session = vault.catalog.session(end.session_id)
    if session is None or session.head != end.id:
        return acceptance.warnings
    unsaved = opened.engine.changes(end, None, renames=False)
    if not unsaved:
        return acceptance.warnings
    what = (
        "1 path changed since the checkpoint and is"
        if len(unsaved) == 1
        else (f"{len(unsaved):,} paths changed since the checkpoint and are")
    )
    return (*acceptance.warnings, f"{what} not in the commit")

"""What a restore does to parts of the state other than files, as tools tell it: databases, what
agents remember, and what plug-ins keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.domain.restore.plan import FAILED, ComponentOutcome, ComponentStep
from holdfast.interfaces.tools.results import ComponentNews
from holdfast.interfaces.tools.wording import MOST_LISTED, bullets, said


def planned_components(steps: Iterable[ComponentStep]) -> list[ComponentNews]:
    return [
        ComponentNews(
            name=said(step.name),
            mode=_way(step.mode),
            status=None,
            actions=[said(line) for line in step.actions[:MOST_LISTED]],
            blocked=[said(line) for line in step.blocked[:MOST_LISTED]],
        )
        for step in steps
    ]


def done_components(outcomes: Iterable[ComponentOutcome]) -> list[ComponentNews]:
    return [
        ComponentNews(
            name=said(one.name),
            mode=_way(one.mode),
            status=one.status,
            actions=[],
            blocked=[said(one.detail)] if one.status == FAILED else [],
        )
        for one in outcomes
    ]


def told_components(news: Sequence[ComponentNews]) -> list[str]:
    """One line for each thing that is, or was, done to one."""
    rows: list[str] = []
    for one in news:
        rows += [f"{one.name}: {line}" for line in one.actions]
        word = "in the way" if one.status is None else "NOT restored"
        rows += [f"{one.name}: {word}: {line}" for line in one.blocked]
        if one.status is not None and one.status != FAILED:
            rows.append(f"{one.name}: restored")
    return ["Besides files:", *bullets(rows)] if rows else []


def _way(mode: str) -> str:
    """A mode without the keys of what was chosen."""
    return mode.partition(":")[0]

"""Tools for the store: `checkpoint_stats`, `checkpoint_cleanup`, which previews first, and
`checkpoint_auto_configure`: how automatic checkpoints are made and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.api.confirmations import VALID_MINUTES
from holdfast.api.views.settings import plain_value
from holdfast.domain.ids import short
from holdfast.domain.retention import Decision
from holdfast.domain.settings.schema import HELP, KEYS, check_setting
from holdfast.domain.wording import count_words, iso_from_ns, size_words
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.tool import CONFIRM, Answer, Parameter, Tool, ToolContext
from holdfast.interfaces.tools.wording import MOST_LISTED, NOTHING_SAVED, bullets, one_line, said

_CLEANUP = "checkpoint_cleanup"


@dataclass(frozen=True, slots=True)
class DegradedPart:
    """A part of the state that the last checkpoint is without, and why. After some `failures` in a
    row it is left alone until a time; None when every save tries."""

    component: str
    reason: str
    failures: int
    left_alone_until: str | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of the session, and of the store of its workspace. `has_unapproved`: the workspace or HEAD
    holds something that is not approved; `unsaved`: the workspace something that HEAD does not.
    These and the round are None before the first checkpoint."""

    workspace: str
    session_id: str
    checkpoints: int
    restores: int
    bytes_stored: int
    bytes_deduped: int
    snapshots: int
    content_blobs: int
    head: str | None
    degraded: list[DegradedPart] = field(default_factory=list)
    active_round: str | None = None
    has_unapproved: bool | None = None
    unsaved: bool | None = None


@dataclass(frozen=True, slots=True)
class DroppedCheckpoint:
    """A checkpoint that the rules let go, and the rule."""

    id: str
    session_id: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """A cleanup that was previewed or, when `done`, carried out. `bytes_freed` of a preview is what
    would not be needed any more."""

    done: bool
    dropped: list[DroppedCheckpoint]
    total_dropped: int
    total_kept: int
    bytes_freed: int
    warnings: list[str]
    confirm_token: str | None
    plan_id: str | None


def statistics(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    session = context.session
    stats = session.stats
    text = (
        f"Session {one_line(session.session_id)} of {one_line(str(session.workspace))}: "
        f"{count_words(stats['checkpoints'], 'checkpoint')}, "
        f"{count_words(stats['restores'], 'restore')}. "
        f"The store takes {size_words(stats['bytes_stored'])}; sharing equal content saves "
        f"{size_words(stats['bytes_deduped'])}."
    )
    workspace = one_line(str(session.workspace))
    parts = _degraded(context)
    status = session.approval(look=True) if session.head_id is not None else None
    if status is not None:
        text += (
            f"\n{status.active.name} is the round at work; "
            + (
                "something in it is not approved yet"
                if status.has_unapproved
                else "nothing in it waits to be approved"
            )
            + ("; the workspace has changes that no checkpoint has." if status.unsaved else ".")
        )
    text += "".join(f"\nThe last checkpoint is without {p.component}: {p.reason}" for p in parts)
    data = Statistics(
        workspace=workspace,
        session_id=session.session_id,
        head=session.head_id,
        degraded=parts,
        active_round=status.active.name if status is not None else None,
        has_unapproved=status.has_unapproved if status is not None else None,
        unsaved=status.unsaved if status is not None else None,
        **stats,
    )
    return Answer(text, data)


def _degraded(context: ToolContext) -> list[DegradedPart]:
    head = context.session.head_id
    if head is None:
        return []
    found = context.workspace.health.degraded(context.resolve(head))
    return [
        DegradedPart(one.name, said(one.reason), one.failures, _moment(one.left_alone_until_ns))
        for one in found
    ]


def _moment(at_ns: int | None) -> str | None:
    return None if at_ns is None else iso_from_ns(at_ns, "milliseconds")


def _no_statistics(workspace: Path, session_id: str) -> Answer:
    place = one_line(str(workspace))
    return Answer(NOTHING_SAVED, Statistics(place, session_id, 0, 0, 0, 0, 0, 0, None))


def cleanup(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    token = arguments["confirm_token"]
    shown = None if token is None else context.confirmations.take(_CLEANUP, token)
    plan = context.workspace.upkeep.plan_cleanup()
    dropped = frozenset(d.checkpoint.id for d in plan.decisions if not d.keep)
    if shown is None or dropped != shown:
        first = "" if shown is None else "It has changed since the preview; nothing was done. "
        token = context.confirmations.offer(_CLEANUP, dropped)
        data = _data(plan.decisions, plan.unneeded_bytes, (), token)
        lines = [
            (
                f"{first}Cleaning up would drop {count_words(len(dropped), 'checkpoint')} and keep "
                f"{data.total_kept:,}; {size_words(plan.unneeded_bytes)} would not be needed."
            ),
            *bullets([_row(one) for one in data.dropped]),
            (
                "Nothing has been dropped yet, and dropped checkpoints cannot be brought back. To "
                f'do it: {_CLEANUP} {{"confirm_token": "{token}"}} (counts once, for '
                f"{VALID_MINUTES} minutes)."
            ),
        ]
        return Answer("\n".join(lines), data)
    from holdfast.api.workspace import NoProgress

    outcome = context.workspace.upkeep.cleanup(NoProgress())
    data = _data(outcome.decisions, outcome.freed_bytes, outcome.warnings, None, done=True)
    lines = [
        (
            f"Dropped {count_words(data.total_dropped, 'checkpoint')}, kept {data.total_kept:,}; "
            f"{size_words(outcome.freed_bytes)} freed."
        ),
        *bullets([_row(one) for one in data.dropped]),
        *(f"Warning: {warning}" for warning in data.warnings),
    ]
    return Answer("\n".join(lines), data)


def _data(
    decisions: Sequence[Decision],
    freed_bytes: int,
    warnings: Sequence[str],
    token: str | None,
    *,
    done: bool = False,
) -> CleanedUp:
    dropped = [decision for decision in decisions if not decision.keep]
    return CleanedUp(
        done=done,
        dropped=[
            DroppedCheckpoint(
                d.checkpoint.id, d.checkpoint.session_id, d.checkpoint.kind.value, d.reason
            )
            for d in dropped[:MOST_LISTED]
        ],
        total_dropped=len(dropped),
        total_kept=len(decisions) - len(dropped),
        bytes_freed=freed_bytes,
        warnings=[said(warning) for warning in warnings],
        confirm_token=token,
        plan_id=None if done else _plan_id(dropped),
    )


def _plan_id(dropped: Sequence[Decision]) -> str:
    """The same for the same checkpoints."""
    from holdfast.domain.trees.objects import digest_of

    ids = " ".join(sorted(decision.checkpoint.id for decision in dropped))
    return digest_of(ids.encode()).hex()[:16]


def _row(dropped: DroppedCheckpoint) -> str:
    session = one_line(dropped.session_id)
    return f"{short(dropped.id)} {dropped.kind} of session {session}: {one_line(dropped.reason)}"


STATS = Tool(
    "checkpoint_stats",
    "Statistics",
    "How many checkpoints and restores the session has and how much space the store takes.",
    (),
    "read",
    handler=statistics,
    result=Statistics,
    without_store=_no_statistics,
)

CLEANUP = Tool(
    "checkpoint_cleanup",
    "Clean up",
    "Drop the checkpoints that the retention rules let go, in all sessions of the workspace, "
    "and free their space. The first call only previews and returns a `confirm_token`. Named, "
    "first and approved checkpoints, HEAD and what undo needs always stay. Dropped ones cannot "
    "be brought back: use it only when asked to.",
    (CONFIRM,),
    "admin",
    handler=cleanup,
    result=CleanedUp,
)


_ALSO = ("restore_on_failure", "end_of_day", "retention")
AUTOMATIC = tuple(key for key in KEYS if key.startswith("auto_") or key in _ALSO)
"""Only these: what is captured and where it is kept is not a model's to change."""


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting with its value, where it comes from and what it means."""

    name: str
    value: str | int | float | bool | list[str] | dict[str, Any] | None
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True)
class AutomaticSettings:
    """How automatic checkpoints are made and kept; `changed` are the names set by this call."""

    settings: list[SettingInfo]
    changed: list[str]


def auto_configure(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    wanted: dict[str, Any] = arguments["settings"] or {}
    for key, value in wanted.items():
        _require_possible(key, value)
    for key, value in wanted.items():
        context.workspace.settings.set(key, value)
    settings = _settings(context)
    lines = [f"{one.name} = {one.value!r} ({one.origin}): {one.meaning}" for one in settings]
    if wanted:
        lines.insert(
            0,
            f"Changed: {', '.join(wanted)}. Hooks, the daemon and the MCP server go by it from now "
            "on; a session or a holdfast watch that is open already, when it is opened again.",
        )
    return Answer("\n".join(lines), AutomaticSettings(settings, list(wanted)))


def _require_possible(key: str, value: Any) -> None:
    """Before the first is changed, so that all of them are or none. Of rules one can be set."""
    name, _, entry = key.partition(".")
    if name not in AUTOMATIC or (entry and name != "retention"):
        raise BadArguments(
            f"settings of checkpoint_auto_configure has no {one_line(key)[:60]!r}; nothing was "
            "changed",
            hint=f"it takes: {', '.join(AUTOMATIC)}",
        )
    if value is not None:
        check_setting(name, {entry: value} if entry else value)


def _settings(context: ToolContext) -> list[SettingInfo]:
    """As they are now; the session keeps those it was opened with."""
    from holdfast.api.workspace import open_workspace

    place = context.session.workspace
    with open_workspace(place, create=False, force=True, passive=True) as now:
        settings, origins = now.settings.effective, now.settings.origins
    return [
        SettingInfo(
            key,
            plain_value(key, getattr(settings, key)),
            one_line(origins.get(key, "default")),
            HELP[key],
        )
        for key in AUTOMATIC
    ]


AUTO_CONFIGURE = Tool(
    "checkpoint_auto_configure",
    "Configure automatic checkpoints",
    "See or change how automatic checkpoints of this workspace are made and kept. Without "
    "`settings` it lists each one with its value and meaning. Change them only when the person "
    "asks for it.",
    (
        Parameter(
            "settings",
            "object",
            "New values by name; null goes back to the default.",
            {"auto_interval": 10},
        ),
    ),
    "admin",
    handler=auto_configure,
    result=AutomaticSettings,
    sets_values=True,
)

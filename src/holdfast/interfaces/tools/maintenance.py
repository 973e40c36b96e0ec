"""Store tools: `checkpoint_stats`, `checkpoint_cleanup`, which previews first, and
`checkpoint_auto_configure`, for making and keeping automatic checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.api.confirmations import VALID_MINUTES
from holdfast.api.views.settings import plain_value
from holdfast.domain.checkpoints import KINDS_OF_TYPE, Kind
from holdfast.domain.ids import short
from holdfast.domain.retention import Decision, rules_with
from holdfast.domain.sessions import round_title
from holdfast.domain.settings.schema import DEFAULTS, HELP, KEYS, Settings, check_setting
from holdfast.domain.wording import count_words, iso, iso_from_ns, size_words
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.tool import CONFIRM, Answer, Parameter, Tool, ToolContext
from holdfast.interfaces.tools.wording import (
    MOST_LISTED,
    NOTHING_SAVED,
    bullets,
    one_line,
    reason_line,
)

_CLEANUP = "checkpoint_cleanup"
_DAY_NS = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class DegradedPart:
    """A component that the last checkpoint lacks, in whole or in part, and why. After several
    `failures` in a row it is paused until a time; None if every save tries."""

    component: str
    reason: str
    failures: int
    left_alone_until: str | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the session and its store. `has_unapproved`: the workspace or HEAD has
    unapproved changes. `unsaved`: the workspace differs from HEAD. These and the round are None
    before the first checkpoint. Counts by type, `unique_sessions` and `latest_checkpoint` (a time)
    are of the whole workspace. `retention_days` is how long automatic checkpoints are kept; None
    for ever."""

    workspace: str
    session_id: str
    checkpoints: int
    restores: int
    bytes_stored: int
    bytes_deduped: int
    snapshots: int
    content_blobs: int
    head: str | None
    total_checkpoints: int = 0
    manual_checkpoints: int = 0
    auto_checkpoints: int = 0
    session_checkpoints: int = 0
    risky_checkpoints: int = 0
    unique_sessions: int = 0
    latest_checkpoint: str | None = None
    auto_enabled: bool = True
    auto_interval_minutes: float = DEFAULTS["auto_interval"]
    retention_days: float | None = None
    degraded_mode: bool = False
    degraded: list[DegradedPart] = field(default_factory=list)
    active_round: str | None = None
    has_unapproved: bool | None = None
    unsaved: bool | None = None


@dataclass(frozen=True, slots=True)
class DroppedCheckpoint:
    """An expired checkpoint, and the rule."""

    id: str
    session_id: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """A cleanup preview or, if `done`, a cleanup. In a preview, `bytes_freed` is what could be
    freed."""

    status: str
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
    totals = context.workspace.upkeep.totals()
    by_type = {
        name: sum(totals.by_kind.get(kind, 0) for kind in kinds)
        for name, kinds in KINDS_OF_TYPE.items()
    }
    workspace = one_line(str(session.workspace))
    text = (
        f"Session {one_line(session.session_id)} of {workspace}: "
        f"{count_words(stats['checkpoints'], 'checkpoint')}, "
        f"{count_words(stats['restores'], 'restore')}. The store uses "
        f"{size_words(stats['bytes_stored'])}; deduplication saves "
        f"{size_words(stats['bytes_deduped'])}."
    )
    parts = _degraded(context)
    settings, _ = _current(context)
    kept = rules_with(settings.retention)[Kind.INTERVAL]
    status = session.approval(look=True) if session.head_id is not None else None
    if status is not None:
        approval = "has" if status.has_unapproved else "has no"
        text += f"\nThe active {round_title(status.active.name)} {approval} unapproved changes"
        text += "; the workspace has unsaved changes." if status.unsaved else "."
    counted = ", ".join(f"{number:,} {name}" for name, number in by_type.items() if number)
    if counted:
        text += (
            f"\nThe workspace has {count_words(totals.sessions, 'session')} with checkpoints: "
            f"{counted}."
        )
    for part in parts:
        lacks = "does not include" if part.failures else "has only a part of"
        text += f"\nThe last checkpoint {lacks} {part.component}: {part.reason}"
    data = Statistics(
        workspace=workspace,
        session_id=session.session_id,
        head=session.head_id,
        total_checkpoints=sum(by_type.values()),
        manual_checkpoints=by_type["manual"],
        auto_checkpoints=by_type["auto"],
        session_checkpoints=by_type["session"],
        risky_checkpoints=by_type["risky"],
        unique_sessions=totals.sessions,
        latest_checkpoint=None if totals.latest is None else iso(totals.latest, "milliseconds"),
        auto_enabled=_is_enabled(settings),
        auto_interval_minutes=settings.auto_interval,
        retention_days=None if kept.longest_ns is None else kept.longest_ns / _DAY_NS,
        degraded_mode=bool(parts),
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
        DegradedPart(
            one.name, reason_line(one.reason), one.failures, _moment(one.left_alone_until_ns)
        )
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
        first = (
            "" if shown is None else "The result has changed since the preview; nothing was done. "
        )
        token = context.confirmations.offer(_CLEANUP, dropped)
        data = _data(plan.decisions, plan.unneeded_bytes, (), token)
        lines = [
            (
                f"{first}Cleanup would delete {count_words(len(dropped), 'checkpoint')} and keep "
                f"{data.total_kept:,}; {size_words(plan.unneeded_bytes)} could be freed."
            ),
            *bullets([_row(one) for one in data.dropped]),
            (
                "Nothing has been deleted yet, and deleted checkpoints cannot be restored. To "
                f'proceed: {_CLEANUP} {{"confirm_token": "{token}"}} (valid once, for '
                f"{VALID_MINUTES} minutes)."
            ),
        ]
        return Answer("\n".join(lines), data)
    from holdfast.api.workspace import NoProgress

    outcome = context.workspace.upkeep.cleanup(NoProgress())
    data = _data(outcome.decisions, outcome.freed_bytes, outcome.warnings, None, done=True)
    lines = [
        (
            f"Deleted {count_words(data.total_dropped, 'checkpoint')}, kept {data.total_kept:,}; "
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
        status="cleanup completed" if done else "preview",
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
        warnings=[reason_line(warning) for warning in warnings],
        confirm_token=token,
        plan_id=None if done else _plan_id(dropped),
    )


def _plan_id(dropped: Sequence[Decision]) -> str:
    """Equal for the same checkpoints."""
    from holdfast.domain.trees.objects import digest_of

    ids = " ".join(sorted(decision.checkpoint.id for decision in dropped))
    return digest_of(ids.encode()).hex()[:16]


def _row(dropped: DroppedCheckpoint) -> str:
    session = one_line(dropped.session_id)
    return f"{short(dropped.id)} {dropped.kind} of session {session}: {one_line(dropped.reason)}"


STATS = Tool(
    "checkpoint_stats",
    "Statistics",
    "Counts of checkpoints by type and session, restores, space, retention, and whether automatic "
    "checkpoints are on.",
    (),
    "read",
    handler=statistics,
    result=Statistics,
    without_store=_no_statistics,
)

CLEANUP = Tool(
    "checkpoint_cleanup",
    "Clean up",
    "Delete expired checkpoints of all sessions for good, by the retention rules, and free their "
    "space. Previews first, like checkpoint_restore. Named, first and approved checkpoints, HEAD "
    "and what undo needs stay. Only when asked to.",
    (CONFIRM,),
    "admin",
    handler=cleanup,
    result=CleanedUp,
)


_TRIGGERS = ("auto_interval", "auto_files", "end_of_day")
_LIMITED = (Kind.INTERVAL, Kind.THRESHOLD)
_ALSO = ("restore_on_failure", "end_of_day", "retention")
AUTOMATIC = tuple(key for key in KEYS if key.startswith("auto_") or key in _ALSO)
"""Only these: models must not change what is captured and where it is kept."""


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One setting with its value, origin and meaning."""

    name: str
    value: str | int | float | bool | list[str] | dict[str, Any] | None
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True)
class AutomaticSettings:
    """How automatic checkpoints are made and kept. `status` is enabled or disabled, `changed` are
    the settings of this call, and `max_checkpoints` of None is no limit."""

    status: str
    interval_minutes: float
    file_threshold: int
    max_checkpoints: int | None
    settings: list[SettingInfo]
    changed: list[str]


def auto_configure(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    wanted = _requested_settings(_current(context)[0], arguments)
    for key, value in wanted.items():
        _require_valid_setting(key, value)
    for key, value in wanted.items():
        context.workspace.settings.set(key, value)
    now, settings = _current(context)
    data = AutomaticSettings(
        "enabled" if _is_enabled(now) else "disabled",
        now.auto_interval,
        now.auto_files,
        rules_with(now.retention)[Kind.INTERVAL].most,
        settings,
        list(wanted),
    )
    lines = [f"{one.name} = {one.value!r} ({one.origin}): {one.meaning}" for one in settings]
    lines.insert(0, f"Automatic checkpoints by time and by changed files are {data.status}.")
    if wanted:
        lines.insert(
            0,
            f"Changed: {', '.join(wanted)}. Hooks, the daemon and the MCP server use it from now "
            "on. Open sessions and holdfast watch use it after a restart.",
        )
    return Answer("\n".join(lines), data)


def _requested_settings(now: Settings, arguments: dict[str, Any]) -> dict[str, Any]:
    """The requested settings, by name."""
    wanted: dict[str, Any] = dict(arguments["settings"] or {})
    if arguments["interval_minutes"] is not None:
        wanted["auto_interval"] = arguments["interval_minutes"]
    if arguments["file_threshold"] is not None:
        wanted["auto_files"] = arguments["file_threshold"]
    if arguments["max_checkpoints"] is not None:
        rules = rules_with(now.retention)
        for kind in _LIMITED:
            rule = replace(rules[kind], most=arguments["max_checkpoints"], least=0)
            wanted[f"retention.{kind.value}"] = rule.to_plain()
    if arguments["enabled"] is False:
        wanted |= {"auto_interval": 0, "auto_files": 0, "end_of_day": ""}
    elif arguments["enabled"]:
        off = [key for key in _TRIGGERS if not getattr(now, key)]
        wanted = dict.fromkeys(off) | wanted
    return wanted


def _is_enabled(settings: Settings) -> bool:
    return bool(settings.auto_interval or settings.auto_files)


def _require_valid_setting(key: str, value: Any) -> None:
    """Checked before the first change, so that all settings are changed or none. Single rules can
    be set."""
    name, _, entry = key.partition(".")
    if name not in AUTOMATIC or (entry and name != "retention"):
        raise BadArguments(
            f"settings of checkpoint_auto_configure has no {one_line(key)[:60]!r}; nothing was "
            "changed",
            hint=f"it takes: {', '.join(AUTOMATIC)}",
        )
    if value is not None:
        check_setting(name, {entry: value} if entry else value)


def _current(context: ToolContext) -> tuple[Settings, list[SettingInfo]]:
    """The current values; the session has those it was opened with."""
    from holdfast.api.workspace import open_workspace

    place = context.session.workspace
    with open_workspace(place, create=False, force=True, passive=True) as now:
        settings, origins = now.settings.effective, now.settings.origins
    return settings, [
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
    "Show or change how automatic checkpoints are made and kept. Without arguments it lists every "
    "setting with its meaning. Change them only when asked to.",
    (
        Parameter("enabled", "boolean", "By time and changed files.", True),
        Parameter("interval_minutes", "number", "0: never.", 30, least=0),
        Parameter("file_threshold", "integer", "Changed files; 0: never.", 5, least=0),
        Parameter("max_checkpoints", "integer", "Kept per session and trigger.", 30, least=1),
        Parameter(
            "settings",
            "object",
            "Other settings by name; null resets.",
            {"auto_message": "off"},
        ),
    ),
    "admin",
    handler=auto_configure,
    result=AutomaticSettings,
    sets_values=True,
)

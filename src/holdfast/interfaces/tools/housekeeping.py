"""The tools that look after the store: cleanup, which previews first, and automatic settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blake3 import blake3

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import short
from holdfast.domain.retention import Decision
from holdfast.domain.settings.schema import HELP, KEYS, check_setting
from holdfast.domain.wording import size_words
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.confirmations import VALID_MINUTES
from holdfast.interfaces.tools.results import (
    AutomaticSettings,
    CleanedUp,
    DroppedCheckpoint,
    SettingInfo,
)
from holdfast.interfaces.tools.wording import MOST_LISTED, bullets, count, one_line, said
from holdfast.ports.progress import NoProgress

_CLEANUP = "checkpoint_cleanup"
_ALSO = ("restore_on_failure", "end_of_day", "retention")
AUTOMATIC = tuple(key for key in KEYS if key.startswith("auto_") or key in _ALSO)
"""Only these: what is captured and where it is kept is not a model's to change."""


def cleanup(bench: Bench, arguments: dict[str, Any]) -> Answer:
    token = arguments["confirm_token"]
    shown = None if token is None else bench.confirmations.take(_CLEANUP, token)
    plan = bench.engine.plan_cleanup()
    dropped = frozenset(d.checkpoint.id for d in plan.decisions if not d.keep)
    if shown is None or dropped != shown:
        first = "" if shown is None else "It has changed since the preview; nothing was done. "
        token = bench.confirmations.offer(_CLEANUP, dropped)
        data = _data(plan.decisions, plan.unneeded_bytes, (), token)
        lines = [
            (
                f"{first}Cleaning up would drop {count(len(dropped), 'checkpoint')} and keep "
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
    outcome = bench.engine.cleanup(NoProgress())
    data = _data(outcome.decisions, outcome.freed_bytes, outcome.warnings, None, done=True)
    lines = [
        (
            f"Dropped {count(data.total_dropped, 'checkpoint')}, kept {data.total_kept:,}; "
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
    told = " ".join(sorted(decision.checkpoint.id for decision in dropped))
    return blake3(told.encode()).hexdigest()[:16]


def _row(dropped: DroppedCheckpoint) -> str:
    session = one_line(dropped.session_id)
    return f"{short(dropped.id)} {dropped.kind} of session {session}: {one_line(dropped.reason)}"


def auto_configure(bench: Bench, arguments: dict[str, Any]) -> Answer:
    wanted: dict[str, Any] = arguments["settings"] or {}
    for key, value in wanted.items():
        _require_possible(key, value)
    for key, value in wanted.items():
        bench.engine.set_setting(key, value)
    settings = _settings(bench)
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


def _settings(bench: Bench) -> list[SettingInfo]:
    """As they are now; the session keeps those it was opened with."""
    with open_workspace(bench.session.workspace, create=False, force=True, passive=True) as now:
        settings, origins = now.engine.vault.settings, now.setting_origins
    return [
        SettingInfo(
            key,
            _plain(key, getattr(settings, key)),
            one_line(origins.get(key, "default")),
            HELP[key],
        )
        for key in AUTOMATIC
    ]


def _plain(key: str, value: Any) -> Any:
    """A value as it is written in settings."""
    if key == "retention":
        return {str(kind): rule.to_plain() for kind, rule in value}
    return list(value) if isinstance(value, tuple) else value

"""`checkpoint_auto_configure`: how automatic checkpoints are made and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.api.views.settings import plain_value
from holdfast.domain.settings.schema import HELP, KEYS, check_setting
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.tool import Answer, Parameter, Tool, ToolContext
from holdfast.interfaces.tools.wording import one_line

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
    destructive=True,
    idempotent=True,
)

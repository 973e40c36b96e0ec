"""Fallback values for settings that cannot be read: a typo must not end protection.

    a default that protects                         → the default
    one that could reveal, change or delete more    → the most cautious value
    patterns that leave files out                   → the readable ones; if none, nothing is saved

Guarantee: each invalid setting is reported with the reason. A misspelt name that resembles one of
the sensitive settings counts as that setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.errors import InvalidSetting
from holdfast.domain.settings.schema import KEYS, RETIRED, check_setting
from holdfast.values.classes import dataclass, field

_NO_LIMIT_BYTES = 1 << 60
_FARTHEST = 2
_IGNORE = "ignore"
_CAUTIOUS: Mapping[str, Any] = {
    "budget": _NO_LIMIT_BYTES,  # nothing is removed to make room
    "capture_named_ignored": "off",
    "retention": None,  # nothing expires
    "setuid": "drop",
    "total_budget": _NO_LIMIT_BYTES,
}


@dataclass(frozen=True, slots=True)
class ReadableSettings:
    """The valid settings of a source, and the reason for each invalid one."""

    values: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


def readable_settings(found: Mapping[str, Any], broken: Mapping[str, str]) -> ReadableSettings:
    """`broken` are settings on lines that cannot be parsed, with the reason. `InvalidSetting` if it
    is unclear which files to leave out."""
    values: dict[str, Any] = {}
    problems = dict(broken)
    doubtful: dict[str, Any] = dict.fromkeys(broken)
    for key, value in found.items():
        if key in RETIRED:
            continue
        try:
            values[key] = check_setting(key, value)
        except InvalidSetting as error:
            hint = "" if key in KEYS or error.hint is None else f" ({error.hint})"
            problems.setdefault(key, f"{error.message}{hint}")
            doubtful.setdefault(key, value)
    for key, value in doubtful.items():
        meant = _closest_setting(key)
        if meant is None or (meant != key and meant in found):
            continue
        if meant == key or meant != _IGNORE or value is None or isinstance(value, (str, list)):
            values[meant] = _cautious(meant, value, problems[key])
    return ReadableSettings(values, problems)


def _closest_setting(key: str) -> str | None:
    """The sensitive setting that a name may mean."""
    from holdfast.domain.search.words import distance

    sensitive = (_IGNORE, *_CAUTIOUS)
    if key in KEYS:
        return key if key in sensitive else None
    return next((one for one in sensitive if distance(key, one, _FARTHEST) is not None), None)


def _cautious(key: str, value: Any, problem: str) -> Any:
    if key == _IGNORE:
        return _patterns(value, problem)
    if key != "retention":
        return _CAUTIOUS[key]
    from holdfast.domain.checkpoints import Kind
    from holdfast.domain.retention import ALWAYS_KEPT, RetentionRule

    return tuple(sorted((kind, RetentionRule()) for kind in Kind if kind not in ALWAYS_KEPT))


def _patterns(value: Any, problem: str) -> tuple[str, ...]:
    """The valid patterns. There must be one, because an invalid one may name a secret file."""
    if value == "":
        return ()
    kept: list[str] = []
    for pattern in value if isinstance(value, (list, tuple)) else [value]:
        try:
            kept += check_setting(_IGNORE, [pattern])
        except InvalidSetting:
            continue
    if not kept:
        raise InvalidSetting(
            f"{problem}. Nothing is saved, because it is not clear which files to leave out"
        )
    return tuple(kept)

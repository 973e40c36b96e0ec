"""Fallback values for settings that cannot be read: a typo must not end protection.

    a default that protects                         → the default
    one that could reveal, change or delete more    → the most cautious value
    patterns that leave files out                   → the readable ones; if none, nothing is saved

Guarantee: each invalid setting is reported with the reason. A misspelt name that resembles one of
the sensitive settings counts as that setting. Which settings are sensitive, and their cautious
values, is in the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.errors import InvalidSetting
from holdfast.domain.settings.schema import KEYS, RETIRED, Cautious, Settings, check_setting
from holdfast.values.classes import dataclass, field, fields

_FARTHEST = 2
_CAUTIOUS: Mapping[str, Cautious] = {
    f.name: f.metadata["cautious"] for f in fields(Settings) if f.metadata["cautious"] is not None
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
        cautious = _CAUTIOUS[meant]
        if meant == key or cautious.can_be(value):
            values[meant] = cautious.make(value, problems[key])
    return ReadableSettings(values, problems)


def _closest_setting(key: str) -> str | None:
    """The sensitive setting that a name may mean."""
    from holdfast.domain.search.words import distance

    if key in KEYS:
        return key if key in _CAUTIOUS else None
    return next((one for one in _CAUTIOUS if distance(key, one, _FARTHEST) is not None), None)

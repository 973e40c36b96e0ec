"""Settings as data."""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

from holdfast.domain.retention import Rules, rules_with


class SettingView(TypedDict):
    """One setting, as written in settings files, and the origin of its value. `effective` has the
    retention rules that apply, including built-in ones. `choices` are the accepted words, if only
    some are. A `user_only` setting cannot be changed for one workspace."""

    key: str
    value: Any
    origin: str
    help: NotRequired[str]
    warnings: NotRequired[list[str]]
    effective: NotRequired[dict[str, Any]]
    choices: NotRequired[list[str]]
    user_only: NotRequired[bool]


class TrustedSettingsView(TypedDict):
    """A project's trusted settings file, and the settings that apply from it."""

    file: str
    applied: dict[str, Any]


class EditedSettingsView(TypedDict, total=False):
    """The settings file that was edited, or the settings of the store that were changed."""

    edited: str
    changed: list[str]


def setting_view(key: str, value: Any, origin: str, warning: str | None = None) -> SettingView:
    view: SettingView = {"key": key, "value": plain_value(key, value), "origin": origin}
    if warning is not None:
        view["warnings"] = [warning]
    return view


def with_rules(view: SettingView, own: Rules) -> SettingView:
    """The setting `retention` with the rules that apply."""
    rules = rules_with(own)
    return {**view, "effective": {str(kind): rules[kind].to_plain() for kind in sorted(rules)}}


def for_a_form(view: SettingView) -> SettingView:
    """The setting with what a form needs to know about it."""
    from holdfast.domain.settings.schema import CHOICES, USER_ONLY

    key = view["key"]
    found: SettingView = {**view, "user_only": key in USER_ONLY}
    if key in CHOICES:
        found["choices"] = list(CHOICES[key])
    return found


def settings_view(values: Mapping[str, Any], origins: Mapping[str, str]) -> list[SettingView]:
    """All settings, each with its explanation."""
    from holdfast.domain.settings.schema import HELP

    return [
        {**setting_view(key, value, origins[key]), "help": HELP[key]}
        for key, value in values.items()
    ]


def plain_value(key: str, value: Any) -> Any:
    """A value as it is written in settings."""
    if key == "retention" and not isinstance(value, dict):
        return {str(kind): rule.to_plain() for kind, rule in value}
    return list(value) if isinstance(value, tuple) else value


def toml_value(key: str, value: Any) -> str:
    """A value as it is written in a settings file."""
    return _toml(plain_value(key, value))


def _toml(value: Any) -> str:
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + "}"
    # JSON strings, numbers and lists are valid TOML too.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)

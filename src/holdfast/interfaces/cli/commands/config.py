"""`holdfast config`: read and change the settings of a workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from holdfast.domain.errors import InvalidSetting, UsageError
from holdfast.domain.settings import parse_size
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import BOLD, DIM, visible
from holdfast.interfaces.cli.wording import size

_ACTIONS = {"list": 0, "get": 1, "set": 2, "unset": 1}
_SIZES = ("budget", "max_file_size", "component_max_size")
# What people type without the quotes that TOML wants around a text.
_BARE_TEXT = re.compile(r"[\w.][\w .+-]*\Z", re.ASCII)


def configure(parser: Parser) -> None:
    parser.usage = "holdfast config [list | get KEY | set KEY VALUE | unset KEY]"
    parser.description = """\
Read and change the settings of a workspace. VALUE is TOML: a number, a text in double quotes, or a
list in brackets; a single word needs no quotes. set writes into the workspace's store, which wins
over the project's file .holdfast/config.toml, which wins over the user's file
~/.config/holdfast/config.toml (under XDG_CONFIG_HOME, if that is set); unset takes the store's
value away again. list shows each setting with its value, where that comes from, and what it
means."""
    parser.epilog = """\
examples:
  $ holdfast config list
  $ holdfast config set include '[".env", "*.db"]'
  $ holdfast config set budget '"10 GB"'
  $ holdfast config set retention.tool '{age = "3 days", most = 100}'
  $ holdfast config get budget"""
    parser.add_argument("words", nargs="*", metavar="ACTION", help="list, get, set or unset")


def run(invocation: Invocation) -> int:
    action, *words = invocation.all_words or ["list"]
    if action not in _ACTIONS:
        raise UsageError(
            f"config does not know {action!r}",
            hint="use: config list, config get KEY, config set KEY VALUE, config unset KEY",
        )
    if len(words) != _ACTIONS[action]:
        forms = {"list": "", "get": " KEY", "set": " KEY VALUE", "unset": " KEY"}
        raise UsageError(
            f"config {action} takes {_takes(action)}, and {len(words) or 'none'} "
            f"{'was' if len(words) < 2 else 'were'} given",
            hint=f"use: holdfast config {action}{forms[action]}; quote a VALUE with spaces",
        )
    if action == "list":
        return _print_all(invocation)
    warning = None
    if action in ("set", "unset"):
        warning = _change(invocation, words[0], _parse(words[1]) if action == "set" else None)
    return _print_one(invocation, words[0], warning)


def _takes(action: str) -> str:
    return {0: "no argument", 1: "one argument", 2: "two arguments"}[_ACTIONS[action]]


def _change(invocation: Invocation, key: str, value: Any) -> str | None:
    """Store the value; what is worth knowing about it."""
    with invocation.open(create=value is not None) as opened:
        opened.engine.set_setting(key, value)
        used_bytes = opened.store.size_bytes()
    if key != "budget" or value is None or used_bytes <= parse_size(value):
        return None
    return (
        f"the store already takes {size(used_bytes)}, more than this budget. The next checkpoint "
        "first drops what the retention rules let go (holdfast cleanup --dry-run shows it) and is "
        "refused if that is not enough; nothing is dropped now, and restores still work"
    )


def _parse(text: str) -> Any:
    import tomllib

    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError as error:
        if _BARE_TEXT.match(text):
            return text
        raise InvalidSetting(
            f"{text!r} is not a TOML value: {error}",
            hint='a text needs double quotes: \'"10 GB"\'; a list: \'[".env", "*.db"]\'',
        ) from None
    if parsed.keys() != {"value"}:
        raise InvalidSetting(f"{text!r} is more than one value")
    return parsed["value"]


def _effective(invocation: Invocation) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Values by key, and where each comes from. A workspace without a store has settings too."""
    from dataclasses import fields

    from holdfast.bootstrap import (
        gather_settings,
        holdfast_home,
        require_project,
    )
    from holdfast.domain.settings import make_settings
    from holdfast.nested_projects import workspace_around

    if workspace_around(invocation.directory) is None:
        home = holdfast_home(os.environ)
        directory = require_project(invocation.directory, home, force=True)
        values, origins = gather_settings({}, directory, os.environ)
        settings = make_settings(values)
    else:
        with invocation.open() as opened:
            settings, origins = opened.engine.vault.settings, dict(opened.setting_origins)
    effective = {field.name: getattr(settings, field.name) for field in fields(settings)}
    retired = {key: origin for key, origin in origins.items() if key not in effective}
    return effective, {key: origins.get(key, "default") for key in effective} | retired


def _print_one(invocation: Invocation, key: str, warning: str | None = None) -> int:
    from holdfast.domain.settings import KEYS, RETIRED, unknown_setting

    key = key.partition(".")[0]
    if key in RETIRED:
        message = f"{key} no longer exists: {RETIRED[key]}"
        if invocation.json:
            invocation.emit({"key": key, "value": None, "origin": "none", "warnings": [message]})
        else:
            invocation.terminal.line(message)
        return 0
    if key not in KEYS:
        raise unknown_setting(key)
    values, origins = _effective(invocation)
    if invocation.json:
        value = _plain(key, values[key])
        warnings = {} if warning is None else {"warnings": [warning]}
        invocation.emit({"key": key, "value": value, "origin": origins[key]} | warnings)
    else:
        invocation.terminal.line(_toml(_plain(key, values[key])))
        if warning is not None:
            invocation.terminal.warn(warning)
    return 0


def _print_all(invocation: Invocation) -> int:
    from holdfast.domain.settings import HELP

    values, origins = _effective(invocation)
    if invocation.json:
        invocation.emit(
            [
                {
                    "key": key,
                    "value": _plain(key, value),
                    "origin": origins[key],
                    "help": HELP[key],
                }
                for key, value in values.items()
            ]
        )
        return 0
    terminal = invocation.terminal
    for key, value in values.items():
        words = f"  ({size(value)})" if key in _SIZES else ""
        setting = f"{terminal.paint(key, BOLD)} = {visible(_toml(_plain(key, value)))}"
        terminal.line(f"{setting}{terminal.paint(words, DIM)}")
        origin = visible(origins[key])
        terminal.line(terminal.paint(f"    {HELP[key]} [{origin}]", DIM))
    _warn_of_retired(invocation, origins)
    _print_files(invocation)
    return 0


def _warn_of_retired(invocation: Invocation, origins: Mapping[str, str]) -> None:
    """Settings of earlier versions that somebody still has, and that do nothing."""
    from holdfast.domain.settings import RETIRED

    for key in RETIRED.keys() & origins.keys():
        place = origins[key]
        way = f"holdfast config unset {key}" if place == "store" else f"remove it from {place}"
        invocation.terminal.warn(f"{key} has no effect: {RETIRED[key]}. To remove it: {way}")


def _print_files(invocation: Invocation) -> None:
    """Where values can be written by hand; the first file that has a key wins."""
    from holdfast.bootstrap import project_settings_file, user_settings_file
    from holdfast.nested_projects import workspace_around

    workspace = workspace_around(invocation.directory) or invocation.directory.resolve()
    terminal = invocation.terminal
    terminal.line()
    for label, path in (
        ("project's file", project_settings_file(workspace)),
        ("user's file", user_settings_file(os.environ)),
    ):
        absent = "" if path.exists() else terminal.paint("  (not there)", DIM)
        terminal.line(f"{label:<14} {visible(str(path))}{absent}")


def _plain(key: str, value: Any) -> Any:
    """A value as it is written in settings."""
    if key == "retention":
        return {str(kind): rule.to_plain() for kind, rule in value}
    return value


def _toml(value: Any) -> str:
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + "}"
    # JSON's texts, numbers and lists are TOML's as well.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)

"""`holdfast config`: read and change the settings of a workspace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.api.views.settings import (
    EditedSettingsView,
    TrustedSettingsView,
    plain_value,
    setting_view,
    settings_view,
    toml_value,
)
from holdfast.domain.errors import UsageError
from holdfast.domain.settings.schema import parse_size
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import BOLD, DIM, visible
from holdfast.interfaces.cli.wording import size
from holdfast.values.classes import fields

ANSWERS = True
ACTIONS = {
    "list": "show every setting",
    "get": "show one setting",
    "set": "change a setting",
    "add": "add entries to a list",
    "remove": "remove entries from a list",
    "unset": "remove a value from the store",
    "edit": "open the settings in your editor",
    "trust": "apply the project's file as it is now",
}
_WORDS = {
    "get": " KEY",
    "set": " KEY VALUE",
    "add": " KEY VALUE",
    "remove": " KEY VALUE",
    "unset": " KEY",
    "edit": " [--user | --project]",
}


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast config [list | get KEY | set KEY VALUE | add KEY VALUE |\n"
        "           remove KEY VALUE | unset KEY | edit | trust]"
    )
    parser.description = """\
Show and change settings. Values need no quotes: write 10GB, 17:30 or .env *.db. TOML works too,
such as [".env", "*.db"].

list shows each setting with its value, origin and meaning. set writes to the workspace's store, and
unset removes that value. For lists such as include and ignore, set replaces the whole list, and add
and remove change single entries. edit opens the store's settings in your editor (VISUAL or EDITOR);
--user and --project open those files.

Order of precedence, highest first:
  1. environment variables, such as HOLDFAST_AUTO_INTERVAL=30
  2. the store (config set)
  3. the project's file .holdfast/config.toml
  4. the user's file ~/.config/holdfast/config.toml (or under XDG_CONFIG_HOME)

A project's file can come with a clone. Until you run trust, only its include and accept_template
apply, because the other settings can weaken protection. If the file changes, run trust again."""
    parser.epilog = """\
examples:
  $ holdfast config list
  $ holdfast config set end_of_day 17:30
  $ holdfast config set budget 10GB
  $ holdfast config add include .env '*.db'
  $ holdfast config set retention.tool '{age = "3 days", most = 100}'
  $ holdfast config edit --user"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="ACTION",
        help="list, get, set, add, remove, unset, edit or trust",
    )
    parser.add_argument("--user", action="store_true", help="edit: the user's file")
    parser.add_argument("--project", action="store_true", help="edit: the project's file")


def run(invocation: Invocation) -> int:
    action, *words = invocation.all_words or ["list"]
    if action not in ACTIONS:
        raise UsageError(
            f"unknown action: config {action!r}",
            hint="use: " + ", ".join(f"config {name}{_WORDS.get(name, '')}" for name in ACTIONS),
        )
    _require_words(action, words)
    options = invocation.options
    if (options.user or options.project) and action != "edit":
        raise UsageError(
            "--user and --project only work with edit",
            hint="usage: holdfast config edit --user",
        )
    if action == "list":
        return _print_all(invocation)
    if action == "edit":
        return _edit(invocation)
    if action == "trust":
        return _trust(invocation)
    warning = None
    if action != "get":
        warning = _change(invocation, action, words[0], words[1:])
    return _print_one(invocation, words[0], warning, in_words=action == "set")


def _require_words(action: str, words: list[str]) -> None:
    form = _WORDS.get(action, "")
    least = form.count(" ") if action != "edit" else 0
    if len(words) >= least and (len(words) == least or form.endswith(" VALUE")):
        return
    missing = form.split()[len(words) :]
    wrong = f"{' and '.join(missing)} missing" if missing else f"unexpected {words[least]!r}"
    raise UsageError(f"config {action}: {wrong}", hint=f"usage: holdfast config {action}{form}")


def _edit(invocation: Invocation) -> int:
    from holdfast.api.settings import trust_settings
    from holdfast.interfaces.cli.settings_editor import edit_file, edit_store

    options = invocation.options
    if options.user and options.project:
        raise UsageError("--user cannot be used with --project", hint="choose one")
    if options.user or options.project:
        file = _user_file() if options.user else _project_file(invocation)
        edit_file(invocation, file)
        if options.project:  # the user has just written it, so it is trusted
            trust_settings(file.parent.parent, os.environ)
        view = EditedSettingsView(edited=str(file))
        said = f"Edited {visible(str(file))}"
    else:
        changed = edit_store(invocation)
        view = EditedSettingsView(changed=changed)
        said = f"Changed {', '.join(changed)}" if changed else "Nothing was changed"
    if invocation.json:
        invocation.emit(view)
    else:
        invocation.terminal.line(said)
    return 0


def _trust(invocation: Invocation) -> int:
    """Trust the project's file as it is now."""
    from holdfast.api.settings import trust_settings

    file = _project_file(invocation)
    project = trust_settings(file.parent.parent, os.environ)
    if invocation.json:
        applied = {key: plain_value(key, value) for key, value in project.values.items()}
        view: TrustedSettingsView = {"file": str(file), "applied": applied}
        invocation.emit(view)
        return 0
    terminal = invocation.terminal
    terminal.line(f"Trusted {visible(str(file))}")
    for key, value in project.values.items():
        terminal.line(f"  {key} = {visible(toml_value(key, value))}")
    for why in project.held_back.values():
        terminal.warn(f"not applied: {visible(why)}")
    return 0


def _change(invocation: Invocation, action: str, key: str, words: list[str]) -> str | None:
    """Store the value. Returns a warning about it, if there is one."""
    from holdfast.api.settings import typed_entries, typed_value

    value = typed_value(key, words) if action == "set" else None
    entries = typed_entries(key, words) if action in ("add", "remove") else []
    with invocation.open(create=action in ("set", "add")) as opened:
        if action == "add":
            opened.settings.add(key, entries)
        elif action == "remove":
            opened.settings.remove(key, entries)
        else:
            opened.settings.set(key, value)
        used_bytes = opened.upkeep.size_bytes()
        origin = opened.settings.origins.get(key, "")
    if origin.startswith("HOLDFAST_"):
        return f"{origin} is set in the environment and overrides this value"
    if key != "budget" or value is None or used_bytes <= parse_size(value):
        return None
    return (
        f"the store already uses {size(used_bytes)}, more than this budget. The next "
        "checkpoint removes expired checkpoints (see: holdfast cleanup --dry-run), then old "
        "automatic ones. If that is not enough, it leaves out large files. Nothing is removed "
        "now"
    )


def _effective(invocation: Invocation) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Values by key, and their origins. A workspace without a store has settings too. Opening a
    store reports its invalid settings."""
    from holdfast.api.settings import gather_settings
    from holdfast.api.stores import holdfast_home, require_project, workspace_around
    from holdfast.domain.settings.schema import make_settings

    if workspace_around(invocation.directory) is None:
        home = holdfast_home(os.environ)
        directory = require_project(invocation.directory, home, force=True)
        found = gather_settings({}, directory, os.environ)
        settings, origins = make_settings(found.values), found.origins
        invocation.warn_of_settings(found.problems)
    else:
        with invocation.open() as opened:
            settings, origins = opened.settings.effective, dict(opened.settings.origins)
    effective = {field.name: getattr(settings, field.name) for field in fields(settings)}
    retired = {key: origin for key, origin in origins.items() if key not in effective}
    return effective, {key: origins.get(key, "default") for key in effective} | retired


def _print_one(
    invocation: Invocation, key: str, warning: str | None = None, *, in_words: bool = False
) -> int:
    """The value as scripts read it. A size that was just set is also shown in words."""
    from holdfast.domain.settings.schema import KEYS, RETIRED, SIZES, unknown_setting

    key = key.partition(".")[0]
    if key in RETIRED:
        message = f"{key} no longer exists: {RETIRED[key]}"
        if invocation.json:
            invocation.emit(setting_view(key, None, "none", message))
        else:
            invocation.terminal.line(message)
        return 0
    if key not in KEYS:
        raise unknown_setting(key)
    values, origins = _effective(invocation)
    if invocation.json:
        invocation.emit(setting_view(key, values[key], origins[key], warning))
    else:
        words = f"  ({size(values[key])})" if in_words and key in SIZES else ""
        invocation.terminal.line(f"{toml_value(key, values[key])}{words}")
        if warning is not None:
            invocation.terminal.warn(warning)
    return 0


def _print_all(invocation: Invocation) -> int:
    from holdfast.domain.settings.schema import HELP, SIZES

    values, origins = _effective(invocation)
    if invocation.json:
        invocation.emit(settings_view(values, origins))
        return 0
    terminal = invocation.terminal
    for key, value in values.items():
        words = f"  ({size(value)})" if key in SIZES else ""
        setting = f"{terminal.paint(key, BOLD)} = {visible(toml_value(key, value))}"
        terminal.sentence(f"{setting}{terminal.paint(words, DIM)}", hang=4)
        origin = visible(origins[key])
        terminal.sentence(f"    {HELP[key]} [{origin}]", DIM, hang=4)
    _warn_of_retired(invocation, origins)
    _warn_of_untrusted(invocation)
    _print_files(invocation)
    return 0


def _warn_of_retired(invocation: Invocation, origins: Mapping[str, str]) -> None:
    """Warn about settings of earlier versions that no longer have an effect."""
    from holdfast.domain.settings.schema import RETIRED

    for key in RETIRED.keys() & origins.keys():
        place = origins[key]
        way = f"holdfast config unset {key}" if place == "store" else f"remove it from {place}"
        invocation.terminal.warn(f"{key} has no effect: {RETIRED[key]}. To remove it: {way}")


def _warn_of_untrusted(invocation: Invocation) -> None:
    from holdfast.api.settings import project_settings

    file = _project_file(invocation)
    project = project_settings(file.parent.parent, os.environ)
    if project.waiting:
        invocation.terminal.warn(
            f"{', '.join(project.waiting)} in {file} can weaken protection and "
            f"{'is' if len(project.waiting) == 1 else 'are'} not applied. If you agree with the "
            "file: holdfast config trust"
        )


def _print_files(invocation: Invocation) -> None:
    """The files for manual edits; the first one that has a key wins."""
    terminal = invocation.terminal
    terminal.line()
    files = {"project's file": _project_file(invocation), "user's file": _user_file()}
    for label, path in files.items():
        absent = "" if path.exists() else terminal.paint("  (does not exist)", DIM)
        terminal.sentence(f"{label:<14} {visible(str(path))}{absent}", hang=15)


def _project_file(invocation: Invocation) -> Path:
    from holdfast.api.settings import project_settings_file
    from holdfast.api.stores import workspace_for

    return project_settings_file(workspace_for(invocation.directory))


def _user_file() -> Path:
    from holdfast.api.settings import user_settings_file

    return user_settings_file(os.environ)

"""Stores a workspace's settings, and parses values as people type them.

    17:30    10 GB    .env *.db    "10 GB"    [".env", "*.db"]    on, true, yes, 1

A valid TOML value is used as such. Otherwise the words are one text, or the entries of a list,
separated by commas and spaces. Quotes work as in a shell.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.domain.errors import InvalidSetting
from holdfast.domain.settings.schema import DEFAULTS, RETIRED, USER_ONLY, check_setting

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine


def set_setting(engine: Engine, key: str, value: Any) -> None:
    """Store a setting of this workspace; None removes it. A dot in the key selects one entry of a
    table."""
    catalog = engine.vault.catalog
    with engine.recovered():
        key, _, entry = key.partition(".")
        if entry:
            table = json.loads(catalog.settings().get(key, "{}"))
            value = {**table, entry: value} if value is not None else _without(table, entry)
        if value is not None or key not in RETIRED:  # a retired one can still be removed
            check_setting(key, DEFAULTS.get(key) if value is None else value)
        if key in USER_ONLY:
            raise InvalidSetting(
                f"{key} cannot be set for one store",
                hint="write it to the user's settings file",
            )
        with catalog.transaction() as transaction:
            transaction.set_setting(key, None if value is None else json.dumps(value))


def change_list(
    engine: Engine, key: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> None:
    """Add and remove list entries. Starts from the stored list or, without one, from the effective
    list, so that entries from a settings file are kept."""
    vault = engine.vault
    with engine.recovered():
        _require_list(key)
        stored = vault.catalog.settings().get(key)
        entries = list(getattr(vault.settings, key) if stored is None else json.loads(stored))
        unknown = [entry for entry in remove if entry not in entries]
        if unknown:
            raise InvalidSetting(
                f"{', '.join(map(repr, unknown))} not found in {key}",
                hint=f"show the list: holdfast config get {key}",
            )
        left = [entry for entry in entries if entry not in remove]
        set_setting(engine, key, list(dict.fromkeys([*left, *add])))


_NO_LISTS = ("retention", "check_command")
"""A table, and one command."""


def _require_list(key: str) -> None:
    check_setting(key, DEFAULTS.get(key))
    if not isinstance(DEFAULTS[key], tuple) or key in _NO_LISTS:
        raise InvalidSetting(f"{key} is not a list", hint=f"use: holdfast config set {key} VALUE")


def _without(table: Any, entry: str) -> Any:
    """The table without an entry; None if it becomes empty."""
    return {key: value for key, value in dict(table).items() if key != entry} or None


_SWITCH = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}
_TOML_ONLY = ("[", "{", '"', "'")
"""A text that starts like this and is valid TOML is read as TOML."""


def parse_value(key: str, words: Sequence[str]) -> Any:
    """The value, ready to be stored; `InvalidSetting` says which values are valid."""
    text = " ".join(words)
    candidates: list[Any] = []
    trouble: tomllib.TOMLDecodeError | None = None
    try:
        candidates.append(_toml(text))
    except tomllib.TOMLDecodeError as error:
        trouble = error
    if trouble is not None or text[:1] not in _TOML_ONLY:
        candidates += _plain(key, text, words)
    first: InvalidSetting | None = None
    for candidate in candidates:
        try:
            check_setting(key, candidate)
        except InvalidSetting as error:
            first = first or error
        else:
            return candidate
    if first is not None:
        raise first
    raise InvalidSetting(
        f"{text!r} is not a TOML value: {trouble}",
        hint="close its quotes and brackets, or write plain words: holdfast config set budget 10GB",
    )


def parse_entry(words: Sequence[str]) -> Any:
    """A value for one table entry; it is checked together with the table."""
    text = " ".join(words)
    try:
        return _toml(text)
    except tomllib.TOMLDecodeError:
        return text


def parse_entries(key: str, words: Sequence[str]) -> list[Any]:
    """List entries: each word is one, with its spaces and commas; or a TOML list."""
    _require_list(key)
    text = " ".join(words)
    if text.startswith("["):  # a pattern may begin like this, too
        try:
            parsed = _toml(text)
        except tomllib.TOMLDecodeError:
            return list(words)
        return parsed if isinstance(parsed, list) else list(words)
    return list(words)


def _toml(text: str) -> Any:
    parsed = tomllib.loads(f"value = {text}")
    if parsed.keys() != {"value"}:
        raise InvalidSetting(f"{text!r} is more than one value")
    return parsed["value"]


def _plain(key: str, text: str, words: Sequence[str]) -> Iterator[Any]:
    default = DEFAULTS.get(key)
    is_list = isinstance(default, tuple) and key != "retention"
    broken = ("[",) if is_list else ("[", '"', "'") if isinstance(default, str) else _TOML_ONLY
    if text.startswith(broken):
        return  # meant as TOML, but invalid
    if default in ("on", "off"):
        yield _SWITCH.get(text.lower(), text)
    if not is_list:
        yield text
    elif len(words) > 1:
        yield list(words)
    else:
        # The words of a command may contain commas.
        yield _entries(text if key == "check_command" else text.replace(",", " "))


def _entries(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is not closed
        return [text]

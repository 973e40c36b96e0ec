"""Adds, removes and finds Holdfast's MCP server in an agent's settings. All other text is kept.

Works on the text of a settings file, JSON with comments or TOML. Removing the entry restores the
previous file, to the byte. An entry in an object that was empty is marked by a space on both sides;
one in an object that Holdfast created is not. In TOML the entry is a table at the end:

    parse the text → append or cut Holdfast's lines → parse again: only that table may differ

Holdfast's lines inside another string are not mistaken for a table, since the parsed value would
differ.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from holdfast.interfaces.agent_setup.holdfast_command import NAME, own_command_length
from holdfast.interfaces.agent_setup.json_text import (
    Child,
    Node,
    NotJson,
    append,
    cut,
    has_comments,
    load,
    plain,
    put,
    remove,
    scan,
    was_empty,
)
from holdfast.interfaces.agent_setup.settings_file import NotToml, load_toml
from holdfast.interfaces.agents.agent import Server

_STRING = r'"(?:[^"\\\r\n]|\\.)*"'


def with_table(text: str | None, table: str, name: str, entry: Mapping[str, Any]) -> str | None:
    """The text with one more table at its end; None if that would change anything else, as for
    inline tables."""
    newline = "\r\n" if text is not None and "\r\n" in text else "\n"
    lines = [f"[{table}.{name}]", *(f"{key} = {_shown(entry[key])}" for key in entry), ""]
    added = newline.join(lines)
    edited = added if text is None else text + newline + added
    try:
        found = load_toml(edited)
    except NotToml:
        return None
    before = {} if text is None else load_toml(text)
    is_there = found[table][name] == entry
    return edited if is_there and _without(found, table, name) == _without(before) else None


def without_table(text: str, table: str, name: str) -> tuple[str, bool] | None:
    """The text without Holdfast's lines, and whether the file existed before them; None if the
    lines were edited."""
    wanted = _without(load_toml(text), table, name)
    for match in _lines_of(table, name).finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        joint = match["lead"] if before and after and not before.endswith("\n") else ""
        left = before + (joint or "") + after
        try:
            if _without(load_toml(left)) == wanted:
                return left, bool(left) or match["lead"] is not None
        except NotToml:
            continue
    return None


def _lines_of(table: str, name: str) -> re.Pattern[str]:
    header = re.escape(f"[{table}.{name}]")
    return re.compile(
        rf"(?:\A|(?P<lead>\r?\n)){header}\r?\ncommand = {_STRING}\r?\n"
        rf"args = \[(?:{_STRING}(?:, )?)*\](?:\r?\n|\Z)"
    )


def _without(found: dict[str, Any], table: str | None = None, name: str | None = None) -> str:
    """Everything except one table, in a form in which NaN equals itself."""
    rest = dict(found)
    if table is not None:
        rest[table] = {key: value for key, value in found[table].items() if key != name}
    return repr({key: value for key, value in rest.items() if value != {}})


def _shown(value: str | list[str]) -> str:
    """A string or a list of strings, in syntax that TOML shares with JSON."""
    return json.dumps(value, ensure_ascii=False)


_EMPTY = "{}\n"


class NotOurs(Exception):
    """The existing entry is not Holdfast's; the message says why it is not edited."""


def found_server(text: str, server: Server) -> Any:
    """The entry under Holdfast's name; None if there is none, False for a null."""
    wrong = NotToml if server.toml else NotJson
    settings = load_toml(text) if server.toml else load(text)
    if not isinstance(settings, dict):
        raise wrong("the settings are not an object")
    table = settings.get(server.table, {})
    if not isinstance(table, dict):
        raise wrong(f"{server.table} is not {'a table' if server.toml else 'an object'}")
    return False if NAME in table and table[NAME] is None else table.get(NAME)


def with_server(text: str | None, server: Server) -> str:
    """The settings with Holdfast's entry as this version writes it."""
    found = None if text is None else found_server(text, server)
    if text is not None and found == server.entry:
        return text
    if text is not None and found is not None:
        text = without_server(text, server)
    if not server.toml:
        return _with_member(text, server)
    edited = with_table(text, server.table, NAME, server.entry)
    if edited is None:
        shown = ", ".join(
            f"{key} = {json.dumps(server.entry[key], ensure_ascii=False)}" for key in server.entry
        )
        raise NotOurs(
            f"cannot add a table to {server.table} as it is written; add this line to it by "
            f"hand: {NAME} = {{{shown}}}"
        )
    return edited


def without_server(text: str, server: Server) -> str | None:
    """The settings without Holdfast's entry; None if `install` created the file."""
    found = found_server(text, server)
    if found is None:
        return text
    if not is_our_entry(found, server):
        raise NotOurs(f"{server.table}.{NAME} was edited, or is not from Holdfast")
    if not server.toml:
        rest = _without_member(text, server)
        return None if rest is None else without_server(rest, server)  # a key may occur twice
    left = without_table(text, server.table, NAME)
    if left is None:
        raise NotOurs(f"the lines of {server.table}.{NAME} were edited")
    return left[0] if left[1] else None


def _with_member(text: str | None, server: Server) -> str:
    entry = dict(server.entry)
    if text is None:
        return append(_EMPTY, scan(_EMPTY), {NAME: entry}, server.table)
    root = scan(text)
    table = root.member(server.table)
    if table is None:
        return put(text, root, {NAME: entry}, server.table)
    return put(text, table, entry, NAME)


def _without_member(text: str, server: Server) -> str | None:
    root = scan(text)
    top = _last(root, server.table)
    child = _last(top.value, NAME)
    if was_empty(text, top.value, child):
        return cut(text, top.value, child)
    alone = len(top.value.children) == 1
    if not alone or has_comments(text, top.start, top.value.end):
        return remove(text, top.value, child)
    if was_empty(text, root, top):
        return cut(text, root, top)
    left = remove(text, root, top)
    made_for_it = plain(scan(left)) == {} and not has_comments(left, 0, len(left))
    return None if made_for_it else left


def _last(container: Node, key: str) -> Child:
    """The last member with a key, which counts if the key occurs twice."""
    return [child for child in container.children if child.key == key][-1]


def is_our_entry(found: Any, server: Server) -> bool:
    """Whether `install` wrote an entry, however it calls the program."""
    if not isinstance(found, dict) or found.keys() != server.entry.keys():
        return False
    rest = [key for key in found if key not in ("command", "args")]
    if any(found[key] != server.entry[key] for key in rest):
        return False
    given = _arguments(found)
    return given is not None and given == _arguments(server.entry)


def program_of(found: Mapping[str, Any]) -> str:
    """The words by which Holdfast's entry calls it."""
    words = _words(found)
    return shlex.join(words[: own_command_length(words)])


def _arguments(entry: Mapping[str, Any]) -> list[str] | None:
    """The arguments of a Holdfast program; None for another program."""
    words = _words(entry)
    if not all(isinstance(word, str) for word in words):
        return None
    called = own_command_length(words)
    return None if called is None else words[called:]


def _words(entry: Mapping[str, Any]) -> list[Any]:
    command, more = entry.get("command"), entry.get("args", [])
    command = command if isinstance(command, list) else [command]
    return [*command, *(more if isinstance(more, list) else [None])]

"""A table of ours at the end of a TOML text that is edited, not written anew.

    read the text → append or cut our lines → read again: nothing but our table may differ

What is appended is cut again to the byte. Lines of ours that stand inside a text of somebody else
are not taken for a table, since what is read would differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_STRING = r'"(?:[^"\\\r\n]|\\.)*"'


class NotToml(Exception):
    """The text is not TOML; where and why."""


def load_toml(text: str) -> dict[str, Any]:
    import tomllib  # most agents have no such settings

    try:
        return tomllib.loads(text)
    except ValueError as error:  # also a number of more digits than Python reads
        raise NotToml(str(error)) from None
    except RecursionError:
        raise NotToml("nested too deeply") from None


def with_table(text: str | None, table: str, name: str, entry: Mapping[str, Any]) -> str | None:
    """The text with one more table at its end; None when that would change anything else, as it
    does where the tables are written inline."""
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
    """The text without our lines, and whether there was a file before them; None when they are not
    as they were written."""
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
    """Everything but one table, in a form in which what is not a number equals itself."""
    rest = dict(found)
    if table is not None:
        rest[table] = {key: value for key, value in found[table].items() if key != name}
    return repr({key: value for key, value in rest.items() if value != {}})


def _shown(value: str | list[str]) -> str:
    """A text or a list of texts, in a form that TOML shares with JSON."""
    return json.dumps(value, ensure_ascii=False)

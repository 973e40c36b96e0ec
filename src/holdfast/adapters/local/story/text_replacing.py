"""Replacing a text in every row of the story that has it, all within one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import apsw

from holdfast.adapters.local.story.rows import COLUMNS, INSERT, require_sealed, sealed
from holdfast.domain.text_replacement import TextReplacement

_TEXTS = {
    "messages": ("content",),
    "annotations": ("text", "author"),
    "activities": ("reason", "outcome"),
}
_JSON = {"messages": ("tool_calls",), "activities": ("paths",)}
_WORDS = {"activities": "edits"}


def replace_text(
    db: apsw.Connection, replacement: TextReplacement, diff: Callable[[bytes], bytes]
) -> Mapping[str, int]:
    """How many messages, annotations and edits said something else before."""
    counts = Counter[str]()
    for table in _TEXTS:
        names = COLUMNS[table].split(", ")
        changed = []
        for row in db.execute(f"SELECT {COLUMNS[table]} FROM {table}"):
            values = dict(zip(names[:-1], require_sealed(table, row)[:-1], strict=True))
            new = tuple(_replaced(table, values, replacement, diff).values())
            if new != row[:-1]:
                changed.append(sealed(table, new))
        for row in changed:
            db.execute(INSERT[table].replace("INSERT", "INSERT OR REPLACE", 1), row)
        if changed:
            counts[_WORDS.get(table, table)] = len(changed)
    return counts


def _replaced(
    table: str,
    values: dict[str, Any],
    replacement: TextReplacement,
    diff: Callable[[bytes], bytes],
) -> dict[str, Any]:
    changed = dict(values)
    for name in _TEXTS[table]:
        if values[name] is not None:
            changed[name] = replacement.text(values[name])
    for name in _JSON.get(table, ()):
        changed[name] = replacement.json(values[name])
    if values.get("diff") is not None:
        changed["diff"] = diff(values["diff"])
    return changed

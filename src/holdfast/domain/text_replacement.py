"""Replacing a text wherever it is written: plain, and escaped as JSON inside other text."""

from __future__ import annotations

import json
from typing import Any

PURGED_MARK = "[purged]"
SHORTEST_TEXT = 4
"""A shorter one would be found in words that have nothing to do with it."""


class TextReplacement:
    """Puts a mark in the place of one text."""

    def __init__(self, text: str) -> None:
        escaped = [json.dumps(text, ensure_ascii=only)[1:-1] for only in (True, False)]
        twice = [json.dumps(form, ensure_ascii=False)[1:-1] for form in escaped]
        forms = dict.fromkeys((*twice, *escaped, text))
        # The longest first: a shorter form may be a part of it.
        self.forms = tuple(sorted(forms, key=len, reverse=True))

    @property
    def needles(self) -> tuple[bytes, ...]:
        """The forms as the bytes of a file."""
        return tuple(form.encode("utf-8", "surrogateescape") for form in self.forms)

    def is_in(self, text: str) -> bool:
        return any(form in text for form in self.forms)

    def text(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, PURGED_MARK)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value, with the text replaced in every string of it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(one) for key, one in value.items()}
        return value

    def json(self, text: str) -> str:
        """The text of a JSON value; the same text where nothing is to be replaced."""
        before = json.loads(text)
        after = self.value(before)
        return text if after == before else json.dumps(after)

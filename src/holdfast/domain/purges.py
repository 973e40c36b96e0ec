"""Purges: replacing a text, the removed content, and the proof of removal.

A text is replaced in plain form, and escaped as JSON inside other text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from holdfast.domain.ids import CheckpointId
from holdfast.domain.wording import count_words
from holdfast.values.classes import dataclass, field

PURGED_MARK = "[purged]"
SHORTEST_TEXT = 4
"""A shorter text would occur in unrelated words."""


class TextReplacement:
    """Replaces every form of one text with a mark."""

    def __init__(self, text: str) -> None:
        escaped = [json.dumps(text, ensure_ascii=only)[1:-1] for only in (True, False)]
        twice = [json.dumps(form, ensure_ascii=False)[1:-1] for form in escaped]
        forms = dict.fromkeys((*twice, *escaped, text))
        # The longest first: a shorter form may be a part of it.
        self.forms = tuple(sorted(forms, key=len, reverse=True))

    @property
    def needles(self) -> tuple[bytes, ...]:
        """The forms as bytes, to search files for."""
        return tuple(form.encode("utf-8", "surrogateescape") for form in self.forms)

    def is_in(self, text: str) -> bool:
        return any(form in text for form in self.forms)

    def text(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, PURGED_MARK)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with the text replaced in every string."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(one) for one in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(one) for key, one in value.items()}
        return value

    def json(self, text: str) -> str:
        """Replace in the text of a JSON value; unchanged text if there is nothing to replace."""
        before = json.loads(text)
        after = self.value(before)
        return text if after == before else json.dumps(after)


@dataclass(frozen=True, slots=True)
class Trace:
    """A place in the store's files where removed content can still be read."""

    file: str
    what: str


@dataclass(frozen=True, slots=True)
class PurgeProof:
    """The result of searching the raw bytes of every store file.

    `elsewhere` lists other paths with some of the same bytes, which are kept. `components` names
    other data with such bytes in checkpoints, such as database dumps.
    """

    files: int
    searched_bytes: int
    digests: int
    samples: int
    traces: tuple[Trace, ...] = ()
    elsewhere: tuple[bytes, ...] = ()
    components: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Purged:
    """Purged content as other places know it: workspace paths, and git object ids. Not `is_whole`
    if there were too many to compute."""

    paths: tuple[bytes, ...] = ()
    git_ids: frozenset[str] = frozenset()
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Holder:
    """A place outside the store that still has purged content or, if not `is_held`, was not
    searched. `how` is the fix."""

    where: str
    what: str
    how: str = ""
    is_held: bool = True


@dataclass(frozen=True, slots=True)
class PurgeOutcome:
    """A finished purge. Content `still_in_workspace` is saved again by the next checkpoint.
    `holders` still have it, or were not searched."""

    removed: tuple[CheckpointId, ...]
    changed: tuple[CheckpointId, ...]
    paths: tuple[bytes, ...]
    objects: int
    freed_bytes: int
    proof: PurgeProof
    still_in_workspace: tuple[bytes, ...] = ()
    resumed: bool = False
    holders: tuple[Holder, ...] = ()
    warnings: tuple[str, ...] = ()
    said: Mapping[str, int] = field(default_factory=dict)
    """How many messages, checkpoints and other records had the text replaced."""


def count_in_words(said: Mapping[str, int]) -> str:
    """`2 messages, 1 checkpoint`."""
    return ", ".join(count_words(number, kind.removesuffix("s")) for kind, number in said.items())

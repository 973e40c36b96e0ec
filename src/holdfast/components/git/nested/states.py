"""What a checkpoint says about repositories inside the workspace, as values that nobody trusts.

They are part of the state of the component: a row for each in its facts, its contents named
`nested/NUMBER/…`, its notes beside those of the repository around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.domain.component_states import ComponentState, StoredContent
from holdfast.domain.errors import HoldfastError
from holdfast.domain.paths import from_text, require_safe_path, to_text
from holdfast.ports.component import Captured, ComponentProblem, ContentSink, ContentSource

NESTED, LEFT_OUT, COMMON = "nested", "nested_left_out", "common"
MOST_ROWS = 500
_MOST_STAGED = 20


@dataclass(frozen=True, slots=True)
class NestedRow:
    """One repository; `state` is None where `failure` says why it was not captured."""

    number: int
    path: bytes
    link: bytes | None
    linked: bool
    state: ComponentState | None
    failure: str | None


def has_nested(state: ComponentState | None) -> bool:
    return state is not None and NESTED in state.facts


def has_own(state: ComponentState) -> bool:
    """Whether the workspace itself was in a repository."""
    return not has_nested(state) or "head" in state.facts


def rows_of(state: ComponentState) -> list[NestedRow]:
    """`ComponentProblem` when this is nothing that a capture would have made."""
    try:
        return list(_rows(state))
    except (LookupError, TypeError, ValueError, AttributeError, HoldfastError) as error:
        text = f"what the checkpoint says about nested repositories is unusable: {error}"
        raise ComponentProblem(text) from None


def _rows(state: ComponentState) -> Iterator[NestedRow]:
    notes: Mapping[str, Any] = state.notes.get(NESTED, {})
    for number, row in enumerate(state.facts.get(NESTED, ())):
        facts, failure = row.get("facts"), row.get("failure")
        path = require_safe_path(from_text(row["path"]))
        link = None if row["link"] is None else from_text(row["link"])
        if link is not None and (not link or set(link) & set(b"\0\n")):
            raise ValueError(f"{row['link']!r:.80} leads nowhere")
        one = None
        if facts is not None:
            prefix = content_prefix(number)
            contents = tuple(
                replace(content, name=content.name.removeprefix(prefix))
                for content in state.contents
                if content.name.startswith(prefix)
            )
            one = ComponentState(
                state.name, facts, contents, notes=dict(notes.get(row["path"], {}))
            )
        yield NestedRow(number, path, link, row["linked"] is True, one, failure)


def kept_in_nested(state: ComponentState) -> Iterator[tuple[str, bytes]]:
    """What the state needs: the git directory, relative to the workspace, and the reference."""
    for notes in state.notes.get(NESTED, {}).values():
        if "ref" in notes:
            yield notes[COMMON], from_text(notes["ref"])


def content_prefix(number: int) -> str:
    return f"{NESTED}/{number}/"


def new_row(path: bytes, link: bytes | None, *, linked: bool) -> dict[str, Any]:
    text = None if link is None else to_text(link)
    return {"path": to_text(path), "link": text, "linked": linked}


def facts_of(captured: Captured) -> dict[str, Any]:
    """What is told of a nested one: the index has all that is staged."""
    return captured.facts | {"staged": captured.facts["staged"][:_MOST_STAGED]}


class NestedSink:
    """A sink for the contents of one nested repository."""

    def __init__(self, sink: ContentSink, number: int) -> None:
        self._sink = sink
        self._prefix = content_prefix(number)

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        self._sink.add(self._prefix + name, pieces)

    def keep(self, name: str, content: StoredContent) -> None:
        self._sink.keep(self._prefix + name, content)


class NestedSource:
    """The contents of one nested repository."""

    def __init__(self, source: ContentSource, number: int) -> None:
        self._source = source
        self._prefix = content_prefix(number)

    def read(self, name: str) -> Iterator[bytes]:
        return self._source.read(self._prefix + name)

"""State other than files in a checkpoint: one entry for each component.

The manifest is one object in the store, and the checkpoint's row names it. It names the content of
components, so reachability has to read it. Canonical JSON:

    {"version": 1, "components": [{"name", "facts", "contents", "problems", "failure", "notes"}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest, parse_digest
from holdfast.values.classes import dataclass, field

EXACT = "exact"
"""The mode that every component supports: restore exactly the saved state. Undo uses it."""

SOME = "some"
"""The mode for components whose parts can be chosen: `some:KEY,KEY`."""

BELOW = "below"
"""For plans only: the parts at some paths and below them, `below:KEY,KEY`. Each has a key that
`some` accepts."""

LARGEST_MANIFEST_BYTES = 4 << 20
MOST_CONTENTS = 100_000
_VERSION = 1
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class StoredContent:
    """Bytes from a component, stored whole or as chunks."""

    name: str
    digest: Digest
    chunks: Digest | None
    size: int


@dataclass(frozen=True, slots=True)
class ComponentState:
    """One component at one moment.

    `facts` describes its state. `problems` lists the parts that could not be captured. `failure`
    says why nothing was. `notes` are private to the component and not part of the state: states
    that differ only in notes are equal.
    """

    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    contents: tuple[StoredContent, ...] = ()
    problems: tuple[str, ...] = ()
    failure: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)

    def same_as(self, other: ComponentState | None) -> bool:
        return other is not None and _shape(self) == _shape(other)

    def content(self, name: str) -> StoredContent | None:
        return next((content for content in self.contents if content.name == name), None)

    def by_name(self) -> dict[str, StoredContent]:
        """The contents, for looking up many of them."""
        return {content.name: content for content in self.contents}

    @property
    def troubles(self) -> tuple[str, ...]:
        """Everything that is missing, as messages for people."""
        why = () if self.failure is None else (self.failure,)
        return tuple(f"{self.name}: {text}" for text in (*why, *self.problems))


def _shape(state: ComponentState) -> tuple[Any, ...]:
    return state.name, dict(state.facts), state.contents, state.failure


def valid_component_name(name: str) -> bool:
    return _NAME.match(name) is not None


def encode_manifest(states: tuple[ComponentState, ...]) -> bytes:
    rows = [
        {
            "name": state.name,
            "facts": dict(state.facts),
            "contents": [
                [c.name, c.digest.hex(), c.chunks.hex() if c.chunks is not None else None, c.size]
                for c in state.contents
            ],
            "problems": list(state.problems),
            "failure": state.failure,
            "notes": dict(state.notes),
        }
        for state in sorted(states, key=lambda state: state.name)
    ]
    manifest = {"version": _VERSION, "components": rows}
    return json.dumps(manifest, separators=(",", ":"), sort_keys=True).encode()


def decode_manifest(data: bytes) -> tuple[ComponentState, ...]:
    """Decode a manifest. `ObjectDamaged` for anything that `encode_manifest` would not produce."""
    try:
        return _decode(data)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ObjectDamaged(f"the list of a checkpoint's components is unusable: {error}") from None


def _decode(data: bytes) -> tuple[ComponentState, ...]:
    if len(data) > LARGEST_MANIFEST_BYTES:
        raise ValueError("it is too large")
    manifest = json.loads(data)
    if manifest["version"] != _VERSION:
        raise ValueError("a later version of Holdfast wrote it")
    states = tuple(_state(row) for row in manifest["components"])
    if len({state.name for state in states}) != len(states):
        raise ValueError("a component is listed twice")
    return states


def _state(row: Mapping[str, Any]) -> ComponentState:
    name, failure = row["name"], row["failure"]
    if not isinstance(name, str) or not valid_component_name(name):
        raise ValueError("a component has no name")
    if failure is not None and not isinstance(failure, str):
        raise ValueError("a failure is not text")
    if not all(isinstance(text, str) for text in row["problems"]):
        raise ValueError("a problem is not text")
    if not isinstance(row["facts"], dict) or not isinstance(row["notes"], dict):
        raise ValueError("facts are not an object")
    if len(row["contents"]) > MOST_CONTENTS:
        raise ValueError("a component has too many contents")
    contents = tuple(_content(*fields) for fields in row["contents"])
    return ComponentState(
        name, row["facts"], contents, tuple(row["problems"]), failure, row["notes"]
    )


def _content(name: Any, digest: Any, chunks: Any, size: Any) -> StoredContent:
    if not isinstance(name, str) or type(size) is not int or size < 0:
        raise ValueError("a content has no name or no size")
    whole = parse_digest(digest)
    return StoredContent(name, whole, None if chunks is None else parse_digest(chunks), size)


def contents_of(states: tuple[ComponentState, ...]) -> Iterator[StoredContent]:
    for state in states:
        yield from state.contents

"""Agent state in a checkpoint, as values; and purging single files from it.

    index            [[root, path, kind, mode, mtime_ns], …]   kind is file, link, directory, or
                     removed: this path and everything below was purged
    entry/<digest>   a file's bytes, a link's target, a directory's mode; digest of its place
    given            {session: {agent: state}}, as set through the library

The name of an entry's content is derived from its place, so it can be found without the index. Both
may come from an imported bundle: every place is checked here.

A purged place stays listed as removed, so that a restore does not touch it or anything below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.components.agents.pattern_walk import Entry, Place, Roots, display_path
from holdfast.domain.agent_patterns import Root
from holdfast.domain.component_states import ComponentState
from holdfast.domain.paths import STAGING_PREFIX, from_text, is_safe_name, is_within, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import ComponentProblem, ContentSource, Remainder

INDEX = "index"
GIVEN = "given"
LARGEST_INDEX_BYTES = 64 << 20


class Kind(StrEnum):
    FILE = "file"
    LINK = "link"
    DIRECTORY = "directory"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Kept:
    """One entry as stored in a checkpoint."""

    root: Root
    path: tuple[bytes, ...]
    kind: Kind
    mode: int
    mtime_ns: int

    @property
    def place(self) -> Place:
        return self.root, self.path

    @property
    def content(self) -> str:
        return content_name(self.place)


def content_name(place: Place) -> str:
    root, path = place
    return f"entry/{digest_of(root.encode() + b'/' + b'/'.join(path)).hex()[:40]}"


def kind_of(entry: Entry) -> Kind:
    if entry.target is not None:
        return Kind.LINK
    return Kind.DIRECTORY if entry.is_directory else Kind.FILE


def directory_content(mode: int) -> bytes:
    return b"%o" % mode


def kept_of(entry: Entry) -> Kept:
    mtime_ns = entry.status.st_mtime_ns if kind_of(entry) is Kind.FILE else 0
    return Kept(entry.root, entry.path, kind_of(entry), entry.mode, mtime_ns)


def encode_index(entries: Iterable[Kept]) -> bytes:
    rows = [
        [kept.root.value, to_text(b"/".join(kept.path)), kept.kind.value, kept.mode, kept.mtime_ns]
        for kept in sorted(entries, key=lambda kept: kept.place)
    ]
    return json.dumps(rows, separators=(",", ":")).encode()


def read_index(contents: ContentSource) -> dict[Place, Kept]:
    """`ComponentProblem` if no capture could have made this."""
    try:
        pieces = contents.read(INDEX)
    except KeyError:
        return {}
    data = b""
    for piece in pieces:
        data += piece
        if len(data) > LARGEST_INDEX_BYTES:
            raise ComponentProblem("the list of agent files is unusable: it is too long")
    try:
        kept = [_kept(*row) for row in json.loads(data)]
    except (ValueError, TypeError, RecursionError) as error:
        raise ComponentProblem(f"the list of agent files is unusable: {error}") from None
    return {entry.place: entry for entry in kept}


def _kept(root: Any, path: Any, kind: Any, mode: Any, mtime_ns: Any) -> Kept:
    names = tuple(from_text(path).split(b"/"))
    if not all(is_safe_name(name) and not name.startswith(STAGING_PREFIX) for name in names):
        raise ValueError(f"{path!r:.80} is not a path that may be written")
    if type(mode) is not int or mode & ~0o1777:
        raise ValueError(f"{path!r:.80} has no usable mode")
    if type(mtime_ns) is not int or not 0 <= mtime_ns < 1 << 63:
        raise ValueError(f"{path!r:.80} has no usable time")
    return Kept(Root(root), names, Kind(kind), mode, mtime_ns)


Given = Mapping[str, Mapping[str, Any]]


def encode_given(given: Given) -> bytes:
    return json.dumps(given, separators=(",", ":"), sort_keys=True).encode()


def decode_given(data: bytes) -> dict[str, dict[str, Any]]:
    """`ValueError` if `encode_given` could not have made this."""
    given = json.loads(data)
    if not isinstance(given, dict):
        raise ValueError("it is not an object")
    for agents in given.values():
        if not isinstance(agents, dict) or not all(isinstance(s, dict) for s in agents.values()):
            raise ValueError("a state is not an object")
    return given


_WITH_BYTES = (Kind.FILE, Kind.LINK)


def files(state: ComponentState, contents: ContentSource, roots: Roots) -> Mapping[bytes, str]:
    """Absolute paths with the names of their content, without directories."""
    known = state.by_name()
    return {
        path: kept.content
        for kept in read_index(contents).values()
        if kept.kind in _WITH_BYTES
        and kept.content in known
        and (path := roots.absolute(kept.place)) is not None
    }


def without(
    state: ComponentState, contents: ContentSource, paths: Sequence[bytes], roots: Roots
) -> Remainder:
    """A path that patterns reach in two ways is listed once in `files`, but removed twice."""
    rest: list[Kept] = []
    gone: list[Kept] = []
    for kept in read_index(contents).values():
        path = roots.absolute(kept.place)
        is_gone = path is not None and any(is_within(path, top) for top in paths)
        (gone if is_gone else rest).append(kept)
    marks = {
        place: Kept(*place, Kind.REMOVED, 0, 0) for top in paths for place in roots.places(top)
    }
    facts, known = dict(state.facts), state.by_name()
    facts["files"] = sum(kept.kind in _WITH_BYTES for kept in rest)
    facts["bytes"] = sum(
        known[kept.content].size
        for kept in rest
        if kept.kind in _WITH_BYTES and kept.content in known
    )
    facts["left_out"] = [
        *facts["left_out"],
        *(f"{display_path(*place)}: purged" for place in marks if _reached(place, gone)),
    ]
    named = set(files(state, contents, roots).values())
    twice = {k.content: b"" for k in gone if k.kind in _WITH_BYTES and k.content not in named}
    rows = [*rest, *(mark for place, mark in marks.items() if _reached(place, gone))]
    return Remainder(facts, twice | {INDEX: encode_index(rows)})


def _reached(place: tuple[object, tuple[bytes, ...]], gone: Sequence[Kept]) -> bool:
    """Whether one of the removed entries is at this place or below it."""
    root, path = place
    return any(kept.root is root and kept.path[: len(path)] == path for kept in gone)

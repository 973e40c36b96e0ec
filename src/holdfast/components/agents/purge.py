"""Taking single files out of the state of agents for good.

A place that was removed stays listed as such, so that a restore leaves it, and all below it, alone:
that nothing is known of it does not mean that nothing was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.components.agents.pattern_walk import Roots, shown
from holdfast.components.agents.states import INDEX, Kept, Kind, encode_kept, read_index
from holdfast.domain.component_states import ComponentState
from holdfast.domain.paths import is_within
from holdfast.ports.component import ContentSource, Remainder

_WITH_BYTES = (Kind.FILE, Kind.LINK)


def files(state: ComponentState, contents: ContentSource, roots: Roots) -> Mapping[bytes, str]:
    """Absolute paths with the names of their content. Directories have none that tells anything."""
    return {
        path: kept.content
        for kept in read_index(contents).values()
        if kept.kind in _WITH_BYTES
        and state.content(kept.content) is not None
        and (path := roots.absolute(kept.place)) is not None
    }


def without(
    state: ComponentState, contents: ContentSource, paths: Sequence[bytes], roots: Roots
) -> Remainder:
    """A path that patterns reach in two ways is named once in `files`, and goes in both."""
    rest: list[Kept] = []
    gone: list[Kept] = []
    for kept in read_index(contents).values():
        path = roots.absolute(kept.place)
        is_gone = path is not None and any(is_within(path, top) for top in paths)
        (gone if is_gone else rest).append(kept)
    marks = {
        place: Kept(*place, Kind.REMOVED, 0, 0) for top in paths for place in roots.places(top)
    }
    facts = dict(state.facts)
    facts["files"] = sum(kept.kind in _WITH_BYTES for kept in rest)
    facts["bytes"] = sum(
        content.size
        for kept in rest
        if kept.kind in _WITH_BYTES and (content := state.content(kept.content)) is not None
    )
    facts["left_out"] = [
        *facts["left_out"],
        *(f"{shown(*place)}: removed for good" for place in marks if _reached(place, gone)),
    ]
    named = set(files(state, contents, roots).values())
    twice = {k.content: b"" for k in gone if k.kind in _WITH_BYTES and k.content not in named}
    rows = [*rest, *(mark for place, mark in marks.items() if _reached(place, gone))]
    return Remainder(facts, twice | {INDEX: encode_kept(rows)})


def _reached(place: tuple[object, tuple[bytes, ...]], gone: Sequence[Kept]) -> bool:
    """Of the ways to name a path, those by which something was there."""
    root, path = place
    return any(kept.root is root and kept.path[: len(path)] == path for kept in gone)

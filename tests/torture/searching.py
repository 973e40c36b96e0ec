"""Searching as something that can be cut off, and what it has to find whoever searches next.

A search brings its index up to date first, or makes it: that is where it writes. What is found is
told apart by what it is and where it says so, in its order; not by scores, which are the index's
own affair.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.search.hits import SearchResult
from holdfast.engine.search.search import search
from tests.torture.scenes import SESSION, Scene

_QUERIES = (
    "keeping",
    '"a long answer"',
    "good OR bad",
    "path:edited",
    "later",
    "do",
    "why",
    "wor*",
)

Answers = tuple[tuple[object, ...], ...]


def look_up(work: OpenWorkspace) -> None:
    """One search, which takes in everything that is new."""
    assert search(work.engine.vault, _QUERIES[0], session_id=SESSION, patience_s=None).complete


def answers(work: OpenWorkspace) -> Answers:
    """What each query finds, and whether it looked at everything."""
    return tuple(
        _told(search(work.engine.vault, query, session_id=SESSION, limit=50, patience_s=None))
        for query in _QUERIES
    )


def _told(result: SearchResult) -> tuple[object, ...]:
    hits = [(hit.checkpoint and hit.checkpoint.id, hit.at_ns, hit.matches) for hit in result]
    return (result.complete, result.warnings, *hits)


def index_files(scene: Scene) -> list[Path]:
    return sorted(scene.home.glob("stores/*/search.db*"))


def of_a_new_index(scene: Scene) -> Answers:
    """What is found in the scene as it is kept, by somebody who has no index yet."""
    scene.reset()
    for path in index_files(scene):
        path.unlink()
    with scene.open() as work:
        found = answers(work)
    scene.reset()
    return found


def with_the_index_of(scene: Scene, change: Callable[[OpenWorkspace], None]) -> None:
    """Leave the index in the scene that there would be after a change which never was."""
    scene.keep()
    with scene.open() as work:
        change(work)
        look_up(work)
    foreign = {path.name: path.read_bytes() for path in index_files(scene)}
    (directory,) = {path.parent for path in index_files(scene)}
    scene.reset()
    for path in index_files(scene):
        path.unlink()
    for name, data in foreign.items():
        if not name.endswith("-shm"):
            (directory / name).write_bytes(data)
            (directory / name).chmod(0o600)

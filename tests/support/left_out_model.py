"""A naive copy of a workspace at the moment of a save, with what the save said it left out.

It knows nothing of rules or trees: what is there and not said to be left out must be captured, and
a restore brings exactly that back, touches nothing that is or was left out, and removes the rest.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from holdfast.domain.checkpoints import Skipped, SkipReason
from tests.support.tree_hash import Node, describe

State: TypeAlias = dict[bytes, Node]
_HEADER = b"SQLite format 3\0"
_BESIDE = (b"-wal", b"-shm", b"-journal")


@dataclass(frozen=True, slots=True)
class Moment:
    """`state` is everything that was there, `left_out` what was said not to be captured, `shared`
    what was said to have no content, and `databases` what was stored in each of them, as far as
    SQLite could tell."""

    state: State
    left_out: frozenset[bytes]
    shared: frozenset[bytes]
    databases: dict[bytes, str]

    @classmethod
    def of(cls, root: Path, skipped: Iterable[Skipped]) -> Moment:
        state = describe(root)
        left_out = {s.path: s.reason for s in skipped if not s.reason.content_is_captured}
        shared = {path for path, why in left_out.items() if why is SkipReason.SHARED_MEMORY}
        return cls(
            state,
            frozenset(left_out.keys() - shared),
            frozenset(shared),
            stored_in_databases(root, state),
        )

    @property
    def captured(self) -> set[bytes]:
        return {p for p in self.state if not covers(self.left_out, p) and p not in self.shared}


def covers(paths: Collection[bytes], path: bytes) -> bool:
    """Whether one of these paths is this one, or a directory above it."""
    while path:
        if path in paths:
            return True
        path = os.path.dirname(path)
    return False


def restore_problems(
    root: Path,
    then: Moment,
    now: Moment,
    saved: Collection[bytes],
    not_done: Collection[bytes],
    between: Collection[bytes] = (),
) -> list[str]:
    """What is wrong after `then` was restored, where `now` was there just before, of which the
    restore saved the paths `saved` first. `not_done` are those that it said itself it had left,
    `between` those that were there when an undo began."""
    found = describe(root)
    stored = stored_in_databases(root, found)
    wanted = then.captured
    names = {
        path
        for path in wanted
        if not covers(not_done, path) and not _is_beside_database(path, then, now)
    }
    problems: list[str] = []
    for path in sorted(found.keys() | wanted | now.state.keys()):
        if covers(not_done, path) or _may_be_shared(path, then, now, between):
            continue
        if _is_beside_database(path, then, now):
            continue
        here = found.get(path)
        if path in wanted:
            if path in then.databases and stored.get(path) == then.databases[path]:
                continue
            if _among(here, names) != _among(then.state[path], names):
                problems.append(f"{path!r} is {here} and was {then.state[path]}")
        elif _stays(path, then, now, saved):
            before = now.state.get(path)
            if not _same_content(here, before):
                problems.append(f"{path!r}, left out, is {here} and was {before}")
        elif here is not None and not _holds_something(path, found):
            problems.append(f"{path!r} is still there: {here}")
    return problems


def _stays(path: bytes, then: Moment, now: Moment, saved: Collection[bytes]) -> bool:
    """Whether it is unsaved, or the checkpoint does not say that it was not there."""
    return path in now.state and (path not in saved or covers(then.left_out, path))


def _among(node: Node | None, paths: Collection[bytes]) -> Node | None:
    """With those of its names only that are among these."""
    if node is None or not node.names:
        return node
    names = tuple(name for name in node.names if name in paths)
    return replace(node, names=names if len(names) > 1 else ())


def _same_content(one: Node | None, other: Node | None) -> bool:
    """Of a file with several names, a mode that is given to one of them is given to all."""
    if one is None or other is None:
        return one is other
    mode = one.mode if one.names or other.names else other.mode
    return replace(one, names=()) == replace(other, names=(), mode=mode)


def _holds_something(path: bytes, found: State) -> bool:
    return any(other.startswith(path + b"/") for other in found)


def _may_be_shared(path: bytes, then: Moment, now: Moment, between: Collection[bytes]) -> bool:
    """Beside what is a database before, after, or only between the two, nothing tells it from
    shared memory."""
    base = path.removesuffix(b"-shm")
    memory = base != path and any(base in paths for paths in (now.state, then.state, between))
    return memory or path in then.shared or path in now.shared


def _is_beside_database(path: bytes, *moments: Moment) -> bool:
    """The files beside a database are not compared: what is stored in the database is."""
    return any(
        path.endswith(suffix) and path.removesuffix(suffix) in moment.databases
        for suffix in _BESIDE
        for moment in moments
    )


def stored_in_databases(root: Path, state: State) -> dict[bytes, str]:
    """The rows of every database, read from a copy, so that the database itself is left alone."""
    found: dict[bytes, str] = {}
    for path, node in state.items():
        if node.kind != "file":
            continue
        content = _read(root, path)
        if not content.startswith(_HEADER):
            continue
        beside = {
            suffix: _read(root, path + suffix)
            for suffix in (b"-wal", b"-journal")
            if path + suffix in state and state[path + suffix].kind == "file"
        }
        if (rows := _rows({b"": content, **beside})) is not None:
            found[path] = rows
    return found


def _read(root: Path, path: bytes) -> bytes:
    return (root / os.fsdecode(path)).read_bytes()


def _rows(files: dict[bytes, bytes]) -> str | None:
    """None where SQLite cannot read it."""
    with tempfile.TemporaryDirectory(prefix="database-") as scratch:
        for suffix, content in files.items():
            Path(f"{scratch}/copy{suffix.decode()}").write_bytes(content)
        connection = sqlite3.connect(f"{scratch}/copy")
        try:
            return "\n".join(connection.iterdump())
        except (sqlite3.Error, UnicodeError):
            return None
        finally:
            connection.close()

"""What a checkpoint says about worktrees, as values: from facts that nobody has to trust.

A file of a worktree is a content whose name says everything but its bytes: `0/f/src/app.py` is a
file of the first worktree, `x` an executable one, `l` a link, `g` one that is gone although git
tracks it. So what was captured can be told from the state alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.components.git.references import OID, is_branch_name
from holdfast.domain.component_states import ComponentState
from holdfast.domain.ids import Digest
from holdfast.domain.paths import from_text, require_safe_path, to_text
from holdfast.ports.component import ComponentProblem

FILE, EXECUTABLE, LINK, GONE = "f", "x", "l", "g"
INDEX = "index"
_LONGEST_NAME = 1000


@dataclass(frozen=True, slots=True)
class SavedFile:
    """One path that differed from the index, or that git did not know."""

    kind: str
    digest: Digest
    content: str


@dataclass(frozen=True, slots=True)
class Worktree:
    """One linked worktree. `files` is None when only the place and HEAD were saved; `index` names
    its index then. `born` tells it from others when it was moved."""

    path: bytes
    ref: bytes | None
    commit: str | None
    files: Mapping[bytes, SavedFile] | None = None
    index: str | None = None
    born: str | None = None


@dataclass(frozen=True, slots=True)
class WorktreesState:
    """`absent` are places where there was none and a restore was about to make one; `new_refs`
    branches that it was about to make, with their commits."""

    worktrees: tuple[Worktree, ...] = ()
    absent: tuple[bytes, ...] = ()
    new_refs: Mapping[bytes, str] = field(default_factory=dict)
    kept: tuple[bytes, str] | None = None

    def at(self, path: bytes) -> Worktree | None:
        return next((one for one in self.worktrees if one.path == path), None)


def content_name(number: int, kind: str, path: bytes) -> str | None:
    """None for a path that is too long to be one."""
    name = f"{number}/{kind}/{to_text(path)}"
    return name if len(name) <= _LONGEST_NAME else None


def decode(state: ComponentState) -> WorktreesState:
    """`ComponentProblem` when this is nothing that a capture would have made."""
    try:
        return _decode(state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = f"what the checkpoint says about worktrees is unusable: {error}"
        raise ComponentProblem(text) from None


def _decode(state: ComponentState) -> WorktreesState:
    rows: list[Mapping[str, Any]] = list(state.facts["worktrees"])
    files: list[dict[bytes, SavedFile]] = [{} for _ in rows]
    indexes: dict[int, str] = {}
    for content in state.contents:
        number, kind, path = content.name.split("/", 2)
        if kind == INDEX:
            indexes[int(number)] = content.name
        elif kind in (FILE, EXECUTABLE, LINK, GONE):
            place = require_safe_path(from_text(path))
            files[int(number)][place] = SavedFile(kind, content.digest, content.name)
        else:
            raise ValueError(f"{content.name!r:.80} is no file")
    worktrees = tuple(
        Worktree(
            _place(row["path"]),
            None if row["ref"] is None else _branch(row["ref"]),
            None if row["commit"] is None else _oid(row["commit"]),
            files[number] if row["files"] is True else None,
            indexes.get(number),
            None if row.get("born") is None else str(row["born"]),
        )
        for number, row in enumerate(rows)
    )
    notes = state.notes
    kept = (from_text(notes["ref"]), _oid(notes["commit"])) if "ref" in notes else None
    return WorktreesState(
        worktrees,
        tuple(_place(path) for path in state.facts.get("absent", ())),
        {_branch(ref): _oid(oid) for ref, oid in state.facts.get("new_refs", {}).items()},
        kept,
    )


def _place(text: str) -> bytes:
    path = from_text(text)
    if not os.path.isabs(path) or os.path.normpath(path) != path or b"\0" in path:
        raise ValueError(f"{text!r:.80} is no place for a worktree")
    return path


def _branch(text: str) -> bytes:
    ref = from_text(text)
    if not is_branch_name(ref):
        raise ValueError(f"{text!r:.80} is no branch")
    return ref


def _oid(text: str) -> str:
    if not OID.match(text.encode()):
        raise ValueError(f"{text!r:.80} is no commit")
    return text

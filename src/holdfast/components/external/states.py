"""External files in a checkpoint, as values.

    index            [[path, kind, mode, user, group, mtime_ns, owner of its directory], …]
    entry/<digest>   a file's bytes, or a link's target; the digest is of its path

Kinds: `absent` means that nothing was there; `removed`, that this path and everything below was
purged; `left-out`, that something was there and is not saved; `partial`, that a directory was not
listed completely. All may come from an imported bundle. So every path is checked here, and a
restore touches only paths that tools of this workspace have named.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.components.external.named_paths import Entry, WalkResult, display_path
from holdfast.domain.component_states import ComponentState
from holdfast.domain.external_paths import key_of, require_user_path
from holdfast.domain.paths import STAGING_PREFIX, from_text, is_within, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import ComponentProblem, ContentSource, Remainder

INDEX = "index"
MOST_LISTED = 1_000
"""The most paths that a checkpoint can list; a restore reads them all."""
_LARGEST_INDEX_BYTES = 4 << 20
_KEPT_MODE = 0o1777
"""Without setuid and setgid, because a restore does not create files that grant rights."""


class Kind(StrEnum):
    FILE = "file"
    LINK = "link"
    DIRECTORY = "directory"
    PARTIAL = "partial"
    ABSENT = "absent"
    REMOVED = "removed"
    LEFT_OUT = "left-out"

    @property
    def is_unknown(self) -> bool:
        """Whether a restore leaves this path and everything below alone."""
        return self in (Kind.REMOVED, Kind.LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Kept:
    """One path as stored in a checkpoint."""

    path: bytes
    kind: Kind
    mode: int
    user: int
    group: int
    mtime_ns: int
    directory_owner: int | None

    @property
    def is_directory(self) -> bool:
        return self.kind in (Kind.DIRECTORY, Kind.PARTIAL)

    def is_kind_of(self, entry: Entry) -> bool:
        """Whether the current entry has the same kind."""
        return kind_of(entry) is (Kind.DIRECTORY if self.is_directory else self.kind)

    @property
    def content(self) -> str:
        return content_name(self.path)


def content_name(path: bytes) -> str:
    return f"entry/{digest_of(path).hex()[:40]}"


def kind_of(entry: Entry) -> Kind:
    if entry.status is None:
        return Kind.ABSENT
    if entry.target is not None:
        return Kind.LINK
    return Kind.DIRECTORY if entry.is_directory else Kind.FILE


def mode_of(entry: Entry) -> int:
    return 0 if entry.status is None else stat.S_IMODE(entry.status.st_mode) & _KEPT_MODE


def encode_index(entries: Sequence[Entry], look: WalkResult) -> bytes:
    directories = {entry.path for entry in entries if entry.is_directory}
    rows = [_kept_of(entry, look.cut) for entry in entries]
    for path in look.left_out:
        if path not in directories and path.rpartition(b"/")[0] in directories:
            rows.append(Kept(path, Kind.LEFT_OUT, 0, 0, 0, 0, None))
    return _encoded(sorted(rows, key=lambda row: row.path))


def _kept_of(entry: Entry, cut: Container[bytes]) -> Kept:
    s = entry.status
    kind = kind_of(entry)
    if kind is Kind.DIRECTORY and entry.path in cut:
        kind = Kind.PARTIAL
    user, group, mtime_ns = (s.st_uid, s.st_gid, s.st_mtime_ns) if s else (0, 0, 0)
    time_ns = mtime_ns if kind is Kind.FILE else 0
    return Kept(entry.path, kind, mode_of(entry), user, group, time_ns, entry.directory_owner)


def _encoded(kept: Iterable[Kept]) -> bytes:
    rows = [
        [to_text(k.path), k.kind.value, k.mode, k.user, k.group, k.mtime_ns, k.directory_owner]
        for k in kept
    ]
    return json.dumps(rows, separators=(",", ":")).encode()


def read_index(contents: ContentSource) -> dict[bytes, Kept]:
    """`ComponentProblem` if no capture could have made this."""
    data = b""
    try:
        for piece in contents.read(INDEX):
            data += piece
            if len(data) > _LARGEST_INDEX_BYTES:
                raise ValueError("it is too long")
        kept = [_kept(*row) for row in json.loads(data)]
    except KeyError:
        return {}
    except (ValueError, TypeError, RecursionError) as error:
        raise ComponentProblem(f"the list of external files is unusable: {error}") from None
    return {one.path: one for one in kept}


def _kept(
    path: Any, kind: Any, mode: Any, user: Any, group: Any, mtime_ns: Any, owner: Any
) -> Kept:
    names = from_text(path).split(b"/")
    safe = all(n not in (b"", b".", b"..") and b"\0" not in n for n in names[1:])
    if names[0] or len(names) < 2 or not safe or names[-1].startswith(STAGING_PREFIX):
        raise ValueError(f"{path!r:.80} is not a path that may be written")
    require_user_path(path)
    numbers = (mode, user, group, mtime_ns, 0 if owner is None else owner)
    if any(type(number) is not int or not 0 <= number < 1 << 63 for number in numbers):
        raise ValueError(f"{path!r:.80} has unusable numbers")
    if mode & ~_KEPT_MODE:
        raise ValueError(f"{path!r:.80} has an unusable mode")
    return Kept(from_text(path), Kind(kind), mode, user, group, mtime_ns, owner)


def differing(
    one: ComponentState,
    its_contents: ContentSource,
    other: ComponentState,
    others_contents: ContentSource,
) -> list[str]:
    """The keys of the paths that differ between two states."""
    here, there = read_index(its_contents), read_index(others_contents)
    ours, theirs = one.by_name(), other.by_name()
    return [
        key_of(path)
        for path in sorted(here.keys() | there.keys())
        if here.get(path) != there.get(path)
        or ours.get(content_name(path)) != theirs.get(content_name(path))
    ]


def without(state: ComponentState, contents: ContentSource, paths: Sequence[bytes]) -> Remainder:
    """The state without these paths and everything below; a restore then leaves them alone."""
    kept = read_index(contents)
    rest = [k for k in kept.values() if not any(is_within(k.path, path) for path in paths)]
    facts = dict(state.facts)
    known = state.by_name()
    listed = [display_path(k.path) for k in rest if not k.kind.is_unknown]
    facts["paths"], facts["more"] = listed[:MOST_LISTED], max(0, len(listed) - MOST_LISTED)
    facts["bytes"] = sum(known[k.content].size for k in rest if k.content in known)
    facts["left_out"] = [*facts["left_out"], *(f"{display_path(p)}: purged" for p in paths)]
    marks = [Kept(path, Kind.REMOVED, 0, 0, 0, 0, None) for path in paths]
    rows = sorted([*rest, *marks], key=lambda k: k.path)
    return Remainder(facts, {INDEX: _encoded(rows)})

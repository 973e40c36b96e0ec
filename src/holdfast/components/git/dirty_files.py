"""Finds dirty files of the workspace that git tracks: changed, deleted, in conflict or staged.

    git is unchanged → check the previously dirty files, and paths that changed since
    otherwise        → check every path of the index, except files that the scan found as git saw
    a check: size and times match the index → clean; otherwise the file is hashed as git would

Untracked files are not included, as in `git describe --dirty`. Guarantee: the answer is always
correct. If it would need a user's filter, a conversion, or too much reading, there is no answer. No
process is started.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, islice
from typing import Any

from holdfast.components.files import blocks_of
from holdfast.components.git.index_file import GITLINK, IndexEntries, IndexEntry
from holdfast.components.git.repository import (
    Repository,
    TooLarge,
    opened,
    read_small,
    read_whole,
)
from holdfast.components.git.states import DIRTY, INDEX
from holdfast.domain.component_states import ComponentState
from holdfast.domain.git.index import UnknownIndex
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ContentSink,
    SeenDirectory,
    nothing_seen,
)
from holdfast.values.classes import NamedTuple

_MOST_NAMES, _MOST_NAMES_BYTES = 500, 50_000
_MOST_HASHED_BYTES = 64 << 20
_MOST_HASHED_FILES = 2_000
_SMALL_BYTES = 1 << 20
_CONVERTING = (b"filter", b"ident", b"working-tree-encoding", b"[attr]")
_ATTRIBUTES = b".gitattributes"

_CHECKSUM_BYTES = 32
_SETTLED_NS = 2_500_000_000
"""A file last changed longer ago cannot change without a new time, on any file system."""


class _Index(NamedTuple):
    """Git's knowledge of each path; `written_ns` is when it was written, `digest` that of the whole
    file, and `attributes` are its attribute files. `clean` are directories whose files all matched,
    each with the proof that they still do."""

    entries: IndexEntries
    written_ns: int
    digest: bytes | None
    attributes: tuple[bytes, ...]
    clean: dict[bytes, object]


class _Hashed(NamedTuple):
    """A hashed file: git's name for it, and the name after converting line ends, if it has
    others."""

    oid: str
    oid_of_lines: str | None


_NO_INDEX = IndexEntries(b"DIRC\0\0\0\2\0\0\0\0")

_last_read: tuple[Any, _Index] | None = None
"""The last one read in this process: most saves find the same."""

_hashed: dict[Any, _Hashed] = {}
"""By path and stat numbers: files stay dirty over many saves, and are hashed once."""


class _Unknown(Exception):
    """The answer would cost more than it is worth in a checkpoint."""


def all_dirty(
    repository: Repository,
    workspace: bytes,
    index_fd: int | None,
    commit: str | None,
    staged: Iterable[bytes],
    submodules: Sequence[Sequence[Any]],
    seen: Callable[[], Iterable[SeenDirectory]] = nothing_seen,
    now_ns: int = 0,
) -> dict[str, Any] | None:
    """For a state that is being captured; None if unknown."""
    try:
        tree = _WorkingTree(repository, workspace, _read(index_fd, commit), seen, now_ns)
        return tree.report(tree.unproven_paths(), staged, submodules)
    except (_Unknown, UnknownIndex, OSError):
        return None


def with_current_dirty_files(
    repository: Repository,
    request: CaptureRequest,
    previous: ComponentState,
    changed: Sequence[bytes] | None,
    sink: ContentSink,
) -> Captured | None:
    """The previous git state, which is unchanged, with the current dirty files; None if those are
    unchanged, too."""
    known = previous.notes.get(DIRTY)
    found = dirty_now(repository, request, previous, changed)
    if found == known:
        return None
    for content in previous.contents:
        sink.keep(content.name, content)
    notes = {key: note for key, note in previous.notes.items() if key != DIRTY}
    if found is not None:
        notes[DIRTY] = found
    return Captured(dict(previous.facts), previous.problems, notes)


def dirty_now(
    repository: Repository,
    request: CaptureRequest,
    previous: ComponentState,
    changed: Sequence[bytes] | None,
) -> dict[str, Any] | None:
    """For a repository that matches the previous state; `changed` are paths that may differ."""
    known = previous.notes.get(DIRTY)
    if changed is not None and not changed and isinstance(known, dict):
        return known
    facts, content = previous.facts, previous.content(INDEX)
    if facts["staged_count"] > len(facts["staged"]) or "shared_index" in facts:
        return None
    try:
        with opened(repository.own(b"index")) as fd:
            index = _read(fd, facts["head"]["commit"])
        if index.digest != (None if content is None else content.digest):
            return None  # it changed since git's state was read
        place = os.fsencode(request.workspace)
        tree = _WorkingTree(repository, place, index, request.seen, request.now_ns)
        staged = [from_text(path) for _, path in facts["staged"]]
        candidates = tree.candidates(changed, previous.notes.get(DIRTY))
        return tree.report(candidates, staged, facts["submodules"])
    except (_Unknown, UnknownIndex, OSError):
        return None


def listed_count(paths: Iterable[bytes]) -> int:
    """How many of these paths, from the first, a checkpoint lists; it counts the others."""
    sizes = accumulate(map(len, islice(paths, _MOST_NAMES)))
    return sum(size <= _MOST_NAMES_BYTES for size in sizes)


class _WorkingTree:
    """Tracked files of the working tree, compared with the index."""

    def __init__(
        self,
        repository: Repository,
        workspace: bytes,
        index: _Index,
        seen: Callable[[], Iterable[SeenDirectory]],
        now_ns: int,
    ) -> None:
        """Files that last changed long before `now_ns` need not be hashed again; 0 if the time is
        unknown."""
        self._prefix = repository.prefix(workspace)
        if self._prefix.startswith(b"../"):
            raise _Unknown  # the repository is below the workspace, and is not reported
        self._repository = repository
        self._seen = seen
        self._now_ns = now_ns
        self._written_ns = index.written_ns
        self._attributes = index.attributes
        self._clean = index.clean
        self._hashed_bytes = self._hashed_files = 0
        self._conversions: list[bytes] | None = None
        self.index = index.entries

    def candidates(self, changed: Sequence[bytes] | None, known: Any) -> Collection[bytes]:
        """Index paths that can be dirty, given that all others were clean and unchanged."""
        if changed is None or not isinstance(known, dict) or known["count"] > len(known["files"]):
            return self.unproven_paths()
        paths = {self._prefix + path for path in changed}
        paths.update(self._prefix + from_text(path) for path in known["files"])
        # A left-out path may be a whole directory.
        found = {path for path in paths if path in self.index}
        for directory in paths - found:
            found.update(self.index.below(directory))
        return found

    def unproven_paths(self) -> Collection[bytes]:
        """Index paths without the files that the scan found as git saw them."""
        unproven = dict(self.index.directories)
        for path, proof, files in self._seen():
            directory = (self._prefix + path).rstrip(b"/")
            if directory not in unproven:
                continue
            if self._clean.get(directory) == proof:
                del unproven[directory]
                continue
            seen, start = files(), len(directory) + 1 if directory else 0
            rest = [
                path
                for path in unproven[directory]
                if (one := seen.get(path[start:])) is None
                or not self.index.is_as_seen(path, one, self._written_ns)
            ]
            if rest:
                unproven[directory] = rest
            else:
                del unproven[directory]
                self._clean[directory] = proof
        return [path for paths in unproven.values() for path in paths]

    def report(
        self,
        paths: Collection[bytes],
        staged: Iterable[bytes],
        submodules: Sequence[Sequence[Any]],
    ) -> dict[str, Any]:
        dirty = {*staged, *(from_text(row[0]) for row in submodules if _is_elsewhere(*row))}
        dirty.update(path for path in paths if path not in dirty and self._is_dirty(path))
        inside = sorted(path for path in dirty if path.startswith(self._prefix))
        listed = inside[: listed_count(inside)]
        return {"count": len(inside), "files": [to_text(p[len(self._prefix) :]) for p in listed]}

    def _is_dirty(self, path: bytes) -> bool:
        if not path.startswith(self._prefix):
            return False
        entry = self.index[path]
        if entry.unwatched or entry.mode == GITLINK:
            return False
        if entry.stage:
            return True
        place = os.path.join(self._repository.top, path)
        try:
            status = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return True
        if stat.S_IFMT(status.st_mode) != stat.S_IFMT(entry.mode):
            return True
        if stat.S_ISREG(status.st_mode) and (status.st_mode ^ entry.mode) & 0o100:
            if self._trusts_modes():
                return True
        elif self._is_as_seen(status, entry):
            return False
        return self._differs(place, path, status, entry)

    def _is_as_seen(self, status: os.stat_result, entry: IndexEntry) -> bool:
        """A file written as late as the index itself may have changed within a clock tick."""
        seen = (entry.mtime_ns, entry.ctime_ns, entry.size)
        now = (status.st_mtime_ns, status.st_ctime_ns, status.st_size & 0xFFFFFFFF)
        return seen == now and entry.mtime_ns < self._written_ns

    def _differs(
        self, place: bytes, path: bytes, status: os.stat_result, entry: IndexEntry
    ) -> bool:
        self._hashed_files += 1
        self._hashed_bytes += status.st_size
        if self._hashed_files > _MOST_HASHED_FILES or self._hashed_bytes > _MOST_HASHED_BYTES:
            raise _Unknown
        found = _hash(place, status, entry.oid, self._now_ns)
        if found.oid == entry.oid:
            return False
        if not stat.S_ISLNK(status.st_mode):
            if found.oid_of_lines == entry.oid:
                raise _Unknown  # only git knows whether it would convert line ends
            if self._may_be_converted(path):
                raise _Unknown
        return True

    def _may_be_converted(self, path: bytes) -> bool:
        """Whether attributes define, or may define, a filter or conversion for a path."""
        if self._conversions is None:
            self._conversions = list(self._read_conversions())
        name = os.path.basename(path)
        return any(
            b"/" in pattern or pattern.startswith((b"[", b'"')) or fnmatchcase(name, pattern)
            for pattern in self._conversions
        )

    def _read_conversions(self) -> Iterable[bytes]:
        top = self._repository.top
        places = [self._repository.shared(b"info/attributes"), os.path.join(top, _ATTRIBUTES)]
        places += [os.path.join(top, path) for path in self._attributes]
        for place in places:
            try:
                text = read_small(place, _SMALL_BYTES) or b""
            except TooLarge:
                raise _Unknown from None
            for line in text.splitlines():
                words = line.split(None, 1)
                if words and any(sign in line for sign in _CONVERTING):
                    yield words[0]

    def _trusts_modes(self) -> bool:
        try:
            config = read_small(self._repository.shared(b"config"), _SMALL_BYTES) or b""
        except TooLarge:
            raise _Unknown from None
        if b"filemode" not in config.lower():
            return True
        return b"false" not in config.lower().split(b"filemode", 1)[1].split(b"\n", 1)[0]


def _read(fd: int | None, commit: str | None) -> _Index:
    """`commit` is any commit of the repository, because all object names have the same length."""
    global _last_read
    if fd is None:
        return _Index(_NO_INDEX, 0, None, (), {})
    s = os.fstat(fd)
    checksum = os.pread(fd, _CHECKSUM_BYTES, max(s.st_size - _CHECKSUM_BYTES, 0))
    key = (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, checksum)
    if _last_read is not None and _last_read[0] == key:
        return _last_read[1]
    data = b"".join(blocks_of(fd))
    entries = IndexEntries(data, commit)
    if not entries.is_whole:
        raise _Unknown
    attributes = tuple(path for path in entries if path.endswith(b"/" + _ATTRIBUTES))
    index = _Index(entries, s.st_mtime_ns, digest_of(data), attributes, {})
    _last_read = (key, index)
    return index


def _is_elsewhere(_path: str, wanted: str, there: str | None) -> bool:
    return there is not None and there != wanted


def _hash(place: bytes, status: os.stat_result, like: str, now_ns: int) -> _Hashed:
    s = status
    key = (place, len(like), s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
    known = _hashed.get(key)
    if known is not None:
        return known
    from holdfast.components.git.loose_objects import name_of  # late: mostly nothing is hashed

    is_link = stat.S_ISLNK(s.st_mode)
    data = os.readlink(place) if is_link else read_whole(place)
    lines = data.replace(b"\r\n", b"\n") if b"\r\n" in data else None
    oid_of_lines = None if lines is None else name_of(b"blob", lines, like=like)
    found = _Hashed(name_of(b"blob", data, like=like), oid_of_lines)
    if s.st_ctime_ns < now_ns - _SETTLED_NS:
        while len(_hashed) >= _MOST_HASHED_FILES:
            _hashed.pop(next(iter(_hashed)), None)
        _hashed[key] = found
    return found

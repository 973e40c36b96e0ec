"""Restores agent state: planned as data, checked, then done file by file.

    current state × checkpoint → steps → check that nothing is lost → remove, create, write

Guarantees: nothing outside `agent_state` is touched. No link is followed. Each file is the old or
the new one, whatever happens. A file is only replaced or removed if the state before the restore
has its bytes. It is idempotent. Not guaranteed: an agent that has a file open while it is replaced
may write into the old file. Workspace files that changed meanwhile are kept: they are restored with
the files.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from blake3 import blake3

from holdfast.components.agents.pattern_walk import Entry, Place, Roots, display_path, walk
from holdfast.components.agents.states import (
    Kept,
    Kind,
    content_name,
    directory_content,
    kind_of,
    read_index,
)
from holdfast.components.files import (
    READ_FLAGS,
    blocks_of,
    new_file,
    replacement,
    write_all,
)
from holdfast.domain.agent_patterns import Pattern, Root
from holdfast.domain.ids import Digest
from holdfast.domain.paths import STAGING_PREFIX
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import ComponentProblem, RestoreOf

_LONGEST_TARGET = 4096


@dataclass(slots=True)
class RestoreSteps:
    """The steps, in this order, and the paths that block them."""

    remove: list[Entry] = field(default_factory=list)
    make: list[Kept] = field(default_factory=list)
    write: list[tuple[Kept, Entry | None]] = field(default_factory=list)
    change_mode: list[Kept] = field(default_factory=list)
    conflicts: list[Place] = field(default_factory=list)
    beyond: list[Place] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.remove or self.make or self.write or self.change_mode)


class AgentFilesRestore:
    """One restore of files: `steps` plans it, `run` executes it."""

    def __init__(
        self,
        request: RestoreOf,
        roots: Roots,
        patterns: Sequence[Pattern],
        *,
        everything_known: bool = False,
    ) -> None:
        """In a preview, everything counts as known, because it will be captured first."""
        self._everything_known = everything_known
        self._request = request
        self._target = request.target.by_name()
        self._present = {} if request.present is None else request.present.by_name()
        self._roots = roots
        self._patterns = patterns

    def steps(self) -> RestoreSteps:
        steps = RestoreSteps()
        wanted = {}
        known = self._once(read_index(self._request.contents))
        removed = [kept.place for kept in known.values() if kept.kind is Kind.REMOVED]
        for place, kept in known.items():
            if kept.kind is Kind.REMOVED:
                continue
            if any(p.root is kept.root and p.matches(kept.path) for p in self._patterns):
                wanted[place] = kept
            else:
                steps.beyond.append(place)
        there = {entry.place: entry for entry in walk(self._roots, self._patterns).entries}
        for place, kept in wanted.items():
            self._plan_one(steps, kept, there.get(place))
        for place, entry in there.items():
            if place in wanted or any(_touches(place, other) for other in removed):
                continue
            if self._is_known(entry):
                steps.remove.append(entry)
        steps.remove.sort(key=lambda entry: entry.path, reverse=True)  # contents first
        return steps

    def _once(self, known: dict[Place, Kept]) -> dict[Place, Kept]:
        """A file that patterns of two roots reach is one file, even if it was captured twice."""
        order = list(Root)
        first: dict[bytes | Place, Kept] = {}
        for kept in sorted(known.values(), key=lambda kept: order.index(kept.root)):
            first.setdefault(self._roots.absolute(kept.place) or kept.place, kept)
        return {kept.place: kept for kept in first.values()}

    def _plan_one(self, steps: RestoreSteps, kept: Kept, entry: Entry | None) -> None:
        self._wanted_digest(kept)  # find missing content before anything is changed
        if entry is not None and self._is_as_wanted(kept, entry):
            if kept.kind is not Kind.LINK and entry.mode != kept.mode:
                steps.change_mode.append(kept)
            return
        if entry is not None and not entry.is_directory and not self._is_known(entry):
            if kept.root is not Root.WORKSPACE:
                steps.conflicts.append(kept.place)
            return
        if entry is not None and Kind.DIRECTORY in (kind_of(entry), kept.kind):
            steps.remove.append(entry)
            entry = None
        if kept.kind is Kind.DIRECTORY:
            steps.make.append(kept)
        else:
            steps.write.append((kept, entry))

    def _is_as_wanted(self, kept: Kept, entry: Entry) -> bool:
        if kind_of(entry) is not kept.kind:
            return False
        return kept.kind is Kind.DIRECTORY or self._digest(entry) == self._wanted_digest(kept)

    def _is_known(self, entry: Entry) -> bool:
        """Whether the state before the restore has exactly these bytes at this place. Directories
        are removed only if they are empty by then, which loses nothing."""
        if self._everything_known:
            return True
        known = self._present.get(content_name(entry.place))
        return known is not None and (entry.is_directory or known.digest == self._digest(entry))

    def _wanted_digest(self, kept: Kept) -> Digest:
        content = self._target.get(kept.content)
        if content is None:
            raise ComponentProblem(
                f"the content of {display_path(*kept.place)} is missing from the checkpoint"
            )
        return content.digest

    def _digest(self, entry: Entry) -> Digest | None:
        if entry.target is not None:
            return digest_of(entry.target)
        if entry.is_directory:
            return digest_of(directory_content(entry.mode))
        try:
            with self._roots.directory(entry.root, entry.path[:-1]) as dir_fd:
                fd = os.open(entry.path[-1], READ_FLAGS, dir_fd=dir_fd)
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            digest = blake3()
            for block in blocks_of(fd):
                digest.update(block)
            return Digest(digest.digest())
        finally:
            os.close(fd)

    def run(self) -> None:
        steps = self.steps()
        if steps.conflicts:
            raise changed_meanwhile(steps.conflicts)
        for entry in steps.remove:
            self._remove(entry)
        for kept in steps.make:
            with self._roots.directory(kept.root, kept.path, make=True):
                pass
        for kept, replaced in steps.write:
            self._write(kept, replaced)
        # Directories last and inner ones first, because a mode may make them inaccessible.
        for kept in sorted((*steps.change_mode, *steps.make), key=_depth, reverse=True):
            with self._roots.directory(kept.root, kept.path[:-1]) as dir_fd:
                _change_mode(dir_fd, kept.path[-1], kept.mode)

    def _remove(self, entry: Entry) -> None:
        name = entry.path[-1]
        with self._roots.directory(entry.root, entry.path[:-1]) as dir_fd:
            if entry.is_directory:
                with contextlib.suppress(OSError):  # not empty: it has uncaptured content
                    os.rmdir(name, dir_fd=dir_fd)
            else:
                _require_unchanged(dir_fd, entry)
                os.unlink(name, dir_fd=dir_fd)
            os.fsync(dir_fd)

    def _write(self, kept: Kept, entry: Entry | None) -> None:
        name = kept.path[-1]
        temporary = STAGING_PREFIX + digest_of(name).hex()[:16].encode()
        with self._roots.directory(kept.root, kept.path[:-1], make=True) as dir_fd:
            with replacement(dir_fd, name, temporary):
                if kept.kind is Kind.LINK:
                    os.symlink(self._link_target(kept), temporary, dir_fd=dir_fd)
                else:
                    self._write_file(kept, dir_fd, temporary)
                if entry is None:
                    _require_nothing(dir_fd, kept.place)
                else:
                    _require_unchanged(dir_fd, entry)
            os.fsync(dir_fd)

    def _link_target(self, kept: Kept) -> bytes:
        target = b""
        for piece in self._request.contents.read(kept.content):
            target += piece
            if len(target) > _LONGEST_TARGET:
                raise ComponentProblem(
                    f"the target of the link {display_path(*kept.place)} is too long"
                )
        return target

    def _write_file(self, kept: Kept, dir_fd: int, temporary: bytes) -> None:
        with new_file(temporary, 0o600, dir_fd) as fd:
            for piece in self._request.contents.read(kept.content):
                write_all(fd, piece)
            os.fchmod(fd, kept.mode)
            os.utime(fd, ns=(kept.mtime_ns, kept.mtime_ns))

    def differences(self) -> Iterator[str]:
        """What differs from the checkpoint after `run`."""
        steps = self.steps()
        for kept, _ in steps.write:
            yield f"{display_path(*kept.place)} differs from the checkpoint"
        for kept in (*steps.make, *steps.change_mode):
            yield f"{display_path(*kept.place)} differs from the checkpoint"
        for place in steps.conflicts:
            yield f"another program is changing {display_path(*place)}"
        for entry in steps.remove:
            if not entry.is_directory:
                yield f"{display_path(*entry.place)} is still there"


def changed_meanwhile(places: Sequence[Place]) -> ComponentProblem:
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    named = ", ".join(display_path(*place) for place in places[:3])
    return ComponentProblem(
        f"{named}{more} changed in the meantime and was kept: an agent is running; let it "
        "finish, then restore again"
    )


def _touches(place: Place, removed: Place) -> bool:
    """Whether a place, or something below it, was purged."""
    (root, path), (other_root, other) = place, removed
    length = min(len(path), len(other))
    return root is other_root and path[:length] == other[:length]


def _depth(kept: Kept) -> int:
    return len(kept.path)


def _change_mode(dir_fd: int, name: bytes, mode: int) -> None:
    fd = os.open(name, READ_FLAGS, dir_fd=dir_fd)
    try:
        os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def _require_unchanged(dir_fd: int, entry: Entry) -> None:
    try:
        status = os.stat(entry.path[-1], dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    if Entry(entry.root, entry.path, status).identity != entry.identity:
        raise changed_meanwhile([entry.place])


def _require_nothing(dir_fd: int, place: Place) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.stat(place[1][-1], dir_fd=dir_fd, follow_symlinks=False)
        raise changed_meanwhile([place])

"""Restores external files: planned as data, checked, then done path by path.

    current state × checkpoint → steps and refusals → remove, create, write

Guarantees: only paths that tools of this workspace have named are touched. No link is followed. A
path is refused if it became a link or changed its kind, if its owner changed, or if its directory
has another owner. Each file is the old or the new one, whatever happens. Nothing is replaced or
removed unless the state before the restore has its bytes. It is idempotent.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.components.external.capture import digest_at
from holdfast.components.external.named_paths import (
    BUILT_IN,
    Entry,
    LeftOut,
    PathWalk,
    display_path,
    look_at,
    opened_directory,
)
from holdfast.components.external.states import (
    Kept,
    Kind,
    content_name,
    kind_of,
    mode_of,
    read_index,
)
from holdfast.components.files import READ_FLAGS, new_file, replacement, write_all
from holdfast.domain.component_states import BELOW, SOME
from holdfast.domain.external_paths import key_of
from holdfast.domain.ids import Digest
from holdfast.domain.paths import STAGING_PREFIX, ancestors, join
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import ComponentProblem, RestoreOf


@dataclass(slots=True)
class Steps:
    """The steps, in this order; and refused paths with their reasons. `occupied` are directories
    that would be removed, but hold something else."""

    remove: list[Entry] = field(default_factory=list)
    make: list[Kept] = field(default_factory=list)
    write: list[tuple[Kept, Entry]] = field(default_factory=list)
    change_mode: list[tuple[Kept, Entry]] = field(default_factory=list)
    refused: list[tuple[bytes, str]] = field(default_factory=list)
    occupied: list[bytes] = field(default_factory=list)

    def left_alone(self) -> Iterator[tuple[bytes, str]]:
        """Each path that differs and cannot be restored, with the reason."""
        yield from self.refused
        yield from ((path, "it has other files now") for path in self.occupied)

    def lines(self) -> Iterator[tuple[bytes, str]]:
        """Each path with the planned change."""
        for entry in self.remove:
            yield entry.path, f"remove {display_path(entry.path)}"
        for kept in self.make:
            yield kept.path, f"create {display_path(kept.path)}/"
        for kept, entry in self.write:
            word = "create" if entry.status is None else "write"
            yield kept.path, f"{word} {display_path(kept.path)}"
        for kept, _ in self.change_mode:
            yield kept.path, f"change the mode of {display_path(kept.path)} to {kept.mode:04o}"


class ExternalRestore:
    """One restore: `steps` plans it, `run` executes it. `names` are the paths that tools named."""

    def __init__(
        self,
        request: RestoreOf,
        names: Sequence[bytes],
        walk: PathWalk,
        *,
        everything_known: bool = False,
    ) -> None:
        """In a preview, everything counts as known, because it will be captured first."""
        self._request = request
        self._names = frozenset(names)
        self._path_walk = walk
        self._everything_known = everything_known
        word, _, keys = request.mode.partition(":")
        self._chosen = set(keys.split(",")) if word in (SOME, BELOW) else None
        self._below = word == BELOW
        self._exchanged: set[bytes] = set()
        self._target = request.target.by_name()
        self._present = {} if request.present is None else request.present.by_name()

    def steps(self) -> Steps:
        steps = Steps()
        wanted = read_index(self._request.contents)
        # Directories were saved with everything below; below absent paths there was nothing.
        covering = {k.path for k in wanted.values() if k.kind in (Kind.DIRECTORY, Kind.ABSENT)}
        if self._chosen is not None:  # below a file there was nothing either
            covering |= {k.path for k in wanted.values() if k.kind in (Kind.FILE, Kind.LINK)}
        unknown = {k.path for k in wanted.values() if k.kind.is_unknown or k.kind is Kind.PARTIAL}
        look = self._path_walk.at([*wanted, *covering])
        for path in sorted(wanted):
            if self._is_chosen(path) and not wanted[path].kind.is_unknown:
                self._plan_one(steps, wanted[path], wanted)
        refused = {path for path, _ in steps.refused}
        for path, reason in look.left_out.items():
            covered = path in covering or (path not in wanted and _covered(path, covering, unknown))
            matters = path not in refused and not reason.startswith(BUILT_IN)
            matters = matters and not self._is_below_exchanged(path)
            if covered and matters and self._is_chosen(path):
                steps.refused.append((path, f"{reason} now"))
        for path, entry in look.entries.items():
            beyond = path not in wanted and _covered(path, covering, unknown)
            if beyond and entry.status is not None and self._is_chosen(path):
                self._plan_removal(steps, entry)
        steps.remove.sort(key=lambda entry: entry.path, reverse=True)
        _keep_occupied(steps)
        return steps

    def _is_chosen(self, path: bytes) -> bool:
        if self._chosen is None or key_of(path) in self._chosen:
            return True
        return self._below and any(key_of(above) in self._chosen for above in ancestors(path))

    def _plan_one(self, steps: Steps, kept: Kept, wanted: Mapping[bytes, Kept]) -> None:
        if kept.path not in self._names and not any(a in self._names for a in ancestors(kept.path)):
            steps.refused.append((kept.path, "no tool has used it in this workspace"))
            return
        try:
            gone = kept.kind is not Kind.ABSENT and self._is_below_exchanged(kept.path)
            entry = Entry(kept.path, None, None) if gone else look_at(kept.path)
        except LeftOut as reason:
            no_directory = (Kind.FILE, Kind.LINK)
            above = [wanted[path].kind for path in ancestors(kept.path) if path in wanted]
            if kept.kind is Kind.ABSENT and any(kind in no_directory for kind in above):
                return  # it was not reachable then either
            steps.refused.append((kept.path, f"{reason} now"))
            return
        if self._is_as_wanted(kept, entry):
            if (kept.kind is Kind.FILE or kept.is_directory) and mode_of(entry) != kept.mode:
                self._unless_refused(steps, kept, entry, steps.change_mode)
        elif kept.kind is Kind.ABSENT:
            self._plan_removal(steps, entry)
        elif entry.directory_owner is None and not self._will_be_made(kept, wanted):
            steps.refused.append((kept.path, "its directory is gone"))
        elif self._exchange(steps, kept, entry):
            return
        elif kept.is_directory:
            if entry.status is not None:
                turned = f"it was a directory and is a {kind_of(entry)} now"
                steps.refused.append((kept.path, turned))
            else:
                steps.make.append(kept)
        else:
            self._wanted_digest(kept)  # find missing content before anything is changed
            self._unless_refused(steps, kept, entry, steps.write)

    def _will_be_made(self, kept: Kept, wanted: Mapping[bytes, Kept]) -> bool:
        above = wanted.get(kept.path.rpartition(b"/")[0])
        return above is not None and above.is_directory and self._is_chosen(above.path)

    def _is_below_exchanged(self, path: bytes) -> bool:
        return any(above in self._exchanged for above in ancestors(path))

    def _exchange(self, steps: Steps, kept: Kept, entry: Entry) -> bool:
        """Whether the entry is replaced by one of another kind, which the user confirms separately:
        a link by a file, a file by a directory, and vice versa."""
        if self._chosen is None or entry.status is None or kept.is_kind_of(entry):
            return False
        if not kept.is_directory and not entry.is_directory:
            return False  # a link or a file is replaced in one step
        self._plan_removal(steps, entry)
        if any(removed is entry for removed in steps.remove):
            nothing = Entry(kept.path, None, entry.directory_owner)
            self._exchanged.add(kept.path)
            if kept.is_directory:
                steps.make.append(kept)
            else:
                self._unless_refused(steps, kept, nothing, steps.write)
        return True

    def _unless_refused(
        self, steps: Steps, kept: Kept, entry: Entry, into: list[tuple[Kept, Entry]]
    ) -> None:
        reason = self._refusal(kept, entry)
        if reason is None:
            into.append((kept, entry))
        else:
            steps.refused.append((kept.path, reason))

    def _refusal(self, kept: Kept, entry: Entry) -> str | None:
        if entry.status is not None and not kept.is_kind_of(entry) and self._chosen is None:
            return f"it was a {kept.kind} and is a {kind_of(entry)} now"
        if entry.status is not None and entry.status.st_uid != kept.user:
            return "its owner has changed"
        if entry.directory_owner is not None and entry.directory_owner != kept.directory_owner:
            return "the owner of its directory has changed"
        if os.geteuid() not in (0, kept.user):
            return "it belonged to another user and would become yours"
        if entry.status is not None and not self._is_known(entry):
            return "the current version could not be saved"
        return None

    def _plan_removal(self, steps: Steps, entry: Entry) -> None:
        assert entry.status is not None
        if os.geteuid() not in (0, entry.status.st_uid):
            steps.refused.append((entry.path, "it belongs to another user"))
        elif not entry.is_directory and not self._is_known(entry):
            steps.refused.append((entry.path, "the current version could not be saved"))
        else:
            steps.remove.append(entry)

    def _is_as_wanted(self, kept: Kept, entry: Entry) -> bool:
        if not kept.is_kind_of(entry):
            return False
        if kept.kind is Kind.ABSENT or kept.is_directory:
            return True
        return digest_at(entry) == self._wanted_digest(kept)

    def _is_known(self, entry: Entry) -> bool:
        """Whether the state before the restore has exactly these bytes at this path."""
        if entry.is_directory:
            return True  # a directory has only a mode
        digest = digest_at(entry)
        if self._everything_known:
            return digest is not None
        known = self._present.get(content_name(entry.path))
        return known is not None and known.digest == digest

    def _wanted_digest(self, kept: Kept) -> Digest:
        content = self._target.get(kept.content)
        if content is None:
            raise ComponentProblem(
                f"the content of {display_path(kept.path)} is missing from the checkpoint"
            )
        return content.digest

    def run(self) -> None:
        steps = self.steps()
        if steps.refused:
            path, reason = steps.refused[0]
            raise ComponentProblem(f"{display_path(path)}: {reason}")
        for entry in steps.remove:
            _remove(entry)
        for kept in steps.make:
            _make_directory(kept)
        for kept, entry in steps.write:
            self._write(kept, entry)
        written = (kept.path for kept in (*steps.make, *(kept for kept, _ in steps.write)))
        _sync_directories((*(entry.path for entry in steps.remove), *written))
        for kept, entry in steps.change_mode:
            _change_mode(kept, entry)
        for kept in reversed(steps.make):  # inner ones first: a mode may block access
            _change_mode(kept, None)

    def _write(self, kept: Kept, entry: Entry) -> None:
        directory, _, name = kept.path.rpartition(b"/")
        temporary = STAGING_PREFIX + digest_of(name).hex()[:16].encode()
        with opened_directory(directory) as dir_fd, replacement(dir_fd, name, temporary):
            data = b"".join(self._request.contents.read(kept.content))
            if kept.kind is Kind.LINK:
                os.symlink(data, temporary, dir_fd=dir_fd)
            else:
                _write_file(kept, data, dir_fd, temporary)
            _require_unchanged(dir_fd, entry)

    def differences(self) -> Iterator[str]:
        """What differs from the checkpoint after `run`."""
        steps = self.steps()
        for path, _ in steps.lines():
            yield f"{display_path(path)} differs from the checkpoint"
        for path, reason in steps.left_alone():
            yield f"{display_path(path)}: {reason}"


def _keep_occupied(steps: Steps) -> None:
    """Leave directories alone in which something remains, and do not write files in their place.
    Inner ones come first. `run` goes on without them: a rollback must not fail because another
    program has used a directory that the restore created."""
    removed: set[bytes] = set()
    for entry in steps.remove:
        if entry.is_directory and not _would_be_empty(entry.path, removed):
            steps.occupied.append(entry.path)
        else:
            removed.add(entry.path)
    steps.remove = [entry for entry in steps.remove if entry.path in removed]
    steps.write = [(kept, entry) for kept, entry in steps.write if kept.path not in steps.occupied]


def _would_be_empty(directory: bytes, removed: Container[bytes]) -> bool:
    with contextlib.suppress(OSError), opened_directory(directory) as dir_fd:
        return all(join(directory, os.fsencode(name)) in removed for name in os.listdir(dir_fd))
    return True  # it is gone; or it cannot be read, and its removal will report that


def _covered(path: bytes, covering: Container[bytes], unknown: Container[bytes]) -> bool:
    """Whether everything below one of a path's parents is known."""
    for above in ancestors(path):
        if above in unknown:
            return False
        if above in covering:
            return True
    return False


def _sync_directories(paths: Iterable[bytes]) -> None:
    """Make names durable, syncing each directory once. If a directory is gone or is a file now, the
    directory above it is synced instead."""
    gone = contextlib.suppress(FileNotFoundError, NotADirectoryError)
    for directory in sorted({path.rpartition(b"/")[0] for path in paths}):
        with gone, opened_directory(directory) as dir_fd:
            os.fsync(dir_fd)


def _write_file(kept: Kept, data: bytes, dir_fd: int, temporary: bytes) -> None:
    with new_file(temporary, 0o600, dir_fd) as fd:
        write_all(fd, data)
        _set_owner(fd, kept)
        os.fchmod(fd, kept.mode)
        os.utime(fd, ns=(kept.mtime_ns, kept.mtime_ns))


def _set_owner(fd: int, kept: Kept) -> None:
    """Set the owner and the group that it had."""
    status = os.fstat(fd)
    user = kept.user if os.geteuid() == 0 else status.st_uid
    if (status.st_uid, status.st_gid) != (user, kept.group):
        try:
            os.fchown(fd, user, kept.group)
        except PermissionError:
            raise ComponentProblem(
                f"{display_path(kept.path)} belonged to the group {kept.group}, which you are not "
                "in; restore it as a member of that group"
            ) from None


def _remove(entry: Entry) -> None:
    directory, _, name = entry.path.rpartition(b"/")
    with opened_directory(directory) as dir_fd:
        if entry.is_directory:
            with contextlib.suppress(OSError):  # something was created in it since; verified later
                os.rmdir(name, dir_fd=dir_fd)
        else:
            _require_unchanged(dir_fd, entry)
            os.unlink(name, dir_fd=dir_fd)


def _make_directory(kept: Kept) -> None:
    directory, _, name = kept.path.rpartition(b"/")
    try:
        with opened_directory(directory) as dir_fd:
            if kept.directory_owner is not None and os.fstat(dir_fd).st_uid != kept.directory_owner:
                raise ComponentProblem(
                    f"the directory of {display_path(kept.path)} now has another owner"
                )
            os.mkdir(name, 0o700, dir_fd=dir_fd)
    except FileExistsError:
        return


def _change_mode(kept: Kept, entry: Entry | None) -> None:
    directory, _, name = kept.path.rpartition(b"/")
    with opened_directory(directory) as dir_fd:
        fd = os.open(name, READ_FLAGS, dir_fd=dir_fd)
        try:
            if entry is not None:
                _require_same(entry, os.fstat(fd))
            if kept.is_directory:
                _set_owner(fd, kept)
            os.fchmod(fd, kept.mode)
            os.fsync(fd)
        finally:
            os.close(fd)


def _require_unchanged(dir_fd: int, entry: Entry) -> None:
    name = entry.path.rpartition(b"/")[2]
    try:
        status: os.stat_result | None = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        status = None
    _require_same(entry, status)


def _require_same(entry: Entry, status: os.stat_result | None) -> None:
    if Entry(entry.path, status, None).identity != entry.identity:
        raise ComponentProblem(
            f"{display_path(entry.path)} changed in the meantime and was kept; restore again"
        )

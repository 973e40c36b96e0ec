"""Carrying out what an installation changes.

    refuse as a whole what cannot be written → read each file again → write it atomically

Guarantees: nothing is written when any file cannot be; a file keeps its mode and its owner, and a
link stays a link (what it leads to is edited); a file that changed since it was read is not
overwritten. Not guaranteed: that nobody changes it in the instant between the last look and the
exchange.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from holdfast.domain.errors import Refused
from holdfast.interfaces.agent_setup.changes import FileChange
from holdfast.interfaces.agent_setup.settings_file import read_settings


def carry_out(changes: Sequence[FileChange], *, keep: Sequence[Path]) -> None:
    """Write what differs. Everything that can be refused is, before the first byte. Directories
    that are left empty go too, but never one of `keep`, or above it."""
    pending = [change for change in changes if change.differs]
    for change in pending:
        _require_writable(change)
    for change in pending:
        try:
            _write(change, keep)
        except OSError as error:
            raise Refused(
                f"{change.path} cannot be written: {error.strerror}",
                hint="check its owner, its permissions and the free space",
            ) from None


def _require_writable(change: FileChange) -> None:
    place = change.target
    if change.before is not None and not _may(place, os.W_OK):
        raise Refused(
            f"{change.path} is read-only",
            hint=f"allow it, then try again: chmod u+w {shlex.quote(str(place))}",
        )
    directory = place.parent
    while not directory.exists():
        directory = directory.parent
    if not directory.is_dir() or not _may(directory, os.W_OK | os.X_OK):
        raise Refused(
            f"{change.path} cannot be written: no permission for {directory}",
            hint="check its owner and permissions",
        )


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _write(change: FileChange, keep: Sequence[Path]) -> None:
    place = change.target
    if read_settings(place)[0] != change.before:
        raise Refused(f"{change.path} was changed meanwhile", hint="run the command again")
    if change.after is None:
        place.unlink()
        if change.path.is_symlink():
            change.path.unlink()  # it would lead nowhere
        _remove_empty(change.path.parent, keep)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f".{place.name}.holdfast-{os.getpid()}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(change.after.encode("utf-8"))
            file.flush()
            _give_to_owner(file.fileno(), change)
            os.fchmod(file.fileno(), change.mode)
            os.fsync(file.fileno())
        os.replace(fresh, place)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _give_to_owner(fd: int, change: FileChange) -> None:
    """What belongs to another user or group goes on doing so. A group that we cannot give it to
    would keep out who may read it now: that is refused."""
    made = os.fstat(fd)
    if change.owner is not None and change.owner != (made.st_uid, made.st_gid):
        os.fchown(fd, *change.owner)


def _remove_empty(directory: Path, keep: Sequence[Path]) -> None:
    """Directories that hold nothing any more, up to those that stay."""
    while any(directory.is_relative_to(root) and directory != root for root in keep):
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent

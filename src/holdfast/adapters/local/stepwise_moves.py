"""Moves that never replace anything, in steps, where the system has no single call for them.

    to a free name   link there → unlink here; a directory, which no link can have: rename
    an exchange      the other one aside → this one to its name → what was aside to this one's name

Guarantees: whoever interrupts a move (Ctrl-C) finds it made or taken back; a name that somebody
takes in between is not touched; what then has no place stays aside, beside the one that was to
move, with a suffix that the port names. Not guaranteed: that a death in between leaves no trace, or
that an empty directory, made in that moment where a directory is to go, is kept.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from holdfast.ports.filesystem import SET_ASIDE


def move_new(source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """See `Filesystem.rename_new`."""
    if stat.S_ISDIR(_status(source, src_dir_fd).st_mode):
        _move_directory(source, target, src_dir_fd, dst_dir_fd)
        return
    try:
        os.link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=False)
        os.unlink(source, dir_fd=src_dir_fd)
    except FileExistsError:
        raise
    except BaseException:
        if _are_one(source, src_dir_fd, target, dst_dir_fd):
            os.unlink(target, dir_fd=dst_dir_fd)
        raise


def exchange(one: bytes, other: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
    """See `Filesystem.exchange`."""
    aside = one + SET_ASIDE
    try:
        os.rename(other, aside, src_dir_fd=dst_dir_fd, dst_dir_fd=src_dir_fd)
        move_new(one, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        os.rename(aside, one, src_dir_fd=src_dir_fd, dst_dir_fd=src_dir_fd)
    except BaseException:
        if _exists(aside, src_dir_fd):
            if not _exists(one, src_dir_fd):  # it is where it should be, and the last step missing
                os.rename(aside, one, src_dir_fd=src_dir_fd, dst_dir_fd=src_dir_fd)
            else:
                with contextlib.suppress(FileExistsError):
                    move_new(aside, other, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        raise


def _move_directory(source: bytes, target: bytes, src_dir_fd: int, dst_dir_fd: int) -> None:
    if _exists(target, dst_dir_fd):
        raise _taken(target)
    try:
        os.rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST):
            raise _taken(target) from None
        raise


def _status(name: bytes, dir_fd: int) -> os.stat_result:
    return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)


def _exists(name: bytes, dir_fd: int) -> bool:
    try:
        _status(name, dir_fd)
    except FileNotFoundError:
        return False
    return True


def _are_one(one: bytes, one_fd: int, other: bytes, other_fd: int) -> bool:
    try:
        return os.path.samestat(_status(one, one_fd), _status(other, other_fd))
    except FileNotFoundError:
        return False


def _taken(name: bytes) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)

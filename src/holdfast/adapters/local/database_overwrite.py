"""Writes one state of a SQLite database into a live one, through SQLite itself.

    the wanted state as one file → SQLite's write lock on the live one → unsaved content is kept
    → all pages in one transaction → read back → exact bytes, if no program uses it

Guarantees: programs that have or open the database see the old state or the new one. The file stays
the same, and every page goes through SQLite's own locks and journal. If the process dies, SQLite
rolls the transaction back. Nothing unsaved is overwritten. Not guaranteed: the exact bytes of the
file while other programs have it open (`database_exact`). Run it in a separate process: closing a
file drops all locks of a process on it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import apsw

from holdfast.adapters.local.database_exact import (
    OPEN_FLAGS,
    copy_to_new,
    digest_of_handle,
    make_exact,
    opened,
    read_beginning,
    same_content,
)
from holdfast.adapters.local.disk_sync import sync_to_disk
from holdfast.adapters.local.live_database import path_of, require_plain_beside, require_same
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.sqlite_files import (
    COMPANIONS,
    HEADER,
    JOURNAL,
    LOG,
    SHARED_MEMORY,
    DatabaseJob,
    PerhapsWritten,
    Writing,
    Written,
    is_shared_memory,
)
from holdfast.domain.trees.objects import digest_of

_BETWEEN_TRIES_S = 0.0005
_LEAST_TRIES = 200
_FOR_LOG_S = 0.1
_UNREADABLE = (apsw.NotADBError, apsw.CorruptError, apsw.CantOpenError, UnicodeError)
_OWNER = stat.S_IRUSR | stat.S_IWUSR
_NOTHING = digest_of(b"")
_A_ROW = "SELECT 1 FROM sqlite_schema LIMIT 1"


class _Unsuitable(Exception):
    """This database cannot be written through SQLite; nothing was changed."""


def overwrite(job: DatabaseJob, dir_fd: int, area: int) -> Written:
    """Change the database `job.name` in `dir_fd` to the state in `area`."""
    try:
        return _overwrite(job, dir_fd, area)
    except (apsw.BusyError, apsw.LockedError):
        return Written(Writing.BUSY)
    except (_Unsuitable, *_UNREADABLE) as error:
        return Written(Writing.UNSUITABLE, detail=str(error))


def _overwrite(job: DatabaseJob, dir_fd: int, area: int) -> Written:
    _require_own_beside(job.name, dir_fd)
    with _folded(job.slots, area) as name, opened(name, area) as folded:
        with _source(name, folded, area) as source:
            size = int(source.pragma("page_count")) * int(source.pragma("page_size"))
            if os.fstat(folded).st_size != size:
                raise _Unsuitable("the saved database has bytes after its last page")
            aside = False
            if not _put_new(job, folded, dir_fd, area):
                aside = _write_into_live(job, dir_fd, area, source, folded, size)
        with _committed():
            # A mode that stops the owner from writing is set last.
            LocalFilesystem.set_mode(job.name, job.mode | _OWNER, dir_fd=dir_fd)
            exact = make_exact(job, dir_fd, area, folded, size)
            if not exact:
                LocalFilesystem.set_mode(job.name, job.mode, dir_fd=dir_fd)
    return Written(Writing.EXACT if exact else Writing.IN_USE, aside)


def _require_own_beside(name: bytes, dir_fd: int) -> None:
    """Files named like a part of the database are replaced with it. They must not be something
    else, and SQLite, which empties them, must not reach another file through them."""
    try:
        require_plain_beside(name, dir_fd)
    except OSError as error:
        raise _Unsuitable(str(error)) from None
    for suffix in COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            if os.stat(name + suffix, dir_fd=dir_fd, follow_symlinks=False).st_nlink > 1:
                raise _Unsuitable(f"its {suffix.decode()} file has several names (hard links)")
    beginning = read_beginning(name + SHARED_MEMORY, dir_fd, 4)
    if beginning.strip(b"\0") and not is_shared_memory(name + SHARED_MEMORY, beginning):
        raise _Unsuitable("another file has the name of its shared-memory file")


@contextmanager
def _committed() -> Iterator[None]:
    """Failures in the block happen after the database has changed."""
    try:
        yield
    except OSError as error:
        raise PerhapsWritten(error.errno or errno.EIO, error.strerror or str(error)) from None
    except apsw.Error as error:
        raise PerhapsWritten(errno.EIO, f"SQLite cannot read the database: {error}") from None


@contextmanager
def _folded(slots: dict[bytes, bytes], area: int) -> Iterator[bytes]:
    """The name of a file with the whole state, for the time of the block: the staged database
    itself, or a copy into which SQLite has merged its log."""
    if len(slots) == 1:
        yield slots[b""]
        return
    name = slots[b""] + b".folded"
    try:
        for suffix, slot in slots.items():
            with opened(slot, area) as fd:
                os.close(copy_to_new(fd, name + suffix, area))
        _fold(name, area)
        yield name
    finally:
        for suffix in (b"", LOG, JOURNAL, SHARED_MEMORY):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name + suffix, dir_fd=area)


def _fold(name: bytes, area: int) -> None:
    """Roll back a journal, and move a log into the database."""
    flags = apsw.SQLITE_OPEN_READWRITE
    with closing(apsw.Connection(_path(name, area), flags=flags)) as connection:
        connection.execute(_A_ROW).fetchall()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


@contextmanager
def _source(name: bytes, folded: int, area: int) -> Iterator[apsw.Connection]:
    """Read it unchanged: no other program knows of it, and nothing may be created beside it."""
    if os.pread(folded, len(HEADER), 0) != HEADER:
        raise _Unsuitable("the saved state is not a database")
    path = _path(name, area).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(f"file:{path}?immutable=1", flags=flags)) as connection:
        connection.execute(_A_ROW).fetchall()
        yield connection


def _path(name: bytes, dir_fd: int) -> str:
    return os.path.join(path_of(dir_fd), name).decode()


def _put_new(job: DatabaseJob, folded: int, dir_fd: int, area: int) -> bool:
    """If there is no database, the wanted one appears in one step; False if there is one."""
    if _is_there(job.name, dir_fd):
        return False
    staged = os.stat(job.slots[b""], dir_fd=area, follow_symlinks=False)
    name = job.slots[b""] + b".new"
    fd = copy_to_new(folded, name, area)
    try:
        if os.geteuid() == 0:
            os.fchown(fd, staged.st_uid, staged.st_gid)
        os.fchmod(fd, job.mode | _OWNER)
        sync_to_disk(fd)
    finally:
        os.close(fd)
    try:
        LocalFilesystem.rename_new(name, job.name, src_dir_fd=area, dst_dir_fd=dir_fd)
    except FileExistsError:
        os.unlink(name, dir_fd=area)
        return False
    with _committed():
        sync_to_disk(dir_fd)
    return True


def _is_there(name: bytes, dir_fd: int) -> bool:
    try:
        status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise _Unsuitable("it is not a regular file, or has several names (hard links)")
    return True


def _write_into_live(
    job: DatabaseJob,
    dir_fd: int,
    area: int,
    source: apsw.Connection,
    folded: int,
    size: int,
) -> bool:
    """Returns whether something was moved aside."""
    with (
        _made_writable(job.name, dir_fd) as live,
        closing(_connected(job, dir_fd)) as connection,
    ):
        _agree_on_pages(connection, source)
        with connection.backup("main", source, "main") as backup:
            backup.step(1)  # from now on, no other program writes
            require_same(os.path.join(path_of(dir_fd), job.name), job.name, dir_fd)
            if not _is_same_file(live, job.name, dir_fd):
                raise OSError(errno.EBUSY, "another file has replaced the database")
            aside = _put_aside(job, live, dir_fd, area, folded, size)
            while not backup.done:
                backup.step()
        # A program that blocks the read-back is writing by now, so it has read the new state.
        with _committed(), contextlib.suppress(apsw.BusyError):
            _require_written(connection, live, job.slots[b""], area, folded, size)
    return aside


def _is_same_file(live: int, name: bytes, dir_fd: int) -> bool:
    """SQLite opens by path, so its own handle must belong to the file of that name."""
    wanted = os.fstat(live)
    if not os.path.samestat(wanted, os.stat(name, dir_fd=dir_fd, follow_symlinks=False)):
        return False
    for number in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):  # the listing's own handle is already closed
            if number != live and os.path.samestat(wanted, os.fstat(number)):
                return True
    return False


@contextmanager
def _made_writable(name: bytes, dir_fd: int) -> Iterator[int]:
    """Another handle of the live file, closed after SQLite's own, because closing any handle drops
    the locks. A file that its mode protects from its owner is made accessible meanwhile."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    needed = mode | _OWNER
    if needed != mode:
        LocalFilesystem.set_mode(name, needed, dir_fd=dir_fd)
    fd = os.open(name, os.O_RDWR | OPEN_FLAGS, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        if needed != mode:
            os.fchmod(fd, mode)
        os.close(fd)


def _connected(job: DatabaseJob, dir_fd: int) -> apsw.Connection:
    path = os.path.join(path_of(dir_fd), job.name)
    require_same(path, job.name, dir_fd)
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(path.decode(), flags=flags)
    try:
        _wait_at_most(connection, job.patience_s)
        connection.pragma("synchronous", "extra")
        connection.execute(_A_ROW).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _wait_at_most(connection: apsw.Connection, seconds: float) -> None:
    """Makes a minimum number of tries, because time alone says little on a busy machine."""
    pause = threading.Event()
    end_ns = SystemClock.monotonic_ns() + int(seconds * 1e9)

    def again(tried: int) -> bool:
        pause.wait(_BETWEEN_TRIES_S)
        return tried < _LEAST_TRIES or SystemClock.monotonic_ns() < end_ns

    connection.set_busy_handler(again)


def _agree_on_pages(connection: apsw.Connection, source: apsw.Connection) -> None:
    """A log cannot hold pages of another size; then no other program may have the database open."""
    if connection.pragma("page_size") == source.pragma("page_size"):
        return
    if connection.pragma("journal_mode") == "wal":
        connection.pragma("journal_mode", "delete")


def _put_aside(job: DatabaseJob, live: int, dir_fd: int, area: int, folded: int, size: int) -> bool:
    """With SQLite's lock held: copy the current state, as one file, unless it is saved or has the
    wanted content."""
    name = job.aside + b".new"
    with contextlib.ExitStack() as closing_log:
        log = None
        with contextlib.suppress(FileNotFoundError):
            log = closing_log.enter_context(opened(job.name + LOG, dir_fd))
        found = None if log is None else digest_of_handle(log)
        if digest_of_handle(live) == job.known.get(b"") and _same_log(found, job.known.get(LOG)):
            return False
        if log is not None:
            os.close(copy_to_new(log, name + LOG, area))
    fd = copy_to_new(live, name, area)
    try:
        status = os.fstat(live)
        if status.st_size:
            _fold(name, area)
        if same_content(fd, folded, size):
            os.unlink(name, dir_fd=area)
            return False
        os.fchmod(fd, stat.S_IMODE(status.st_mode))
        os.utime(fd, ns=(status.st_mtime_ns, status.st_mtime_ns))
        sync_to_disk(fd)
    finally:
        os.close(fd)
    os.rename(name, job.aside, src_dir_fd=area, dst_dir_fd=area)
    sync_to_disk(area)
    return True


def _same_log(one: bytes | None, other: bytes | None) -> bool:
    return (one or _NOTHING) == (other or _NOTHING)


def _require_written(
    connection: apsw.Connection, live: int, slot: bytes, area: int, folded: int, size: int
) -> None:
    """Read back what was committed, in a transaction; a difference may come from a later writer."""
    ours = connection.data_version()
    in_one_file = connection.pragma("journal_mode") != "wal" or _log_moved_in(connection)
    connection.execute(f"BEGIN; {_A_ROW}").fetchall()
    try:
        if in_one_file:
            same = same_content(live, folded, size)
        else:
            same = _same_in_copy(connection, slot + b".read-back", area, folded, size)
        if not same and connection.data_version() == ours:
            raise OSError(errno.EIO, "the database reads back differently from what was written")
    finally:
        connection.execute("ROLLBACK")


def _log_moved_in(connection: apsw.Connection) -> bool:
    """False while a program reads an older state, for which the log must stay."""
    _wait_at_most(connection, _FOR_LOG_S)
    try:
        in_log, in_database = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    return in_log == in_database


def _same_in_copy(
    connection: apsw.Connection, name: bytes, area: int, folded: int, size: int
) -> bool:
    with closing(apsw.Connection(_path(name, area))) as copy:
        copy.pragma("synchronous", "off")
        with copy.backup("main", connection, "main") as backup:
            while not backup.done:
                backup.step()
        copy.pragma("journal_mode", "delete")
    try:
        with opened(name, area) as fd:
            return same_content(fd, folded, size)
    finally:
        os.unlink(name, dir_fd=area)

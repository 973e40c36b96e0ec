"""Checks of a store's environment, one function each; every finding comes with its fix. Nothing is
changed.

`EXAMINATIONS` is the list; add a function there for another check. A function gets the
`Surroundings` and yields one `Symptom` for each check, even if all is well, so that a person sees
what was checked. A failed check is a symptom like any other.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw

from holdfast.adapters.local.all_stores import stores_without_workspace
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.mounts import NETWORK, existing, file_system_of
from holdfast.adapters.local.store_errors import READ_ONLY_HINT, is_read_only
from holdfast.adapters.local.store_files import SET_ASIDE
from holdfast.adapters.local.system import is_ours, is_stopped
from holdfast.domain.errors import HoldfastError
from holdfast.domain.paths import MARKER_DIRECTORY, STAGING_PREFIX
from holdfast.domain.repair_plan import Gravity, Symptom
from holdfast.domain.wording import size_words
from holdfast.ports.filesystem import DISK_RESERVE_BYTES

_OTHERS = 0o077
_LOW_DISK_BYTES = 1 << 30
_MUCH_BYTES = 100_000_000
_FEW_WATCHES = 65_536
_LONG_HELD_NS = 600 * 1_000_000_000
_SLACK_NS = 120 * 1_000_000_000
_YEAR_2020_NS = 1_577_836_800 * 1_000_000_000
_SOUND_SQLITE = (3, 51, 3)
_STORE_CURES = (
    (NETWORK, "set HOLDFAST_HOME to a local disk; locks and syncs are unreliable here"),
    (("tmpfs", "ramfs"), "set HOLDFAST_HOME to a disk; this file system is empty after a restart"),
    (
        ("overlay", "aufs", "fuse.unionfs"),
        "set HOLDFAST_HOME to a volume; this data is deleted with the container",
    ),
)
_WORKSPACE_CURES = ((NETWORK, "edits within one tick of the server's clock can be missed"),)
_INOTIFY = Path("/proc/sys/fs/inotify")
_NEAR_THE_BUDGET = 0.8


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where to look. Without a store, only the rest is checked."""

    home: Path
    workspace: Path
    layout: StoreLayout | None
    now_ns: int
    newest_checkpoint_ns: int | None
    opening_error: HoldfastError | None = None
    size_bytes: int | None = None
    budget_bytes: int | None = None
    restore_trouble: str | None = None


Examination = Callable[[Surroundings], Iterator[Symptom]]


def examine(around: Surroundings, looks: Sequence[Examination] | None = None) -> list[Symptom]:
    """The findings of all checks, or of some; each goes as far as it can."""
    found: list[Symptom] = []
    for look in EXAMINATIONS if looks is None else looks:
        try:
            for symptom in look(around):
                found.append(symptom)
        except OSError as error:
            where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
            finding = f"cannot check it: {error.strerror}{where}"
            cure = "fix the permissions and ownership problems listed here, then run doctor again"
            found.append(Symptom(look.__name__.replace("_", " "), Gravity.PROBLEM, finding, cure))
    return found


def opening(around: Surroundings) -> Iterator[Symptom]:
    error = around.opening_error
    if error is not None:
        yield Symptom("store", Gravity.PROBLEM, error.message, error.hint)
    elif around.layout is None:
        yield Symptom("store", Gravity.FINE, "this workspace has no store yet")
    else:
        yield Symptom("store", Gravity.FINE, f"{around.layout.directory} can be opened")


def permissions(around: Surroundings) -> Iterator[Symptom]:
    """Private, owned and writable: the home of all stores and everything in this one.

    Opening a store closes its directory to others, so this has to come before.
    """
    if not os.path.lexists(around.home):
        yield future_home(around.home)
        return
    found: list[Symptom] = []
    paths = [around.home.resolve(), around.home / "stores", around.home / "by-path"]
    if around.layout is not None:
        paths += [around.layout.directory, *sorted(around.layout.directory.rglob("*"))]
    paths = [path for path in paths if os.path.lexists(path)]
    for path in paths:
        found += _permissions_of(path)
    yield from found
    if not found:
        private = "1 path is" if len(paths) == 1 else f"{len(paths):,} paths are"
        yield Symptom("permissions", Gravity.FINE, f"{private} private and yours")


def future_home(home: Path) -> Symptom:
    """Whether the home of all stores, which does not exist yet, can be created."""
    place = existing(home)
    if not place.is_dir():
        trouble = "is not a directory"
    elif not _may(place, os.W_OK | os.X_OK):
        trouble = "is not writable"
    else:
        return Symptom("home", Gravity.FINE, f"the first checkpoint creates {home}")
    cure = "set HOLDFAST_HOME to a directory of your own"
    return Symptom("home", Gravity.PROBLEM, f"cannot create {home}: {place} {trouble}", cure)


def _permissions_of(path: Path) -> Iterator[Symptom]:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    quoted = shlex.quote(str(path))
    if status.st_uid != os.geteuid():
        finding = f"{path} belongs to another user (uid {status.st_uid})"
        yield Symptom("ownership", Gravity.PROBLEM, finding, f"sudo chown -R $USER {quoted}")
    elif not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        # Never suggest chmod, which would follow a link to its target.
        finding = f"{path} is neither a file nor a directory and does not belong there"
        cure = f"find out where it comes from, then remove it: rm {quoted}"
        yield Symptom("permissions", Gravity.PROBLEM, finding, cure)
    elif status.st_mode & _OTHERS:
        wanted = "700" if stat.S_ISDIR(status.st_mode) else "600"
        finding = f"{path} is open to other users ({stat.S_IMODE(status.st_mode):o})"
        yield Symptom("permissions", Gravity.WARNING, finding, f"chmod {wanted} {quoted}")
    elif not _may(path, _needed(path, status)):
        finding = f"{path} cannot be read and written"
        yield Symptom("permissions", Gravity.PROBLEM, finding, f"chmod u+rwX {quoted}")


def _needed(path: Path, status: os.stat_result) -> int:
    entering = os.X_OK if stat.S_ISDIR(status.st_mode) else 0
    return os.R_OK | entering | (0 if is_read_only(path) else os.W_OK)


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def free_disk(around: Surroundings) -> Iterator[Symptom]:
    place = existing(around.home)
    free = os.statvfs(place)
    free_bytes = free.f_bavail * free.f_frsize
    finding = f"{size_words(free_bytes)} free on the disk of {place}"
    if free_bytes <= DISK_RESERVE_BYTES:
        cure = "free some space, or set HOLDFAST_HOME to another disk"
        yield Symptom("disk", Gravity.PROBLEM, finding + ": checkpoints are refused", cure)
    elif free_bytes < _LOW_DISK_BYTES:
        yield Symptom("disk", Gravity.WARNING, finding, "free some space: holdfast cleanup")
    else:
        yield Symptom("disk", Gravity.FINE, finding)


def budget(around: Surroundings) -> Iterator[Symptom]:
    if around.size_bytes is None or around.budget_bytes is None:
        return
    share = around.size_bytes / around.budget_bytes
    taken, most = size_words(around.size_bytes), size_words(around.budget_bytes)
    finding = f"the store uses {taken} of its budget of {most}"
    cure = "holdfast cleanup, or raise it: holdfast config set budget '\"10 GB\"'"
    if share >= 1:
        yield Symptom("budget", Gravity.PROBLEM, finding + ": large files are not saved", cure)
    elif share >= _NEAR_THE_BUDGET:
        yield Symptom("budget", Gravity.WARNING, finding, cure)
    else:
        yield Symptom("budget", Gravity.FINE, finding)


def lost_workspaces(around: Surroundings) -> Iterator[Symptom]:
    """Unused stores take space from the others, but only a person can know."""
    found = stores_without_workspace(around.home)
    if not found:
        yield Symptom("other stores", Gravity.FINE, "every store has its workspace")
        return
    taken = sum(one.size_bytes for one in found)
    have = "1 store has" if len(found) == 1 else f"{len(found):,} stores have"
    gravity = Gravity.WARNING if taken >= _MUCH_BYTES else Gravity.FINE
    finding = f"{have} no workspace ({size_words(taken)})"
    yield Symptom("other stores", gravity, finding, "list them: holdfast cleanup --stores")


def file_systems(around: Surroundings) -> Iterator[Symptom]:
    for subject, path, cures in (
        ("store", around.home, _STORE_CURES),
        ("workspace", around.workspace, _WORKSPACE_CURES),
    ):
        kind = file_system_of(existing(path))
        if kind is None:
            continue
        finding = f"the {subject} is on {kind}"
        cure = next((cure for kinds, cure in cures if kind in kinds), None)
        if subject == "store" and is_read_only(existing(path)):
            yield Symptom(
                "file system", Gravity.PROBLEM, finding + ", which is read-only", READ_ONLY_HINT
            )
        elif cure is not None:
            yield Symptom("file system", Gravity.WARNING, finding, cure)
        else:
            yield Symptom("file system", Gravity.FINE, finding)


def inotify_limits(around: Surroundings) -> Iterator[Symptom]:
    for name, few in (("max_user_watches", _FEW_WATCHES), ("max_user_instances", 128)):
        try:
            limit = int((_INOTIFY / name).read_text("ascii"))
        except (OSError, ValueError):
            continue
        finding = f"{name} is {limit}"
        if limit < few:
            cure = f"sudo sysctl fs.inotify.{name}={few}"
            yield Symptom("inotify", Gravity.WARNING, finding, cure)
        else:
            yield Symptom("inotify", Gravity.FINE, finding)


def sqlite(around: Surroundings) -> Iterator[Symptom]:
    version = apsw.sqlite_lib_version()
    numbers = tuple(int(part) for part in version.split("."))
    safe = "THREADSAFE=1" in apsw.compile_options
    finding = f"SQLite {version} (apsw {apsw.apsw_version()})"
    finding += "" if safe else ", not thread-safe"
    if numbers < _SOUND_SQLITE or not safe:
        cure = "install the pinned version of apsw; this one can damage the database log"
        yield Symptom("sqlite", Gravity.PROBLEM, finding, cure)
    else:
        yield Symptom("sqlite", Gravity.FINE, finding)


def lock(around: Surroundings) -> Iterator[Symptom]:
    """A lock ends with its process, so a held lock has a live holder."""
    if around.layout is None or not around.layout.lock.exists():
        return
    fd = os.open(around.layout.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield Symptom("lock", Gravity.FINE, "no process holds the store's lock")
    except BlockingIOError:
        yield _lock_symptom(os.pread(fd, 256, 0), around.now_ns)
    finally:
        os.close(fd)


def _lock_symptom(description: bytes, now_ns: int) -> Symptom:
    try:
        holder = json.loads(description)
        pid, since_ns = int(holder["pid"]), now_ns - int(holder["since_ns"])
        if not is_ours(pid):
            raise ValueError("the previous holder has ended")
        held_s = since_ns / 1e9
        finding = (
            f"process {pid} ({holder['purpose']}) has held the store's lock for {held_s:.0f} s"
        )
    except (ValueError, KeyError, TypeError):
        return Symptom("lock", Gravity.WARNING, "a process holds the store's lock", "wait for it")
    if is_stopped(pid):
        cure = f"resume it: kill -CONT {pid}; or end it: kill -KILL {pid}"
        return Symptom("lock", Gravity.WARNING, finding + ", and is stopped", cure)
    if since_ns < _LONG_HELD_NS:
        return Symptom("lock", Gravity.FINE, finding)
    return Symptom("lock", Gravity.WARNING, finding, f"if it hangs: kill {pid}")


def leftovers(around: Surroundings) -> Iterator[Symptom]:
    """Leftovers of interrupted operations."""
    found = [
        Symptom("leftovers", gravity, finding, cure)
        for is_there, gravity, finding, cure in _possible_leftovers(around)
        if is_there
    ]
    fine = Symptom("leftovers", Gravity.FINE, "no interrupted operations")
    yield from found or [fine]


def _possible_leftovers(around: Surroundings) -> Iterator[tuple[bool, Gravity, str, str]]:
    if around.layout is None:
        return
    layout, directory, trouble = around.layout, around.layout.directory, around.restore_trouble
    if trouble is not None:
        finding = f"a restore cannot be finished: {trouble}"
        cure = "checkpoints still work; to quarantine that restore: holdfast repair"
        yield True, Gravity.PROBLEM, finding, cure
    else:
        restoring = layout.journal.exists() or _has_staging(around.workspace, directory.name)
        finding = "a restore was interrupted, or is running"
        yield restoring, Gravity.WARNING, finding, "to finish it, run any command: holdfast status"
    finding = (
        "an fsync of the conversation data failed; writes to it are blocked until it is verified"
    )
    cure = "the next message verifies it; checkpoints still work"
    yield layout.story.with_name("story.suspect").exists(), Gravity.WARNING, finding, cure
    finding = "an fsync failed; writes are blocked until the store is verified"
    cure = "the next checkpoint verifies it; if that fails, check the disk"
    yield layout.suspect.exists(), Gravity.WARNING, finding, cure
    finding = "a purge was interrupted"
    yield layout.purge_note.exists(), Gravity.PROBLEM, finding, "finish it: holdfast purge"
    finding = "a repair was interrupted"
    cure = "finish it: holdfast repair --yes"
    yield (directory / "repair").exists(), Gravity.PROBLEM, finding, cure
    temporary = [*directory.glob(".*.new"), *directory.glob("repairing")]
    names = ", ".join(path.name for path in temporary)
    finding = f"a killed process left temporary files: {names}"
    yield bool(temporary), Gravity.WARNING, finding, "remove them: holdfast cleanup"
    finding = f"a repair quarantined files in {directory / SET_ASIDE}"
    cure = "check them, then delete them: they count towards the budget"
    yield (directory / SET_ASIDE).is_dir(), Gravity.WARNING, finding, cure


def _has_staging(workspace: Path, store_id: str) -> bool:
    """Whether a restore from this store left something; that of another store may be in use."""
    own = Path(os.fsdecode(os.fsencode(workspace) + b"/" + MARKER_DIRECTORY))
    place = own if own.is_dir() and not own.is_symlink() else workspace
    prefix = f"{os.fsdecode(STAGING_PREFIX)}{store_id}-"
    try:
        return any(name.startswith(prefix) for name in os.listdir(place))
    except OSError:
        return False


def marker(around: Surroundings) -> Iterator[Symptom]:
    """Whether workspace and store still refer to each other."""
    if around.layout is None:
        return
    try:
        described: Path = around.layout.read_description()["workspace"]
    except HoldfastError:
        return  # reported by `opening`
    if described == around.workspace:
        yield Symptom("marker", Gravity.FINE, "the workspace and its store match")
    elif described.exists():
        finding = f"the store belongs to {described}; this workspace is a copy of that one"
        cure = "create a checkpoint here to give the copy its own store: holdfast checkpoint"
        yield Symptom("marker", Gravity.WARNING, finding, cure)
    else:
        finding = f"the workspace was moved here from {described}"
        yield Symptom("marker", Gravity.FINE, finding + "; the next command records this")


def git(around: Surroundings) -> Iterator[Symptom]:
    found = shutil.which("git")
    if found is None:
        cure = "git is optional; install it to save git state"
        yield Symptom("git", Gravity.FINE, "git is not installed", cure)
    else:
        yield Symptom("git", Gravity.FINE, f"{found}")


def clock(around: Surroundings) -> Iterator[Symptom]:
    newest = around.newest_checkpoint_ns
    cure = "set the clock; ages and retention depend on it"
    if around.now_ns < _YEAR_2020_NS:
        yield Symptom("clock", Gravity.WARNING, "the clock is set to a date before 2020", cure)
    elif newest is not None and newest > around.now_ns + _SLACK_NS:
        ahead_s = (newest - around.now_ns) // 1_000_000_000
        finding = f"the newest checkpoint is {ahead_s:,} s in the future"
        yield Symptom("clock", Gravity.WARNING, finding, cure)
    else:
        yield Symptom("clock", Gravity.FINE, "the clock and the checkpoints agree")


BEFORE_OPENING: tuple[Examination, ...] = (permissions,)
EXAMINATIONS: tuple[Examination, ...] = (
    opening,
    free_disk,
    budget,
    lost_workspaces,
    file_systems,
    inotify_limits,
    sqlite,
    lock,
    leftovers,
    marker,
    git,
    clock,
)

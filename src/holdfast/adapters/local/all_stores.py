"""All stores of a user: their total size, and those that have lost their workspace."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.store_directory import size_below
from holdfast.adapters.local.store_errors import store_trouble
from holdfast.adapters.local.store_files import read_own_file, sync_directory
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.errors import HoldfastError, Refused
from holdfast.domain.ids import Digest
from holdfast.ports.filesystem import Filesystem
from holdfast.values.classes import dataclass

_FRESH_NS = 600 * 1_000_000_000
_WORTH_NOTING_BYTES = 1_000_000
"""Other stores grow slowly, and measuring each of them on every save would cost too much."""


def other_stores_bytes(layout: StoreLayout, own_bytes: int) -> int:
    """The total size of the other stores. It is cached for a few minutes in a file that may be
    lost, in which each store records its own size."""
    home, own = layout.home, layout.directory.name
    sizes = _remembered(home)
    if sizes is None:
        sizes = {one.directory.name: _size(one) for one in stores_in(home)}
        _remember(home, sizes)
    elif abs(sizes.get(own, 0) - own_bytes) >= _WORTH_NOTING_BYTES:
        _remember(home, {**sizes, own: own_bytes})
    return sum(size for name, size in sizes.items() if name != own)


def stores_in(home: Path) -> list[StoreLayout]:
    try:
        names = sorted(os.listdir(home / "stores"))
    except OSError:
        return []
    found = (StoreLayout(home / "stores" / name) for name in names if not name.startswith("."))
    return [layout for layout in found if os.path.isdir(layout.directory)]


def idle_stores(own: StoreLayout) -> list[StoreLayout]:
    """The other stores, least recently used first."""
    others = [one for one in stores_in(own.home) if one.directory != own.directory]
    return sorted(others, key=_last_used_ns)


def forget_sizes(home: Path) -> None:
    """Stores have freed space, so the next call measures again."""
    with contextlib.suppress(OSError):
        os.unlink(home / "sizes")


@dataclass(frozen=True, slots=True)
class StoreWithoutWorkspace:
    """A store whose workspace is not where it was last seen. `may_be_unmounted`: the directory
    around it is missing too, or looks like a mount point."""

    directory: Path
    workspace: Path
    size_bytes: int
    last_used_ns: int
    may_be_unmounted: bool = False


def stores_without_workspace(home: Path) -> list[StoreWithoutWorkspace]:
    """Every such store, the largest first. The workspace may just be unmounted or moved, which only
    a person can know."""
    from holdfast.adapters.local.mounts import may_be_unmounted  # late: no save needs it

    found = []
    for layout, workspace in _workspaces(home):
        if not os.path.isdir(workspace):
            size, used_ns = _size(layout), _last_used_ns(layout)
            away = may_be_unmounted(workspace)
            found.append(StoreWithoutWorkspace(layout.directory, workspace, size, used_ns, away))
    return sorted(found, key=lambda one: -one.size_bytes)


def stores_with(
    own: StoreLayout, digests: Collection[Digest]
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Workspaces whose stores have any of these objects, and stores that cannot be searched."""
    import apsw

    held, unsearched = [], []
    for layout in idle_stores(own) if digests else ():
        try:
            described = layout.read_description()
            if described["encrypted"]:
                unsearched.append(layout.directory)
                continue
            index = str(layout.objects / "index.db")
            with contextlib.closing(apsw.Connection(index, apsw.SQLITE_OPEN_READONLY)) as db:
                ask = "SELECT 1 FROM places WHERE digest=?"
                if any(db.execute(ask, (digest,)).fetchall() for digest in digests):
                    held.append(described["workspace"])
        except (HoldfastError, OSError, apsw.Error):
            unsearched.append(layout.directory)
    return tuple(held), tuple(unsearched)


def recent_workspaces(home: Path) -> list[tuple[Path, int]]:
    """Existing workspaces with the time of their last activity, the latest first."""
    found = [
        (workspace, _last_used_ns(layout))
        for layout, workspace in _workspaces(home)
        if os.path.isdir(workspace)
    ]
    return sorted(found, key=lambda one: -one[1])


def _workspaces(home: Path) -> Iterator[tuple[StoreLayout, Path]]:
    """Every store with the last known path of its workspace."""
    for layout in stores_in(home):
        with contextlib.suppress(HoldfastError, OSError):  # damaged stores are left to `repair`
            yield layout, Path(layout.read_description()["workspace"])


def remove(fs: Filesystem, store: StoreWithoutWorkspace) -> None:
    """Delete it completely. If interrupted, the rest is no longer a store. `Busy` if a process uses
    it, `Refused` if its workspace exists again."""
    import shutil

    layout = StoreLayout(store.directory)
    layout.require_own()
    workspace = Path(layout.read_description()["workspace"])
    if os.path.isdir(workspace):
        raise Refused(f"its workspace {workspace} exists again", hint="nothing was deleted")
    leaving = store.directory.with_name(f".{store.directory.name}.removed")
    lock = StoreLock(layout.lock, SystemClock(), purpose="deleting the store")
    with lock.hold(0.0), store_trouble("deleting the store"):
        fs.rename(os.fsencode(store.directory), os.fsencode(leaving))
        sync_directory(fs, os.fsencode(leaving.parent))
    with store_trouble("deleting the store"):
        for cut_off in leaving.parent.glob(".*.removed"):  # this one, and earlier unfinished ones
            shutil.rmtree(cut_off)


def _last_used_ns(layout: StoreLayout) -> int:
    with contextlib.suppress(OSError):
        return layout.catalog.stat().st_mtime_ns
    return 0


def _size(layout: StoreLayout) -> int:
    try:
        return size_below(layout.directory)
    except OSError:
        return 0


def _remembered(home: Path) -> dict[str, int] | None:
    path = home / "sizes"
    try:
        age_ns = SystemClock.now_ns() - path.stat().st_mtime_ns
        sizes = json.loads(read_own_file(path)) if 0 <= age_ns < _FRESH_NS else None
    except (OSError, ValueError, HoldfastError):
        return None
    valid = isinstance(sizes, dict) and all(isinstance(size, int) for size in sizes.values())
    return sizes if valid else None


def _remember(home: Path, sizes: dict[str, int]) -> None:
    """Not synced: if it is lost, sizes are measured again."""
    fresh = home / f".sizes.{os.getpid()}.new"
    with contextlib.suppress(OSError):
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump(sizes, file)
        os.replace(fresh, home / "sizes")

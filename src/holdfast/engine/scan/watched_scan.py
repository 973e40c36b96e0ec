"""Scanning a workspace that is watched: by the hint where it can be proven, wholly otherwise.

    proven hint, nothing that it cannot cover → walk what it names
    any doubt, or a restore that asks         → walk everything, with every directory watched first

In paranoid mode both are done and compared, and what the whole walk found counts.
"""

from __future__ import annotations

from holdfast.domain.paths import parent
from holdfast.engine.scan.directory_state import DirectoryState
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.hinted_walk import (
    HintedWalker,
    HintIsNotEnough,
    is_restless,
    plan_visits,
    restless_paths,
)
from holdfast.engine.scan.scanner import Begun, Scan, Scanner, ScanRequest, state_at
from holdfast.engine.scan.walker import is_settled
from holdfast.ports.watcher import ChangedPlaces, WorkspaceWatch


def watched_scan(
    scanner: Scanner, watch: WorkspaceWatch, root_fd: int, request: ScanRequest
) -> Scan:
    if request.wanted or scanner.root is None or request.largest_bytes is not None:
        return _everything(scanner, watch, root_fd, request)
    status = scanner.fs.fstat(root_fd)
    places = watch.places(status.st_dev, status.st_ino)
    if not isinstance(places, ChangedPlaces):
        return _everything(scanner, watch, root_fd, request)
    try:
        found = _by_hint(scanner, watch, root_fd, request, scanner.root, places)
    except HintIsNotEnough:
        return _everything(scanner, watch, root_fd, request)
    if not scanner.paranoid:
        return found
    whole = scanner.whole(root_fd, request, found.begun)
    if found.tree != whole.tree or found.skipped != whole.skipped:
        after = watch.places(status.st_dev, status.st_ino)
        if isinstance(after, ChangedPlaces) and after.mark == places.mark:
            watch.differed(_first_difference(found.root, whole.root))
    return whole


def _everything(
    scanner: Scanner, watch: WorkspaceWatch, root_fd: int, request: ScanRequest
) -> Scan:
    begun = Begun(watch.begin(), whole=True, plain=not request.wanted)
    return scanner.whole(root_fd, request, begun)


def _by_hint(
    scanner: Scanner,
    watch: WorkspaceWatch,
    root_fd: int,
    request: ScanRequest,
    previous: DirectoryState,
    places: ChangedPlaces,
) -> Scan:
    exceptions = _changed_exceptions(scanner, request)
    walker = HintedWalker(
        scanner.fs,
        FileCapture(scanner.fs, request.writer, request.started_ns),
        request.policy,
        request.started_ns,
        plan_visits(previous, places, (*scanner.restless, *exceptions)),
        watch.watch,
        scanner.databases,
    )
    root = walker.walk(root_fd, previous, None)
    walker.require_same_links()
    return scanner.built(root, request, Begun(places.mark, whole=False))


def _changed_exceptions(scanner: Scanner, request: ScanRequest) -> set[bytes]:
    """The directories of files that git began or ceased to track, or that a tool named: nothing
    that is watched tells."""
    before, now = scanner.kept, request.policy.kept
    if before is None or now is None:
        if before is not now:
            raise HintIsNotEnough("what is captured as an exception is not known")
        return set()
    changed = now.changed_since(before, lambda ctime_ns: is_settled(ctime_ns, request.started_ns))
    if changed is None:
        raise HintIsNotEnough("too many exceptions changed")
    return {parent(path) for path in changed}


def remember_watched(scanner: Scanner, watch: WorkspaceWatch, scan: Scan, begun: Begun) -> None:
    """Called when a scan is kept: what it looked at is settled, what is restless is noted."""
    if begun.whole:
        scanner.restless = set(restless_paths(scan.root))
    else:
        gone = {path for path in scanner.restless if state_at(scan.root, path) is None}
        scanner.restless -= gone
        for path, state in scan.fresh.items():
            (scanner.restless.add if is_restless(state) else scanner.restless.discard)(path)
    watch.seen(begun.mark, whole=begun.whole)
    if not begun.plain:
        watch.doubt("a restore captured what rules leave out")


def _first_difference(one: DirectoryState, other: DirectoryState, path: str = "") -> str:
    """The uppermost directory that both have and that differs by itself, for the log."""
    for name, child in one.children.items():
        twin = other.children.get(name)
        if (
            isinstance(child, DirectoryState)
            and isinstance(twin, DirectoryState)
            and child.digest != twin.digest
        ):
            below = name.decode("utf-8", "backslashreplace")
            return _first_difference(child, twin, f"{path}{below}/")
    return path or "the uppermost directory"

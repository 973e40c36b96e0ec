"""A save that may not fit: measure, free space, and leave out the largest files if necessary.

    stat everything, read nothing → bytes that would be new (before a first save, or during one that
                                    turns out to be large: `measured_late`)
    more than the available space → retention, then eviction (`eviction`)
    still more                    → leave out the largest changed files, save the rest

Guarantee: a small change is always saved, whatever the budget. No write is wasted, unless an
estimate was too low. Limit: the estimate counts bytes before compression, so a file may be left out
although it would have fitted. The next save has room for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.checkpoints import Checkpoint, Skipped, SkipReason
from holdfast.domain.errors import BudgetReached, StoreDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.paths import to_text
from holdfast.domain.trees.changes import TreeLoader
from holdfast.domain.wording import count_words, size_words
from holdfast.engine.save.space_limit import SpaceLimit
from holdfast.engine.save.workspace_tree import (
    SavedTree,
    capture_policy,
    is_known,
    save_beyond_budget,
    save_scan,
)
from holdfast.engine.scan.scan_meter import (
    MeasuringCapture,
    estimate_bytes,
    largest_that_fits,
)
from holdfast.engine.scan.scanner import Scanner
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

_RETRY_NS = 3600 * 1_000_000_000
"""If nothing more could be deleted, wait this long before trying again."""

_ATTEMPTS = 3
_NAMED = 3
_WITHOUT_LIMIT = 1 << 62
_RAISE_IT = "raise it: holdfast config set budget 10GB"
_RAISE_TOTAL = "raise total_budget in your settings file"


def save_within_budget(
    vault: Vault,
    scanner: Scanner,
    *,
    wanted: tuple[Digest, ...],
) -> SavedTree:
    """The caller holds the store's lock."""
    is_new = not is_known(vault, scanner)
    sizes = _measure(vault, scanner)
    limit = SpaceLimit(vault)
    # Do not delete checkpoints for content that would not fit into an empty store either.
    possible = largest_that_fits(sizes, vault.settings.budget)
    needed_bytes = estimate_bytes([size for size in sizes if possible is None or size <= possible])
    said: tuple[str, ...] = ()
    if needed_bytes > limit.budget_left and not limit.is_disk and _may_make_room(vault):
        from holdfast.engine.retention.eviction import make_room

        said = make_room(vault, needed_bytes).describe()
        limit = SpaceLimit(vault)
    largest = largest_that_fits(sizes, limit.bytes)
    if largest is None and not is_new:
        largest = _WITHOUT_LIMIT  # reconsider files that had no room before
    for _ in range(_ATTEMPTS):
        try:
            saved = save_scan(
                vault,
                scanner,
                limit,
                wanted=wanted,
                largest_bytes=largest,
            )
            break
        except BudgetReached:  # more than measured: files grew, or there are many trees
            most = max(sizes, default=0)
            largest = (most if largest is None else min(largest, most)) // 4
    else:
        # The rest is small, and protection does not end with the budget.
        saved = save_beyond_budget(vault, scanner, wanted=wanted, largest_bytes=largest)
    return replace(saved, warnings=(*saved.warnings, *said))


def require_fits(
    vault: Vault,
    scanner: Scanner,
    limit: SpaceLimit,
) -> None:
    """`BudgetReached` unless everything a save would read now fits, even if none is stored yet."""
    if estimate_bytes(_measure(vault, scanner)) > limit.bytes:
        raise BudgetReached("more to store than fits")


def may_fit_now(vault: Vault, saved: SavedTree, limit: SpaceLimit) -> bool:
    """Whether to reconsider files that had no room in this save."""
    sizes = [_bytes(skip) for skip in _without_room(saved.scan.skipped)]
    if not sizes:
        return False
    room = limit.bytes - saved.totals.stored_bytes
    return min(sizes) <= room or _may_make_room(vault)


def left_out_words(vault: Vault, saved: SavedTree, head: Checkpoint | None) -> tuple[str, ...]:
    """Names the files that do not fit the budget, unless the last checkpoint named the same."""
    from holdfast.engine.restore.plan import read_report

    left_out = _without_room(saved.scan.skipped)
    if not left_out:
        return ()
    try:
        before = _without_room(read_report(vault, head)) if head is not None else []
    except StoreDamaged:
        before = []
    if {skip.path for skip in left_out} <= {skip.path for skip in before}:
        return ()
    total = size_words(sum(_bytes(skip) for skip in left_out))
    names = [to_text(skip.path) for skip in left_out[:_NAMED]]
    more = f" and {len(left_out) - _NAMED} more" if left_out[_NAMED:] else ""
    fits = "does not fit" if len(left_out) == 1 else "do not fit"
    limit = SpaceLimit(vault)
    are = "is" if len(left_out) == 1 else "are"
    where = "on the disk" if limit.is_disk else "into the disk budget"
    way = "Free some disk space"
    if not limit.is_disk:
        way = f"Free space: holdfast cleanup; or {_RAISE_TOTAL if limit.is_total else _RAISE_IT}"
    files = f"{count_words(len(left_out), 'file')} ({total})"
    return (f"{files} {fits} {where} and {are} not saved: {', '.join(names)}{more}. {way}",)


def _without_room(skipped: Sequence[Skipped]) -> list[Skipped]:
    return [skip for skip in skipped if skip.reason is SkipReason.OVER_BUDGET]


def _bytes(skip: Skipped) -> int:
    number = skip.detail.partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def _measure(vault: Vault, scanner: Scanner) -> list[int]:
    """For each file that a save would read now: the most bytes it may add."""
    started_ns = vault.clock.now_ns()
    known = set() if is_known(vault, scanner) else _last_saved_files(vault)
    with vault.open_root() as root_fd:
        capture = MeasuringCapture(vault.fs, started_ns, known)
        policy = capture_policy(vault, scanner.file_filter)
        scanner.measure(root_fd, policy, capture, started_ns=started_ns)
    return capture.sizes


def _last_saved_files(vault: Vault) -> set[tuple[int, int]]:
    """Size and time of every file in the newest checkpoint. After a collection, the scan cache is
    empty. Such files are read again, but nearly all turn out to be stored."""
    newest = vault.catalog.history(None, limit=1, records=True)
    if not newest:
        return set()
    try:
        return set(_files(vault.load_tree, newest[0].tree))
    except StoreDamaged:
        return set()


def _files(load: TreeLoader, top: Digest) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    pending = [top]
    while pending:
        tree = load(pending.pop())
        found += [(entry.size, entry.mtime_ns) for entry in tree.files]
        pending += [entry.digest for entry in tree.directories]
    return found


def _may_make_room(vault: Vault) -> bool:
    if vault.journal.read() is not None:
        return False  # nothing is deleted while a restore is unfinished
    tried_ns = vault.space.read_upkeep().get("no_room_ns", 0)
    return not 0 <= vault.clock.now_ns() - tried_ns < _RETRY_NS

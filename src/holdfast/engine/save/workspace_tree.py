"""The workspace as a tree: a scan, with or without durable content.

A save that may not fit the budget is measured first, or as soon as it turns out to be large.
"""

from __future__ import annotations

import contextlib
import json
import os
from functools import lru_cache
from pathlib import Path

from holdfast.domain.checkpoints import (
    Skipped,
    SkipReason,
)
from holdfast.domain.errors import BudgetReached
from holdfast.domain.ids import Digest
from holdfast.domain.paths import to_text
from holdfast.domain.settings.schema import Settings
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.save.space_limit import MeasuringWriter, SpaceLimit
from holdfast.engine.scan.policy import CapturePolicy, FileFilter
from holdfast.engine.scan.repositories import ExemptPaths
from holdfast.engine.scan.scanner import RulesOf, Scan, Scanner, ScanRequest
from holdfast.engine.vault import Vault
from holdfast.ports.objects import ObjectWriter, WriteTotals
from holdfast.values.classes import dataclass, replace

UNMEASURED_BYTES = 64 << 20
"""New content in a known workspace: more than most saves ever add."""


@dataclass(frozen=True, slots=True)
class SavedTree:
    """A scan whose content is durable, but has no catalog row yet."""

    scan: Scan
    report: Digest
    totals: WriteTotals
    warnings: tuple[str, ...]

    def with_tree(self, tree: Digest) -> SavedTree:
        """The same save with a tree that differs from the scanned one."""
        return replace(self, scan=replace(self.scan, tree=tree))


def save_tree(
    vault: Vault,
    scanner: Scanner,
    *,
    wanted: tuple[Digest, ...] = (),
    beyond_budget: bool = False,
    rules_of: RulesOf | None = None,
) -> SavedTree:
    """Scan and make content durable. The caller adds the row, then calls the scanner's `remember`.

    A save that may not fit the budget is measured first. Space is freed, and if that is not enough,
    the largest files are left out (ST-3). A restore's safety checkpoint may exceed the budget:
    being able to go back is more important.
    """
    if beyond_budget:
        return save_beyond_budget(vault, scanner, wanted=wanted, rules_of=rules_of)
    limit = SpaceLimit(vault)
    known = is_known(vault, scanner)
    if limit.bytes > UNMEASURED_BYTES and (known or _certainly_fits(vault, limit)):
        with contextlib.suppress(BudgetReached):
            saved = save_scan(vault, scanner, limit, wanted=wanted, unmeasured=known)
            if not has_left_out(saved):
                return saved
            from holdfast.engine.save.budget import may_fit_now

            if not may_fit_now(vault, saved, limit):
                return saved
    from holdfast.engine.save.budget import save_within_budget  # late: few saves need it

    return save_within_budget(vault, scanner, wanted=wanted)


def save_beyond_budget(
    vault: Vault,
    scanner: Scanner,
    *,
    wanted: tuple[Digest, ...],
    largest_bytes: int | None = None,
    rules_of: RulesOf | None = None,
) -> SavedTree:
    """Limited only by disk space."""
    limit = SpaceLimit(vault, budget=False)
    try:
        return save_scan(
            vault,
            scanner,
            limit,
            wanted=wanted,
            largest_bytes=largest_bytes,
            rules_of=rules_of,
        )
    except BudgetReached:
        raise limit.explanation() from None


def is_known(vault: Vault, scanner: Scanner) -> bool:
    """Whether a scan now would read only changed files."""
    with vault.open_root() as root_fd:
        return scanner.knows_workspace(vault.scan_generation(root_fd))


def _certainly_fits(vault: Vault, limit: SpaceLimit) -> bool:
    from holdfast.engine.scan.scan_meter import certainly_fits  # late: only a first save needs it

    with vault.open_root() as root_fd:
        return certainly_fits(vault.fs, root_fd, capture_policy(vault), limit.bytes)


def _require_fits(vault: Vault, scanner: Scanner, limit: SpaceLimit) -> None:
    from holdfast.engine.save.budget import require_fits  # late: few saves need it

    require_fits(vault, scanner, limit)


def has_left_out(saved: SavedTree) -> bool:
    return any(skip.reason is SkipReason.OVER_BUDGET for skip in saved.scan.skipped)


def save_scan(
    vault: Vault,
    scanner: Scanner,
    limit: SpaceLimit,
    *,
    wanted: tuple[Digest, ...],
    unmeasured: bool = False,
    largest_bytes: int | None = None,
    rules_of: RulesOf | None = None,
) -> SavedTree:
    """One scan whose content is durable on return. `BudgetReached`, with nothing stored, if it
    exceeds the limit. An `unmeasured` scan is measured as soon as it turns out to be large."""
    policy = capture_policy(vault, scanner.file_filter)
    writer = vault.objects.writer(limit_bytes=limit.bytes)
    taking: ObjectWriter = writer
    if unmeasured:
        taking = MeasuringWriter(
            writer, UNMEASURED_BYTES, lambda: _require_fits(vault, scanner, limit)
        )
    try:
        with vault.open_root() as root_fd:
            request = ScanRequest(
                policy,
                taking,
                vault.clock.now_ns(),
                wanted=wanted,
                rules_of=rules_of,
                progress=vault.progress,
                # No other process can know the decisions of a filter.
                aided_writer=None if policy.has_filter else writer,
                largest_bytes=largest_bytes,
            )
            scan = scanner.scan(root_fd, request, generation=vault.scan_generation(root_fd))
        vault.progress.advance("storing", 0, None)
        report = add_report(writer, scan.skipped)
        totals = writer.commit()
    except BaseException:
        writer.abandon()
        raise
    return SavedTree(scan, report, totals, limit.warnings(totals.stored_bytes))


def capture_policy(vault: Vault, file_filter: FileFilter | None = None) -> CapturePolicy:
    """The capture rules with their current exceptions."""
    own_data = vault.files.path_inside_workspace()
    settings = vault.settings
    if settings.nested_repositories == "auto" and _is_project(vault):
        settings = replace(settings, nested_repositories="on")
    if file_filter is None:
        policy = _plain_policy(settings, vault.workspace, own_data)
    else:
        policy = CapturePolicy(settings, vault.workspace, file_filter, own_data=own_data)
    by_tools = settings.capture_named_ignored == "on"
    named = vault.parts.named_paths.load() if by_tools else ()
    return policy.with_exceptions(ExemptPaths(vault.fs, os.fsencode(vault.workspace), named))


def _is_project(vault: Vault) -> bool:
    from holdfast.domain.paths import shows_project  # late: few workspaces need it

    with vault.open_root() as root_fd:
        return shows_project(vault.fs.list_names(root_fd))


@lru_cache(maxsize=16)
def _plain_policy(settings: Settings, workspace: Path, own_data: bytes | None) -> CapturePolicy:
    """Cached: building rules takes longer than many scans, and settings rarely change."""
    return CapturePolicy(settings, workspace, own_data=own_data)


def encode_report(skipped: list[Skipped]) -> bytes:
    rows = [[to_text(s.path), s.reason.name, s.detail] for s in skipped]
    return json.dumps(rows, separators=(",", ":")).encode()


def add_report(writer: ObjectWriter, skipped: list[Skipped]) -> Digest:
    """Reports of left-out paths are stored as content, so that equal ones are stored once."""
    data = encode_report(skipped)
    digest = digest_of(data)
    writer.add(digest, data)
    return digest


def dry_scan(
    vault: Vault,
    scanner: Scanner,
    wanted: tuple[Digest, ...] = (),
    rules_of: RulesOf | None = None,
) -> Scan:
    """Called with the store's lock held."""
    from holdfast.engine.scan.scan_meter import DiscardingWriter  # late: no save needs it

    with vault.open_root() as root_fd:
        request = ScanRequest(
            capture_policy(vault, scanner.file_filter),
            DiscardingWriter(),
            vault.clock.now_ns(),
            wanted=wanted,
            rules_of=rules_of,
            keep_trees=True,
            progress=vault.progress,
        )
        return scanner.scan(root_fd, request, generation=vault.scan_generation(root_fd))


def left_out(vault: Vault, scanner: Scanner) -> list[Skipped]:
    """The paths that a save would leave out now, sorted. Called with the store's lock held."""
    with vault.open_root() as root_fd:
        return scanner.left_out(
            root_fd,
            capture_policy(vault, scanner.file_filter),
            generation=vault.scan_generation(root_fd),
            started_ns=vault.clock.now_ns(),
        )

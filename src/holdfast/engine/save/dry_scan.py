"""The workspace as a scan sees it now, without storing anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from holdfast.domain.checkpoints import Skipped
from holdfast.domain.ids import Digest
from holdfast.engine.save.save import capture_policy
from holdfast.engine.scan.scan_meter import DiscardingWriter
from holdfast.engine.scan.scanner import RulesOf, Scan, Scanner
from holdfast.engine.vault import Vault


def dry_scan(
    vault: Vault,
    scanner: Scanner,
    file_filter: Callable[[Path], bool] | None,
    wanted: tuple[Digest, ...] = (),
    rules_of: RulesOf | None = None,
) -> Scan:
    """Called with the store's lock held."""
    with vault.open_root() as root_fd:
        return scanner.scan(
            root_fd,
            capture_policy(vault, file_filter),
            DiscardingWriter(),
            generation=vault.scan_generation(root_fd),
            started_ns=vault.clock.now_ns(),
            wanted=wanted,
            rules_of=rules_of,
            keep_trees=True,
            progress=vault.progress,
        )


def left_out(
    vault: Vault, scanner: Scanner, file_filter: Callable[[Path], bool] | None
) -> list[Skipped]:
    """What a save now would leave out, in path order. Called with the store's lock held."""
    with vault.open_root() as root_fd:
        return scanner.left_out(
            root_fd,
            capture_policy(vault, file_filter),
            generation=vault.scan_generation(root_fd),
            started_ns=vault.clock.now_ns(),
        )

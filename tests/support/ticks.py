"""Waiting until the clock of the file system has moved on."""

from __future__ import annotations

from pathlib import Path


def wait_a_tick(root: Path) -> None:
    """Until a change must show in the times of everything written so far."""
    newest = max(path.lstat().st_ctime_ns for path in (root, *root.rglob("*")))
    probe = root.parent / "probe"
    while True:
        probe.write_bytes(b"")
        if probe.stat().st_ctime_ns > newest + 40_000_000:
            return

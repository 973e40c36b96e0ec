"""What a store takes on this disk, and what is left of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.adapters.local.layout import StoreLayout
    from holdfast.adapters.local.store_notes import StoreNotes
    from holdfast.ports.filesystem import Filesystem


class LocalSpaceMeter:
    """See `holdfast.ports.space.SpaceMeter` for the contract of each member."""

    def __init__(
        self,
        fs: Filesystem,
        layout: StoreLayout,
        notes: StoreNotes,
        fold_logs: Callable[[], None],
    ) -> None:
        self._fs = fs
        self._layout = layout
        self._notes = notes
        self._fold_logs = fold_logs

    def size_bytes(self) -> int:
        return size_below(self._layout.directory)

    def others_bytes(self, own_bytes: int) -> int:
        from holdfast.adapters.local.all_stores import other_stores_bytes

        return other_stores_bytes(self._layout, own_bytes)

    def free_bytes(self) -> int:
        return self._fs.free_bytes(os.fsencode(self._layout.directory))

    def fold_logs(self) -> None:
        self._fold_logs()

    def remove_debris(self, older_than_ns: int) -> tuple[str, ...]:
        """Half-written files of `atomic_write`, and the workbench of a repair that was killed."""
        import shutil  # late: it brings half a dozen modules, and saves do not need it

        removed = []
        for path in (*self._layout.directory.glob(".*.new"), self._layout.directory / "repairing"):
            try:
                if path.lstat().st_mtime_ns >= older_than_ns:
                    continue
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            except FileNotFoundError:
                continue
            removed.append(path.name)
        return tuple(removed)

    def read_upkeep(self) -> dict[str, int]:
        try:
            noted = json.loads(self._notes.read(self._layout.upkeep.name) or b"{}")
        except (ValueError, RecursionError):
            return {}
        facts = noted.items() if isinstance(noted, dict) else ()
        return {key: fact for key, fact in facts if type(fact) is int}

    def note_upkeep(self, **facts: int) -> None:
        data = json.dumps({**self.read_upkeep(), **facts}).encode()
        self._notes.write(self._layout.upkeep.name, data)


def size_below(directory: Path) -> int:
    total = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    total += size_below(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue  # a log file that SQLite has just removed
    return total

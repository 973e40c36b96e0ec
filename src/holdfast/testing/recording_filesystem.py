"""A file system that remembers what was asked of it, so that a test can state what work costs.

fs = RecordingFilesystem(LocalFilesystem())
...
assert fs.count("fsync") == 2
"""

from __future__ import annotations

from holdfast.testing.intercepted_filesystem import InterceptedFilesystem


class RecordingFilesystem(InterceptedFilesystem):
    """Changes nothing; `calls` holds every call in order."""

    def count(self, *names: str) -> int:
        """How many calls had one of these names; without names, how many there were."""
        return sum(not names or call.name in names for call in self.calls)

    def forget(self) -> None:
        """Start counting again."""
        self.calls.clear()

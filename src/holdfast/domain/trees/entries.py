"""Directory entries: files, directories and symbolic links."""

from __future__ import annotations

from typing import TypeAlias

from holdfast.domain.ids import Digest
from holdfast.values.classes import dataclass

MODE_MASK = 0o7777
SETID_BITS = 0o6000
_LATEST_NS = (1 << 63) - 1


def storable_ns(time_ns: int) -> int:
    """The nearest time that fits into 64 bits: years 1678 to 2262. File systems support more."""
    if -_LATEST_NS <= time_ns <= _LATEST_NS:
        return time_ns
    return _LATEST_NS if time_ns > 0 else -_LATEST_NS


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A regular file.

    `digest` covers the whole content. Content above the chunking threshold is stored in chunks, and
    `chunks` names their list. `link` names the group of a file with several names in the workspace:
    the path that sorts first among them.
    """

    name: bytes
    mode: int
    size: int
    mtime_ns: int
    digest: Digest
    chunks: Digest | None = None
    sparse: bool = False
    link: bytes | None = None

    def same_content(self, other: Entry | None) -> bool:
        return isinstance(other, FileEntry) and self.digest == other.digest

    def same_state(self, other: Entry | None) -> bool:
        """Equal in everything that a restore sets, except times."""
        return (
            isinstance(other, FileEntry)
            and self.digest == other.digest
            and self.mode == other.mode
            and self.link == other.link
        )


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A subdirectory, with the totals of everything below it."""

    name: bytes
    mode: int
    digest: Digest
    files: int
    size: int

    def same_state(self, other: Entry | None) -> bool:
        return isinstance(other, DirectoryEntry) and self.mode == other.mode


@dataclass(frozen=True, slots=True)
class SymlinkEntry:
    """A symbolic link, stored as a link: its target is text, never followed."""

    name: bytes
    target: bytes
    mtime_ns: int

    def same_state(self, other: Entry | None) -> bool:
        return isinstance(other, SymlinkEntry) and self.target == other.target


Entry: TypeAlias = FileEntry | DirectoryEntry | SymlinkEntry


def kind_of(entry: Entry) -> str:
    if isinstance(entry, FileEntry):
        return "file"
    return "directory" if isinstance(entry, DirectoryEntry) else "symlink"

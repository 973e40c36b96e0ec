"""What a tool must be able to do to be measured, and the facts about it that the harness needs.

A peer watches over one directory and keeps its store in another. The harness times `save`,
`restore` and `changed_paths` and nothing else of it. A restore may be deficient where the save
was not, so a save is proven by `contents`, untimed.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NewType, Protocol

from bench.verify import Fingerprint

Ref = NewType("Ref", str)


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What a store takes: the sum of its file lengths, and the blocks the disk gives it."""

    apparent_bytes: int
    disk_bytes: int


class Peer(Protocol):
    """One tool at work on one tree."""

    def prepare(self, tree: Path) -> None:
        """Make an empty store for `tree`."""

    def save(self) -> Ref:
        """Store the tree as it is now."""

    def restore(self, ref: Ref) -> None:
        """Bring the tree back to what it was at `ref`, the way this tool's users get it."""

    def contents(self, ref: Ref, scratch: Path) -> Fingerprint:
        """What `ref` holds, found by any means, with an empty directory to write it to: proof."""

    def changed_paths(self, before: Ref, after: Ref) -> frozenset[bytes]:
        """The paths in which two saved states differ; `NotOffered` if the tool cannot say."""

    def size(self) -> StoreSize:
        """What the store takes now."""

    def close(self) -> None:
        """Let go of files and processes."""


@dataclass(frozen=True, slots=True)
class PeerKind:
    """A tool that may take part: how to make one, whether it is here, what it leaves in a tree.

    `most_files` is where it becomes so slow that it runs only when asked for by name.
    """

    key: str
    title: str
    make: Callable[[Path], Peer]
    version: Callable[[], str | None]
    own_names: frozenset[bytes] = frozenset()
    most_files: int | None = None


def measure_store(*roots: Path) -> StoreSize:
    """Add up everything under `roots`, directories included."""
    apparent = disk = 0
    for root in roots:
        for directory, _, names in os.walk(root):
            for path in (directory, *(os.path.join(directory, name) for name in names)):
                status = os.lstat(path)
                disk += status.st_blocks * 512
                apparent += status.st_size if path != directory else 0
    return StoreSize(apparent, disk)

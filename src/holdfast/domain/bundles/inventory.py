"""A streaming check that the objects of a bundle are complete and consistent.

    an object comes after everything it names, so each tree is checked when it arrives:
    its names are sound, its files and directories have come, with the sizes and totals it claims
    → at the end nothing is missing, and nothing came that is not referenced

Guarantee: each accepted checkpoint has a complete, canonical, finite tree. Memory grows with the
number of objects, not with their size. Not checked here: that the chunks of a large file match the
digest of the whole. The caller does that with `whole_files`, which has the size of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import IntEnum

from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.component_states import contents_of, decode_manifest
from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.domain.paths import MARKER_DIRECTORY, STAGING_PREFIX, from_text, to_text
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.domain.trees.tree import Tree, decode_tree

DEEPEST_TREE = 1_000
MOST_ENTRIES = 50_000_000
"""A small bundle can expand without end through shared directories. No workspace has this many."""

MOST_PIECES = 50_000_000
"""The total for all large files, several TB. A list that repeats one chunk compresses well but
takes long to check."""


class Role(IntEnum):
    """The purpose of an object. The same bytes may occur once per role."""

    BLOB = 1
    PIECES = 2
    TREE = 3
    REPORT = 4
    COMPONENTS = 5


class Inventory:
    """Checks objects one by one. `ValueError` says what does not fit."""

    def __init__(self) -> None:
        # Role and digest → the object's position, then the facts that others may claim about it:
        # its size, or a tree's totals.
        self._facts: dict[bytes, tuple[int, ...]] = {}
        self._unused: set[bytes] = set()
        self._own_data: set[Digest] = set()
        self._pieces = 0
        self.whole_files: dict[tuple[Digest, Digest], int] = {}

    def __len__(self) -> int:
        return len(self._facts)

    def digests(self) -> Iterator[Digest]:
        return (Digest(key[-DIGEST_BYTES:]) for key in self._facts)

    def place_of(self, role: Role, digest: Digest) -> int | None:
        """The position of a received object, or None."""
        facts = self._facts.get(_key(role, digest))
        return None if facts is None else facts[0]

    def add(self, role: Role, digest: Digest, data: bytes, *, place: int) -> None:
        key = _key(role, digest)
        if key in self._facts:
            raise ValueError(f"object {digest.hex()[:16]} appears twice")
        if role is Role.BLOB:
            facts: tuple[int, ...] = (len(data),)
        elif role is Role.PIECES:
            facts = (self._check_pieces(data),)
        elif role is Role.TREE:
            facts = self._check_tree(digest, decode_tree(data))
        elif role is Role.COMPONENTS:
            facts = ()
            self._check_components(data)
        else:
            facts = ()
            _check_report(data)
        self._facts[key] = (place, *facts)
        self._unused.add(key)

    def require_checkpoint(
        self, tree: Digest, report: Digest | None, components: Digest | None = None
    ) -> None:
        """Check that all objects were received and that the tree can be a workspace root."""
        self._named(Role.TREE, tree, "the directory of a checkpoint")
        if tree in self._own_data:
            raise ValueError(f"it would write {to_text(MARKER_DIRECTORY)}, which is Holdfast's own")
        if report is not None:
            self._named(Role.REPORT, report, "the list of what a checkpoint left out")
        if components is not None:
            self._named(Role.COMPONENTS, components, "the list of a checkpoint's components")

    def require_all_used(self) -> None:
        if self._unused:
            raise ValueError(f"{len(self._unused)} objects belong to no checkpoint")

    def _check_pieces(self, data: bytes) -> int:
        total = 0
        pieces = decode_chunk_list(data)
        self._pieces += len(pieces)
        if self._pieces > MOST_PIECES:
            raise ValueError("its files have more chunks than any workspace")
        for piece in pieces:
            if self._named(Role.BLOB, piece.digest, "a chunk of a file") != (piece.size,):
                raise ValueError("the size of a file's chunk does not match its entry")
            total += piece.size
        return total

    def _check_components(self, data: bytes) -> None:
        try:
            states = decode_manifest(data)
        except ObjectDamaged as error:
            raise ValueError(error.message) from None
        for content in contents_of(states):
            what = f"content {content.name!r:.80} of a component"
            if self._size_of(content.digest, content.chunks, what) != content.size:
                raise ValueError(f"the size of {what} does not match its entry")

    def _check_tree(self, digest: Digest, tree: Tree) -> tuple[int, ...]:
        for entry in tree.files:
            self._check_file(entry)
        entries = len(tree.files) + len(tree.directories) + len(tree.symlinks)
        height = 0
        for directory in tree.directories:
            files, size, below, deeper = self._named(
                Role.TREE, directory.digest, f"directory {to_text(directory.name)!r}"
            )
            if (files, size) != (directory.files, directory.size):
                raise ValueError(f"directory {to_text(directory.name)!r} has wrong totals")
            entries += below
            height = max(height, deeper)
        if height >= DEEPEST_TREE or entries > MOST_ENTRIES:
            raise ValueError("its directories expand to more than any workspace has")
        if any(name.startswith(STAGING_PREFIX) for name in tree.by_name):
            raise ValueError("it contains a directory that is reserved for running restores")
        if MARKER_DIRECTORY in tree.by_name:
            self._own_data.add(digest)
        return tree.file_count, tree.size_bytes, entries, height + 1

    def _check_file(self, entry: FileEntry) -> None:
        name = to_text(entry.name)
        if self._size_of(entry.digest, entry.chunks, f"file {name!r}") != entry.size:
            raise ValueError(f"the size of file {name!r} does not match its content")

    def _size_of(self, digest: Digest, chunks: Digest | None, what: str) -> int:
        """The size of received content, which is whole or in chunks."""
        if chunks is None:
            return self._named(Role.BLOB, digest, what)[0]
        size = self._named(Role.PIECES, chunks, what)[0]
        self.whole_files[digest, chunks] = size
        return size

    def _named(self, role: Role, digest: Digest, what: str) -> tuple[int, ...]:
        key = _key(role, digest)
        facts = self._facts.get(key)
        if facts is None:
            raise ValueError(f"{what} is missing")
        self._unused.discard(key)
        return facts[1:]


def _check_report(data: bytes) -> None:
    """Check a list of omitted paths, each with a known reason. `.git` may be among them."""
    try:
        rows = json.loads(data)
    except RecursionError:
        raise ValueError("a report is nested too deeply") from None
    for row in rows if isinstance(rows, list) else [None]:
        if not isinstance(row, list) or len(row) != 3 or not all(isinstance(x, str) for x in row):
            raise ValueError("a report is not a list of omitted paths")
        path, reason, _ = row
        if reason not in SkipReason.__members__:
            raise ValueError(f"a report gives an unknown reason: {reason!r:.60}")
        components = from_text(path).split(b"/") if path else []
        if any(c in (b"", b".", b"..") or b"\0" in c for c in components):
            raise ValueError(f"a report names {path!r:.60}, which is not a workspace path")


def _key(role: Role, digest: Digest) -> bytes:
    return bytes((role,)) + digest

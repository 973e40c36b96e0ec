"""Trees as flat dictionaries, to compare with: a path and its entry, nothing clever.

`models()` makes them from few names, so that two of them overlap in every way: the same path as
file, directory and link, a name that sorts between a directory and what it holds, and so on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st

from holdfast.domain.ids import Digest
from holdfast.domain.paths import join, parent
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import Tree, decode_tree, encode_tree


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    mode: int
    link: bytes | None = None


@dataclass(frozen=True, slots=True)
class Directory:
    mode: int


@dataclass(frozen=True, slots=True)
class Symlink:
    target: bytes


Node: TypeAlias = File | Directory | Symlink
Model: TypeAlias = dict[bytes, Node]
Nested: TypeAlias = "Mapping[bytes, Node | tuple[Directory, Nested]]"

NAMES = (b"a", b"b", b"a.b", b"a0", b"\xff\n")

nodes = st.one_of(
    st.builds(
        File,
        st.sampled_from([b"", b"one", b"two"]),
        st.sampled_from([0o644, 0o755, 0o4711]),
        st.sampled_from([None, None, None, b"a"]),
    ),
    st.builds(Symlink, st.sampled_from([b"a", b"../b"])),
)
directories = st.builds(Directory, st.sampled_from([0o755, 0o700]))


def _level(deeper: st.SearchStrategy[Nested] | None) -> st.SearchStrategy[Nested]:
    value: st.SearchStrategy[Node | tuple[Directory, Nested]] = nodes
    if deeper is not None:
        value = st.one_of(nodes, st.tuples(directories, deeper))
    return st.dictionaries(st.sampled_from(NAMES), value, max_size=4)


_nested = _level(_level(_level(None)))


def models() -> st.SearchStrategy[Model]:
    return _nested.map(lambda nested: _flatten(nested, b""))


def _flatten(nested: Nested, directory: bytes) -> Model:
    model: Model = {}
    for name, value in nested.items():
        path = join(directory, name)
        if isinstance(value, tuple):
            model[path] = value[0]
            model.update(_flatten(value[1], path))
        else:
            model[path] = value
    return model


class TreeStore:
    """Encoded trees by digest, and the loader that the code under test is given."""

    def __init__(self) -> None:
        self.encoded: dict[Digest, bytes] = {}
        self.loaded = 0

    def load(self, digest: Digest) -> Tree:
        self.loaded += 1
        return decode_tree(self.encoded[digest])

    def add(self, model: Model) -> Digest:
        """Store a model as trees; the digest of its root."""
        below: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for path in model:
            below[parent(path)].append(path)
        digest, _ = self._add(model, below, b"")
        return digest

    def _add(
        self, model: Model, below: Mapping[bytes, list[bytes]], directory: bytes
    ) -> tuple[Digest, Tree]:
        entries: list[Entry] = []
        for path in sorted(below.get(directory, ())):
            name, node = path.rpartition(b"/")[2], model[path]
            if isinstance(node, Directory):
                digest, tree = self._add(model, below, path)
                files, size = tree.file_count, tree.size_bytes
                entries.append(DirectoryEntry(name, node.mode, digest, files, size))
            else:
                entries.append(entry_for(name, node))
        tree = Tree(
            tuple(e for e in entries if isinstance(e, FileEntry)),
            tuple(e for e in entries if isinstance(e, DirectoryEntry)),
            tuple(e for e in entries if isinstance(e, SymlinkEntry)),
        )
        data = encode_tree(tree)
        digest = digest_of(data)
        self.encoded[digest] = data
        return digest, tree

    def model(self, root: Digest) -> Model:
        """The flat view of a stored tree, whose files hold only the contents used here."""
        model: Model = {}
        pending = [(b"", root)]
        while pending:
            directory, digest = pending.pop()
            for name, entry in decode_tree(self.encoded[digest]).by_name.items():
                path = join(directory, name)
                model[path] = node_for(entry)
                if isinstance(entry, DirectoryEntry):
                    pending.append((path, entry.digest))
        return model


_CONTENTS = {digest_of(data): data for data in (b"", b"one", b"two", b"new")}


def entry_for(name: bytes, node: File | Symlink) -> FileEntry | SymlinkEntry:
    if isinstance(node, Symlink):
        return SymlinkEntry(name, node.target, 0)
    digest = digest_of(node.content)
    return FileEntry(name, node.mode, len(node.content), 0, digest, link=node.link)


def node_for(entry: Entry) -> Node:
    if isinstance(entry, FileEntry):
        return File(_CONTENTS[entry.digest], entry.mode, entry.link)
    if isinstance(entry, DirectoryEntry):
        return Directory(entry.mode)
    return Symlink(entry.target)

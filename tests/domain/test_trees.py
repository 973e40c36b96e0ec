"""One directory as bytes: the same for equal directories, and refused when anything is off."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import EMPTY_TREE, Tree, decode_tree, encode_tree
from tests.domain.tree_models import Directory, File, TreeStore

DIGEST = digest_of(b"")

digests = st.binary(min_size=32, max_size=32).map(Digest)
safe_names = st.binary(min_size=1, max_size=12).filter(
    lambda name: not set(name) & set(b"/\0") and name not in (b".", b"..", b".git")
)
modes = st.integers(0, 0o7777)
times = st.integers(-(2**63), 2**63 - 1)
sizes = st.integers(0, 2**64 - 1)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    names = draw(st.lists(safe_names, unique=True, max_size=9))
    kinds = [draw(st.sampled_from("fds")) for _ in names]
    chosen = {
        k: sorted(n for n, kind in zip(names, kinds, strict=True) if kind == k) for k in "fds"
    }
    link = st.none() | st.lists(safe_names, min_size=1, max_size=3).map(b"/".join)
    return Tree(
        tuple(
            FileEntry(
                name,
                draw(modes),
                draw(sizes),
                draw(times),
                draw(digests),
                draw(st.none() | digests),
                draw(st.booleans()),
                draw(link),
            )
            for name in chosen["f"]
        ),
        tuple(
            DirectoryEntry(name, draw(modes), draw(digests), draw(sizes), draw(sizes))
            for name in chosen["d"]
        ),
        tuple(
            SymlinkEntry(
                name, draw(st.binary(min_size=1).filter(lambda t: 0 not in t)), draw(times)
            )
            for name in chosen["s"]
        ),
    )


@given(tree=trees())
def test_a_tree_decodes_to_what_was_encoded(tree: Tree) -> None:
    assert decode_tree(encode_tree(tree)) == tree


@given(one=trees(), other=trees())
def test_equal_trees_and_only_those_have_equal_bytes(one: Tree, other: Tree) -> None:
    assert (encode_tree(one) == encode_tree(other)) == (one == other)


@given(tree=trees())
def test_every_entry_is_found_by_its_name(tree: Tree) -> None:
    entries: list[Entry] = [*tree.files, *tree.directories, *tree.symlinks]
    assert tree.by_name == {entry.name: entry for entry in entries}
    below = sum(directory.files for directory in tree.directories)
    assert tree.file_count == len(tree.files) + len(tree.symlinks) + below


def test_the_empty_directory_has_an_encoding() -> None:
    assert decode_tree(encode_tree(EMPTY_TREE)) == EMPTY_TREE


def test_the_encoding_does_not_change_between_versions() -> None:
    """These bytes are in people's stores."""
    tree = Tree(
        (FileEntry(b"f", 0o644, 3, -1, DIGEST, DIGEST, True, b"a/b"),),
        (DirectoryEntry(b"d", 0o700, DIGEST, 1, 3),),
        (SymlinkEntry(b"s", b"target", 5),),
    )
    assert digest_of(encode_tree(tree)).hex() == (
        "bfdeb164e360a7268bac0d13b27980a63e91429ba16899f8c5d06e1a3dc085bb"
    )


@given(tree=trees())
def test_a_tree_cut_short_anywhere_is_refused(tree: Tree) -> None:
    data = encode_tree(tree)
    for length in range(len(data)):
        with pytest.raises(ObjectDamaged):
            decode_tree(data[:length])


@given(tree=trees(), behind=st.binary(min_size=1, max_size=40))
def test_bytes_behind_a_tree_are_refused(tree: Tree, behind: bytes) -> None:
    with pytest.raises(ObjectDamaged):
        decode_tree(encode_tree(tree) + behind)


@given(tree=trees(), bit=st.integers(0, 7))
def test_any_flipped_bit_is_refused_or_makes_another_canonical_tree(tree: Tree, bit: int) -> None:
    data = bytearray(encode_tree(tree))
    for position in range(len(data)):
        data[position] ^= 1 << bit
        try:
            other = decode_tree(bytes(data))
        except ObjectDamaged:
            pass
        else:
            assert other != tree
            assert encode_tree(other) == bytes(data)
        data[position] ^= 1 << bit


@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_tree_are_refused(data: bytes) -> None:
    for garbage in (data, b"HFT1" + data):
        with pytest.raises(ObjectDamaged):
            decode_tree(garbage)


@given(counts=st.lists(st.integers(0, 2**32 - 1), min_size=9, max_size=9))
def test_a_header_that_promises_more_than_there_is_is_refused(counts: list[int]) -> None:
    if any(counts):
        with pytest.raises(ObjectDamaged):
            decode_tree(struct.pack("<4s9I", b"HFT1", *counts))


HOSTILE_NAMES = [b"..", b".", b"", b".git", b"/", b"a/b", b"/etc", b"../x", b"a/", b"a\0b", b"\0"]


def _file(name: bytes) -> FileEntry:
    return FileEntry(name, 0o644, 0, 0, DIGEST)


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize("kind", ["file", "directory", "symlink"])
def test_a_name_that_must_not_reach_a_file_system_is_refused(name: bytes, kind: str) -> None:
    hostile = {
        "file": Tree(files=(_file(name),)),
        "directory": Tree(directories=(DirectoryEntry(name, 0o755, DIGEST, 0, 0),)),
        "symlink": Tree(symlinks=(SymlinkEntry(name, b"x", 0),)),
    }[kind]
    with pytest.raises(ObjectDamaged):
        decode_tree(encode_tree(hostile))


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("path", [b"", b"/etc/passwd", b"../x", b"a/../../x", b"a//b", b".git/x"])
def test_a_link_group_outside_the_workspace_is_refused(path: bytes) -> None:
    hostile = Tree(files=(replace(_file(b"f"), link=path),))
    with pytest.raises(ObjectDamaged):
        decode_tree(encode_tree(hostile))


@pytest.mark.requirement("RL-7")
@pytest.mark.parametrize("target", [b"", b"a\0b"])
def test_a_link_target_that_no_system_has_is_refused(target: bytes) -> None:
    with pytest.raises(ObjectDamaged):
        decode_tree(encode_tree(Tree(symlinks=(SymlinkEntry(b"l", target, 0),))))


def test_names_that_are_not_sorted_or_not_unique_are_refused() -> None:
    directory = DirectoryEntry(b"a", 0o755, DIGEST, 0, 0)
    link = SymlinkEntry(b"a", b"x", 0)
    for tree in (
        Tree(files=(_file(b"b"), _file(b"a"))),
        Tree(files=(_file(b"a"), _file(b"a"))),
        Tree(files=(_file(b"a"),), directories=(directory,)),
        Tree(files=(_file(b"a"),), symlinks=(link,)),
        Tree(directories=(directory,), symlinks=(link,)),
    ):
        with pytest.raises(ObjectDamaged):
            decode_tree(encode_tree(tree))


@pytest.mark.parametrize("mode", [0o10000, 0o100644, 0xFFFF])
def test_mode_bits_that_are_none_are_refused(mode: int) -> None:
    with pytest.raises(ObjectDamaged):
        decode_tree(encode_tree(Tree(files=(replace(_file(b"f"), mode=mode),))))


@pytest.mark.requirement("PF-7")
def test_entries_of_one_kind_are_made_without_those_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = TreeStore()
    digest = store.add({b"directory": Directory(0o755), b"file": File(b"content", 0o644)})
    decoded = store.load(digest)
    monkeypatch.setattr("holdfast.domain.trees.tree.FileEntry", None)
    assert [entry.name for entry in decoded.directories] == [b"directory"]
    assert isinstance(decoded.entry(b"directory"), DirectoryEntry)
    assert decoded.rows.keys() == {b"directory", b"file"}

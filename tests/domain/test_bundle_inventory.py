"""Objects that pass by one after the other: whole, canonical, finite, and nothing besides."""

from __future__ import annotations

import pytest

from holdfast.domain.bundles import inventory as bundle_inventory
from holdfast.domain.bundles.inventory import Inventory, Role
from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.domain.trees.objects import Piece, digest_of, encode_chunk_list
from holdfast.domain.trees.tree import Tree, encode_tree

pytestmark = pytest.mark.requirement("ST-7")

BLOB = b"content"


def _add(inventory: Inventory, role: Role, data: bytes, place: int = 0) -> Digest:
    digest = digest_of(data)
    inventory.add(role, digest, data, place=place)
    return digest


def _file(size: int = len(BLOB)) -> Tree:
    return Tree(files=(FileEntry(b"f", 0o644, size, 0, digest_of(BLOB)),))


def test_a_tree_whose_parts_came_first_is_whole() -> None:
    inventory = Inventory()
    _add(inventory, Role.BLOB, BLOB, 7)
    below = _add(inventory, Role.TREE, encode_tree(_file()), 8)
    entry = DirectoryEntry(b"d", 0o755, below, 1, len(BLOB))
    root = _add(inventory, Role.TREE, encode_tree(Tree(directories=(entry,))), 9)
    report = _add(inventory, Role.REPORT, b'[[".git","GIT_DATA",""]]')
    inventory.require_checkpoint(root, report)
    inventory.require_all_used()
    assert inventory.place_of(Role.BLOB, digest_of(BLOB)) == 7
    assert inventory.place_of(Role.TREE, digest_of(BLOB)) is None
    assert len(inventory) == 4


def test_the_same_bytes_may_come_once_for_each_role() -> None:
    """A file of the workspace can hold the very bytes of a directory that is stored."""
    inventory = Inventory()
    empty = encode_tree(Tree())
    _add(inventory, Role.TREE, empty)
    _add(inventory, Role.BLOB, empty)
    with pytest.raises(ValueError, match="twice"):
        _add(inventory, Role.BLOB, empty)


def test_the_pieces_of_a_large_file_are_left_to_be_put_together() -> None:
    inventory = Inventory()
    pieces = encode_chunk_list([Piece(len(BLOB), _add(inventory, Role.BLOB, BLOB))] * 2)
    chunks = _add(inventory, Role.PIECES, pieces)
    entry = FileEntry(b"f", 0o644, 14, 0, digest_of(BLOB * 2), chunks)
    _add(inventory, Role.TREE, encode_tree(Tree(files=(entry,))))
    assert inventory.whole_files == {(digest_of(BLOB * 2), chunks): 14}


@pytest.mark.parametrize(
    ("role", "data", "why"),
    [
        (Role.TREE, encode_tree(_file(99)), "does not match its"),
        (Role.PIECES, encode_chunk_list([Piece(99, digest_of(BLOB))]), "does not match its"),
        (Role.PIECES, encode_chunk_list([Piece(1, digest_of(b"?"))]), "missing"),
        (Role.REPORT, b"5", "not a list"),
    ],
)
def test_claims_that_do_not_hold_are_refused(role: Role, data: bytes, why: str) -> None:
    inventory = Inventory()
    _add(inventory, Role.BLOB, BLOB)
    with pytest.raises(ValueError, match=why):
        _add(inventory, role, data)


def test_bytes_that_are_no_tree_are_refused() -> None:
    with pytest.raises(ObjectDamaged):
        _add(Inventory(), Role.TREE, b"not a tree")


def test_what_no_checkpoint_needs_is_refused_at_the_end() -> None:
    inventory = Inventory()
    _add(inventory, Role.BLOB, BLOB)
    with pytest.raises(ValueError, match="no checkpoint"):
        inventory.require_all_used()


@pytest.mark.parametrize("path", ["..", "a/../b", "/etc", "a//b", "a\0b", "."])
def test_a_report_names_only_paths_inside(path: str) -> None:
    import json

    with pytest.raises(ValueError, match="not a workspace path"):
        _add(Inventory(), Role.REPORT, json.dumps([[path, "IGNORED", ""]]).encode())


def test_more_pieces_than_any_workspace_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of empty pieces any number makes up an empty file, and each takes its time."""
    monkeypatch.setattr(bundle_inventory, "MOST_PIECES", 5)
    inventory = Inventory()
    empty = _add(inventory, Role.BLOB, b"")
    _add(inventory, Role.PIECES, encode_chunk_list([Piece(0, empty)] * 3))
    with pytest.raises(ValueError, match="more chunks"):
        _add(inventory, Role.PIECES, encode_chunk_list([Piece(0, empty)] * 4))

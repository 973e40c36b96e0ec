"""Replacing paths in a tree, against the same change of a dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.paths import is_within, parent
from holdfast.domain.trees.changes import NewMode, replace_entries
from holdfast.domain.trees.entries import FileEntry, SymlinkEntry
from holdfast.domain.trees.tree import decode_tree
from tests.domain.tree_models import (
    NAMES,
    Directory,
    File,
    Model,
    Symlink,
    TreeStore,
    entry_for,
    models,
    nodes,
)

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(b"/".join)
replacements = st.dictionaries(paths, nodes, min_size=1, max_size=4).filter(
    lambda chosen: (
        not any(one != other and is_within(one, other) for one in chosen for other in chosen)
    )
)


def naive_result(model: Model, chosen: Mapping[bytes, File | Symlink | Directory]) -> Model:
    result = dict(model)
    for path, node in chosen.items():
        for below in [other for other in result if is_within(other, path)]:
            del result[below]
        above = parent(path)
        while above and not isinstance(result.get(above), Directory):
            result[above] = Directory(0o755)
            above = parent(above)
        result[path] = node
    return result


@given(model=models(), chosen=replacements)
def test_chosen_paths_are_replaced_and_the_rest_stays(
    model: Model, chosen: dict[bytes, File | Symlink]
) -> None:
    store = TreeStore()
    root = store.add(model)
    entries: dict[bytes, FileEntry | SymlinkEntry | NewMode] = {
        path: entry_for(b"any", node) for path, node in chosen.items()
    }
    digest, encoded = replace_entries(store.load, root, entries)
    store.encoded.update(encoded)
    assert store.model(digest) == naive_result(model, chosen)
    assert digest == store.add(naive_result(model, chosen)), "as if it had been built that way"


@given(model=models(), chosen=replacements)
def test_only_directories_on_the_way_are_encoded_again(
    model: Model, chosen: dict[bytes, File | Symlink]
) -> None:
    store = TreeStore()
    root = store.add(model)
    on_the_way = {b""}
    for path in chosen:
        while path := parent(path):
            on_the_way.add(path)
    _, encoded = replace_entries(
        store.load, root, {path: entry_for(b"any", node) for path, node in chosen.items()}
    )
    assert len(encoded) <= len(on_the_way)
    for data in encoded.values():
        decode_tree(data)


@given(data=st.data(), model=models().filter(bool), mode=st.sampled_from([0o700, 0o640]))
def test_a_new_mode_changes_the_mode_alone(data: st.DataObject, model: Model, mode: int) -> None:
    changeable = sorted(path for path, node in model.items() if not isinstance(node, Symlink))
    if not changeable:
        return
    path = data.draw(st.sampled_from(changeable))
    store = TreeStore()
    digest, encoded = replace_entries(store.load, store.add(model), {path: NewMode(mode)})
    store.encoded.update(encoded)
    node = model[path]
    assert not isinstance(node, Symlink)
    assert store.model(digest) == {**model, path: replace(node, mode=mode)}


@given(model=models(), path=paths, mode=st.sampled_from([0o700, 0o640]))
def test_a_new_mode_of_what_is_not_there_changes_nothing(
    model: Model, path: bytes, mode: int
) -> None:
    """It was there a moment ago: others use the workspace, too."""
    if isinstance(model.get(path, Symlink(b"x")), Symlink):
        store = TreeStore()
        root = store.add(model)
        assert replace_entries(store.load, root, {path: NewMode(mode)})[0] == root

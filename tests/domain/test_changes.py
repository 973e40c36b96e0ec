"""What differs between two trees, against a comparison of two dictionaries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.trees import tree
from holdfast.domain.trees.changes import (
    Change,
    ChangeType,
    tree_changes,
    visible_changes,
    with_renames,
)
from holdfast.domain.trees.entries import FileEntry
from tests.domain.tree_models import Directory, File, Model, Symlink, TreeStore, models, node_for


def changes_between(old: Model | None, new: Model | None) -> list[Change]:
    store = TreeStore()
    digests = [None if model is None else store.add(model) for model in (old, new)]
    return list(tree_changes(store.load, *digests))


def naive_changes(old: Model, new: Model) -> dict[bytes, ChangeType]:
    expected: dict[bytes, ChangeType] = {}
    for path in old.keys() | new.keys():
        if path not in old:
            expected[path] = ChangeType.ADDED
        elif path not in new:
            expected[path] = ChangeType.REMOVED
        elif old[path] != new[path]:
            expected[path] = ChangeType.MODIFIED
    return expected


@pytest.mark.requirement("PF-7")
def test_only_entries_that_differ_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def noted(name: bytes, *others: Any) -> FileEntry:
        made.append(name)
        return FileEntry(name, *others)

    old: Model = {b"%03d" % n: File(b"same", 0o644) for n in range(200)}
    store = TreeStore()
    new = old | {b"100": File(b"other", 0o644), b"new": File(b"same", 0o644)}
    digests = store.add(old), store.add(new)
    monkeypatch.setattr(tree, "FileEntry", noted)
    assert [c.path for c in tree_changes(store.load, *digests)] == [b"100", b"new"]
    assert made == [b"100", b"100", b"new"]


@given(old=models(), new=models())
def test_every_path_that_differs_is_named_once_with_both_sides(old: Model, new: Model) -> None:
    changes = changes_between(old, new)
    assert {change.path: change.type for change in changes} == naive_changes(old, new)
    assert len({change.path for change in changes}) == len(changes)
    for change in changes:
        assert (None if change.old is None else node_for(change.old)) == old.get(change.path)
        assert (None if change.new is None else node_for(change.new)) == new.get(change.path)


@given(old=models(), new=models())
def test_changes_come_in_path_order_with_directories_before_what_they_hold(
    old: Model, new: Model
) -> None:
    keys = [change.path.split(b"/") for change in changes_between(old, new)]
    assert keys == sorted(keys)


@given(model=models())
def test_nothing_differs_from_itself_and_everything_from_nothing(model: Model) -> None:
    assert changes_between(model, model) == []
    added = changes_between(None, model)
    assert {change.path for change in added} == model.keys()
    assert {change.type for change in added} <= {ChangeType.ADDED}
    removed = changes_between(model, None)
    assert [change.path for change in removed] == [change.path for change in added]


@given(model=models(), name=st.sampled_from([b"x", b"zz"]))
def test_equal_subtrees_are_not_loaded(model: Model, name: bytes) -> None:
    store = TreeStore()
    old, new = store.add(model), store.add({**model, name: File(b"new", 0o644)})
    assert [change.path for change in tree_changes(store.load, old, new)] == [name]
    assert store.loaded == 2, "the two roots"


@given(old=models(), new=models())
def test_what_people_see_is_files_and_directories_that_nothing_else_tells_of(
    old: Model, new: Model
) -> None:
    changes = changes_between(old, new)
    seen = {change.path for change in visible_changes(changes)}
    paths = [change.path for change in changes]
    for change in changes:
        told_by_others = any(path.startswith(change.path + b"/") for path in paths)
        assert (change.path in seen) == (not change.is_directory or not told_by_others)


@given(old=models(), new=models())
def test_renames_pair_each_lost_file_with_one_new_of_the_same_content(
    old: Model, new: Model
) -> None:
    changes = changes_between(old, new)
    paired = with_renames(changes)
    renamed = [change for change in paired if change.type is ChangeType.RENAMED]
    sources = [change.old_path for change in renamed]
    assert len(set(sources)) == len(sources)
    for change in renamed:
        assert change.old_path is not None
        before, after = old[change.old_path], new[change.path]
        assert isinstance(before, File)
        assert isinstance(after, File)
        assert before.content == after.content != b""
        assert change.old_path not in new
        assert change.path not in old
    left = {c.path: c.type for c in paired if c.type is not ChangeType.RENAMED}
    told = left | {c.path: ChangeType.ADDED for c in renamed}
    told |= {path: ChangeType.REMOVED for path in sources if path is not None}
    assert told == naive_changes(old, new)


def test_a_rename_prefers_the_file_that_kept_its_name() -> None:
    old: Model = {
        b"a": Directory(0o755),
        b"a/one": File(b"one", 0o644),
        b"a/two": File(b"one", 0o644),
    }
    new: Model = {b"b": Directory(0o755), b"b/two": File(b"one", 0o644)}
    (renamed,) = [
        c for c in with_renames(changes_between(old, new)) if c.type is ChangeType.RENAMED
    ]
    assert (renamed.old_path, renamed.path) == (b"a/two", b"b/two")


def test_a_change_of_mode_alone_is_distinguished() -> None:
    before: Model = {b"f": File(b"one", 0o644), b"s": Symlink(b"a")}
    (change,) = changes_between(before, {**before, b"f": File(b"one", 0o755)})
    assert change.modes == (0o644, 0o755)
    (change,) = changes_between(before, {**before, b"f": File(b"two", 0o644)})
    assert change.modes is None
    (change,) = changes_between(before, {**before, b"f": Symlink(b"a")})
    assert change.modes is None

"""A restore plan, run on a model that enforces what real directories enforce.

No entry without its directory, no directory removed that is not empty, nothing made at an occupied
path. And unsaved content is never touched (RB-4).
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.paths import is_within, parent
from holdfast.domain.restore.plan import RestorePlan, Step, StepType, plan_restore
from tests.domain.tree_models import (
    NAMES,
    Directory,
    File,
    Model,
    Symlink,
    TreeStore,
    models,
    node_for,
)


class Disk:
    """The entry at each path; `unsaved` are paths that are there and in no tree."""

    def __init__(self, saved: Model, unsaved: set[bytes] | None = None) -> None:
        self.nodes = dict(saved)
        self.unsaved = unsaved or set()

    def run(self, plan: RestorePlan) -> None:
        for step in plan.steps:
            self.apply(step)

    def apply(self, step: Step) -> None:
        path = step.path
        assert not any(is_within(path, unsaved) for unsaved in self.unsaved), "nobody saved that"
        above = parent(path)
        assert not above or isinstance(self.nodes.get(above), Directory), "no directory for it"
        present = self.nodes.get(path)
        before = None if step.before is None else node_for(step.before)
        assert present == before, "the plan expects something else here"
        match step.type:
            case StepType.DELETE:
                assert isinstance(present, File | Symlink)
                del self.nodes[path]
            case StepType.RMDIR:
                assert isinstance(present, Directory)
                assert not self._holds_anything(path), "directory not empty"
                del self.nodes[path]
            case StepType.MKDIR | StepType.CREATE:
                assert present is None
                self._put(step)
            case StepType.RESTORE | StepType.RELINK:
                assert isinstance(present, File | Symlink)
                self._put(step)
            case StepType.CHMOD:
                assert step.after is not None
                assert type(present) is type(node_for(step.after))
                self._put(step)

    def _put(self, step: Step) -> None:
        assert step.after is not None
        node = node_for(step.after)
        assert isinstance(node, Directory) == (
            step.type is StepType.MKDIR
            or (step.type is StepType.CHMOD and isinstance(self.nodes[step.path], Directory))
        )
        self.nodes[step.path] = node

    def _holds_anything(self, directory: bytes) -> bool:
        return any(parent(path) == directory for path in (*self.nodes, *self.unsaved))


def plan(
    current: Model,
    target: Model,
    *,
    paths: tuple[bytes, ...] = (),
    current_skipped: set[bytes] | None = None,
    target_skipped: set[bytes] | None = None,
) -> RestorePlan:
    store = TreeStore()
    return plan_restore(
        store.load,
        store.add(current),
        store.add(target),
        paths=paths,
        current_skipped=dict.fromkeys(current_skipped or (), "ignored"),
        target_skipped=dict.fromkeys(target_skipped or (), "too large"),
    )


@pytest.mark.requirement("RB-1")
@settings(max_examples=150)
@given(current=models(), target=models())
def test_running_the_plan_turns_one_tree_into_the_other(current: Model, target: Model) -> None:
    made = plan(current, target)
    disk = Disk(current)
    disk.run(made)
    assert disk.nodes == target
    assert made.blocked == ()
    assert made.kept == ()


@pytest.mark.requirement("RB-1")
@given(current=models(), target=models())
def test_a_plan_names_each_path_once_per_type_and_touches_nothing_that_is_right(
    current: Model, target: Model
) -> None:
    made = plan(current, target)
    assert len({(step.path, step.type) for step in made.steps}) == len(made.steps)
    touched = {step.path for step in made.steps}
    assert touched == {
        path for path in current.keys() | target.keys() if current.get(path) != target.get(path)
    }
    assert plan(target, target).steps == ()
    assert plan(current, target) == made, "the same plan every time"


@given(current=models(), target=models())
def test_sizes_and_counts_are_those_of_the_steps(current: Model, target: Model) -> None:
    made = plan(current, target)
    written = {
        path: node
        for path, node in target.items()
        if isinstance(node, File) and current.get(path) != node
    }
    same_bytes = {
        path
        for path, node in written.items()
        if isinstance(before := current.get(path), File)
        and (before.content, before.link) == (node.content, node.link)
    }
    sizes = [len(node.content) for path, node in written.items() if path not in same_bytes]
    assert made.bytes_to_write == sum(sizes)
    assert made.count(*StepType) == len(made.steps)
    assert set(made.affected_files) <= {step.path for step in made.steps}


@st.composite
def left_out(draw: st.DrawFn, model: Model) -> set[bytes]:
    """Paths that exist beside those of a model and are in no tree: ignored, too large, special."""
    homes = [b"", *(path for path, node in model.items() if isinstance(node, Directory))]
    chosen: set[bytes] = set()
    for home in draw(st.lists(st.sampled_from(homes), max_size=4)):
        name = draw(st.sampled_from((*NAMES, b"unsaved")))
        path = home + b"/" + name if home else name
        if path not in model:
            chosen.add(path)
    return chosen


@pytest.mark.requirement("RB-4")
@settings(max_examples=150)
@given(data=st.data(), current=models(), target=models())
def test_unsaved_content_is_never_touched_and_the_rest_is_brought_about(
    data: st.DataObject, current: Model, target: Model
) -> None:
    unsaved = data.draw(left_out(current), label="unsaved")
    made = plan(current, target, current_skipped=unsaved)
    disk = Disk(current, unsaved)
    disk.run(made)  # which fails if anything unsaved is deleted, replaced or left without a home
    blocked = {entry.path for entry in made.blocked}
    kept = {entry.path for entry in made.kept}
    for path in target:
        if not any(is_within(path, obstacle) for obstacle in blocked):
            assert disk.nodes.get(path) == target[path]
    for path in disk.nodes.keys() - target.keys():
        assert path in kept or any(is_within(path, obstacle) for obstacle in blocked)
    for path in blocked:
        assert any(is_within(path, other) or is_within(other, path) for other in unsaved)
    for path in kept:
        assert any(is_within(other, path) for other in unsaved)


@pytest.mark.requirement("RB-4")
@settings(max_examples=150)
@given(data=st.data(), current=models(), target=models())
def test_what_the_checkpoint_left_out_is_not_deleted_for_being_absent_from_it(
    data: st.DataObject, current: Model, target: Model
) -> None:
    omitted = data.draw(left_out(target), label="omitted")
    made = plan(current, target, target_skipped=omitted)
    disk = Disk(current)
    disk.run(made)
    for path, node in current.items():
        if any(is_within(path, other) for other in omitted):
            assert disk.nodes.get(path) == node
    assert {path: disk.nodes.get(path) for path in target} == target
    extra = disk.nodes.keys() - target.keys()
    assert extra == {entry.path for entry in made.kept}
    assert made.blocked == ()


@pytest.mark.requirement("RB-4", "RB-7")
@settings(max_examples=150)
@given(data=st.data(), current=models(), target=models())
def test_chosen_paths_among_unsaved_and_omitted_ones_still_lose_nothing(
    data: st.DataObject, current: Model, target: Model
) -> None:
    unsaved = data.draw(left_out(current), label="unsaved")
    omitted = data.draw(left_out(target), label="omitted")
    known = sorted(current.keys() | target.keys() | unsaved | omitted | {b"nowhere"})
    paths = tuple(data.draw(st.lists(st.sampled_from(known), max_size=3), label="paths"))
    made = plan(current, target, paths=paths, current_skipped=unsaved, target_skipped=omitted)
    disk = Disk(current, unsaved)
    disk.run(made)
    for path, node in current.items():
        if path not in target and any(is_within(path, other) for other in omitted):
            assert disk.nodes.get(path) == node


def selected_result(current: Model, target: Model, paths: tuple[bytes, ...]) -> Model:
    """Chosen paths as in the target, others as they are, directories on the way as needed."""

    def chosen(path: bytes) -> bool:
        return any(is_within(path, wanted) for wanted in paths)

    result = {path: node for path, node in current.items() if not chosen(path)}
    result |= {path: node for path, node in target.items() if chosen(path)}
    for path in [path for path in result if chosen(path)]:
        above = parent(path)
        while above and not isinstance(result.get(above), Directory):
            result[above] = target[above]
            above = parent(above)
    return result


@pytest.mark.requirement("RB-7")
@settings(max_examples=150)
@given(data=st.data(), current=models(), target=models())
def test_only_the_chosen_paths_change(data: st.DataObject, current: Model, target: Model) -> None:
    known = sorted(current.keys() | target.keys() | {b"nowhere", b"a/nowhere"})
    paths = tuple(
        data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=3), label="paths")
    )
    disk = Disk(current)
    disk.run(plan(current, target, paths=paths))
    assert disk.nodes == selected_result(current, target, paths)


def test_a_directory_that_holds_something_unsaved_stays_with_the_reason() -> None:
    current: Model = {b"d": Directory(0o755), b"d/f": File(b"one", 0o644)}
    made = plan(current, {}, current_skipped={b"d/cache"})
    assert [(step.type, step.path) for step in made.steps] == [(StepType.DELETE, b"d/f")]
    (kept,) = made.kept
    assert kept.path == b"d"
    assert "d/cache" in kept.reason


def test_a_file_cannot_take_the_place_of_a_directory_that_holds_something_unsaved() -> None:
    current: Model = {b"d": Directory(0o755), b"d/f": File(b"one", 0o644)}
    made = plan(current, {b"d": File(b"two", 0o644)}, current_skipped={b"d/cache"})
    assert made.steps == ()
    (blocked,) = made.blocked
    assert blocked.path == b"d"
    assert "d/cache" in blocked.reason


def test_an_unsaved_file_in_the_way_blocks_and_says_why() -> None:
    target: Model = {b"f": File(b"one", 0o644), b"g": File(b"two", 0o644)}
    made = plan({}, target, current_skipped={b"f"})
    assert [step.path for step in made.steps] == [b"g"]
    (blocked,) = made.blocked
    assert blocked.path == b"f"
    assert "ignored" in blocked.reason

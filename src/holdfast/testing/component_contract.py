"""The contract of `holdfast.ports.component`, as tests.

Subclass it, and define how to make the component and how to make, change and inspect its state. A
place is the test's own directory that serves as the workspace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.domain.component_states import (
    EXACT,
    ComponentState,
    StoredContent,
    decode_manifest,
    encode_manifest,
    valid_component_name,
)
from holdfast.domain.ids import CheckpointId
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    Component,
    Components,
    Intended,
    RecordedComponent,
    RestoreOf,
)

_OWNER = "0123456789abcdef0123"
_TIMEOUT_S = 60.0
_NOW_NS = 4_000_000_000_000_000_000
"""Far in the future, so that nothing a test writes is too recent to be trusted."""


class MemoryContents:
    """A sink and a source in one, for tests of components."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.kept: dict[str, StoredContent] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        assert name not in self.contents, f"the content {name!r} was given twice"
        self.contents[name] = b"".join(pieces)

    def keep(self, name: str, content: StoredContent) -> None:
        assert name not in self.contents, f"the content {name!r} was given twice"
        self.kept[name] = content

    def read(self, name: str) -> Iterator[bytes]:
        return iter((self.contents[name],))

    def stored(self) -> tuple[StoredContent, ...]:
        added = [
            StoredContent(name, digest_of(data), None, len(data))
            for name, data in self.contents.items()
        ]
        kept = [StoredContent(n, c.digest, c.chunks, c.size) for n, c in self.kept.items()]
        return tuple(sorted((*added, *kept), key=lambda content: content.name))


class _CaptureContract:
    """Tests for every component, restored or recorded only."""

    def make_component(self) -> Component:
        raise NotImplementedError

    def make_state(self, place: Path) -> None:
        """Create something to capture."""
        raise NotImplementedError

    def change_state(self, place: Path) -> None:
        """Change the state."""
        raise NotImplementedError

    def look_at_state(self, place: Path) -> object:
        """Everything that a capture has to contain, for comparison."""
        raise NotImplementedError

    # Called by the tests below.

    def capture(
        self, place: Path, previous: ComponentState | None = None, intended: Intended | None = None
    ) -> tuple[ComponentState | None, MemoryContents]:
        """One capture, with everything passed through the stored form of a checkpoint."""
        component, contents = self.make_component(), MemoryContents()
        request = CaptureRequest(
            workspace=place,
            owner=_OWNER,
            checkpoint=CheckpointId(f"{len(list(place.parent.iterdir())):020x}"),
            previous=previous,
            now_ns=_NOW_NS,
            timeout_s=_TIMEOUT_S,
            intended=intended,
        )
        captured: Captured | None = component.capture(request, contents)
        if captured is None:
            assert previous is not None, "nothing can be unchanged that never was captured"
            return None, contents
        facts: dict[str, Any] = json.loads(json.dumps(captured.facts))
        assert facts == captured.facts, "facts come back from JSON as they were"
        state = ComponentState(
            component.name,
            facts,
            contents.stored(),
            tuple(captured.problems),
            None,
            json.loads(json.dumps(captured.notes)),
        )
        return decode_manifest(encode_manifest((state,)))[0], contents

    def first_capture(self, place: Path) -> tuple[ComponentState, MemoryContents]:
        state, contents = self.capture(place)
        assert state is not None
        return state, contents

    def test_it_applies_where_there_is_something(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        assert self.make_component().applies(place)

    def test_a_capture_changes_nothing(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        before = self.look_at_state(place)
        state, _ = self.first_capture(place)
        assert self.look_at_state(place) == before
        assert state.problems == ()

    def test_what_has_not_changed_is_the_same_or_known_to_be(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        first, _ = self.first_capture(place)
        second, _ = self.capture(place, first)
        assert second is None or second.same_as(first)

    def test_what_has_changed_is_noticed(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        first, _ = self.first_capture(place)
        self.change_state(place)
        second, _ = self.capture(place, first)
        assert second is not None
        assert not second.same_as(first)

    def test_a_state_is_described_from_itself_alone(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        state, _ = self.first_capture(place)
        lines: Sequence[str] = self.make_component().describe(state)
        assert lines
        assert all(isinstance(line, str) and "\n" not in line for line in lines)

    def _place_with_state(self, tmp_path: Path) -> Path:
        place = tmp_path / "workspace"
        place.mkdir()
        self.make_state(place)
        return place


class ComponentContract(_CaptureContract):
    """Subclass it, and define the first four methods of the class above."""

    def restore_request(
        self, place: Path, state: ComponentState, contents: MemoryContents, mode: str = EXACT
    ) -> RestoreOf:
        """Captures the present state first, as every restore does."""
        present, _ = self.first_capture(place)
        return RestoreOf(
            workspace=place,
            owner=_OWNER,
            present=present,
            target=state,
            mode=mode,
            label="fedcba9876543210fedc",
            title="a checkpoint",
            contents=contents,
            now_ns=_NOW_NS,
            timeout_s=_TIMEOUT_S,
        )

    def test_it_says_what_it_is(self) -> None:
        component = self.make_component()
        assert valid_component_name(component.name)
        assert component.modes[0] == EXACT
        assert len(set(component.modes)) == len(component.modes)
        assert isinstance(component.order, int)
        assert isinstance(component.restored_by_default, bool)

    def test_it_comes_back_exactly_and_once_more_is_the_same(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        before = self.look_at_state(place)
        state, contents = self.first_capture(place)
        self.change_state(place)
        component = self.make_component()
        request = self.restore_request(place, state, contents)
        assert component.verify(request), "a state that is another does not pass"
        for _ in range(2):
            component.restore(request)
            assert self.look_at_state(place) == before
            assert list(component.verify(request)) == []

    def test_a_restore_can_be_rolled_back(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        state, contents = self.first_capture(place)
        self.change_state(place)
        changed = self.look_at_state(place)
        intended = Intended(state, EXACT, "fedcba9876543210fedc")
        safety, safety_contents = self.capture(place, state, intended)
        assert safety is not None
        component = self.make_component()
        component.restore(self.restore_request(place, state, contents))
        component.restore(self.restore_request(place, safety, safety_contents))
        assert self.look_at_state(place) == changed

    def test_a_plan_changes_nothing_and_knows_whether_there_is_anything_to_do(
        self, tmp_path: Path
    ) -> None:
        place = self._place_with_state(tmp_path)
        state, contents = self.first_capture(place)
        component = self.make_component()
        request = self.restore_request(place, state, contents)
        assert component.plan(request).actions == ()
        self.change_state(place)
        changed = self.look_at_state(place)
        preview = component.plan(self.restore_request(place, state, contents))
        assert preview.actions
        assert preview.blocked == ()
        assert self.look_at_state(place) == changed

    def test_what_is_needed_is_not_released(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        before = self.look_at_state(place)
        state, contents = self.first_capture(place)
        component = self.make_component()
        component.release(place, _OWNER, iter([state]))
        self.change_state(place)
        component.restore(self.restore_request(place, state, contents))
        assert self.look_at_state(place) == before
        component.release(place, _OWNER, iter(()))
        assert self.look_at_state(place) == before


class RecordedComponentContract(_CaptureContract):
    """The same for a `RecordedComponent`, which is never restored."""

    def make_component(self) -> RecordedComponent:
        raise NotImplementedError

    def test_it_says_that_it_is_recorded_only(self) -> None:
        component = self.make_component()
        assert isinstance(component, RecordedComponent)
        assert valid_component_name(component.name)
        assert component.recorded_only
        assert component.modes == ()
        assert not component.restored_by_default
        assert isinstance(component.order, int)

    def test_two_states_are_distinguished_from_themselves_alone(self, tmp_path: Path) -> None:
        place = self._place_with_state(tmp_path)
        before, contents = self.first_capture(place)
        assert contents.stored() == (), "everything is in the facts"
        self.change_state(place)
        after, _ = self.first_capture(place)
        component = self.make_component()
        assert list(component.differences(before, before)) == []
        assert list(component.restore_notes(before, before)) == []
        assert set(component.restore_notes(before, after)) <= set(
            component.differences(before, after)
        )
        lines = component.differences(before, after)
        assert lines
        assert all(isinstance(line, str) and "\n" not in line for line in lines)
        assert list(component.differences(after, before)) != list(lines)


class ComponentSetContract:
    """Subclass it, and define how to make a set with these names. Two of your names must load."""

    loadable: tuple[str, str]

    def make_set(self, *names: str) -> Components:
        raise NotImplementedError

    def test_each_component_is_loaded_once_in_its_order(self) -> None:
        components = self.make_set(*self.loadable)
        first = components.all()
        assert sorted(one.name for one in first) == sorted(self.loadable)
        assert [one.order for one in first] == sorted(one.order for one in first)
        assert all(one is other for one, other in zip(first, components.all(), strict=True))
        assert list(components.missing()) == []

    def test_a_name_that_cannot_be_loaded_is_missing_with_the_reason(self, tmp_path: Path) -> None:
        components = self.make_set(self.loadable[0], "not-installed")
        assert components.any_for(tmp_path, recorded=False), "in doubt, it says yes"
        (said,) = components.missing()
        assert said.startswith("not-installed: ")
        assert [one.name for one in components.all()] == [self.loadable[0]]

    def test_those_that_may_apply_are_some_of_all_in_their_order(self, tmp_path: Path) -> None:
        components = self.make_set(*self.loadable, "not-installed")
        applying = components.applying(tmp_path)
        assert list(applying) == [one for one in components.all() if one in applying]
        assert [one.name for one in components.named((self.loadable[1],))] == [self.loadable[1]]
        assert {c.name for c in components.all() if c.applies(tmp_path)} <= {
            c.name for c in applying
        }

    def test_an_empty_set_has_nothing_to_say(self, tmp_path: Path) -> None:
        components = self.make_set()
        assert not components.any_for(tmp_path, recorded=True)
        assert (list(components.all()), list(components.missing())) == ([], [])
        assert list(components.applying(tmp_path)) == []

"""Driving one component as a checkpoint and a restore do, with contents kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from holdfast.domain.component_states import EXACT, ComponentState, StoredContent
from holdfast.domain.ids import CheckpointId
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.component import CaptureRequest, Component, ComponentPreview, RestoreOf

_HOUR_NS = 3_600_000_000_000


class Contents:
    """A sink and a source at once; what was ever added under a digest stays."""

    def __init__(self) -> None:
        self.of: dict[str, bytes] = {}

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        assert name not in self.of
        self.of[name] = b"".join(pieces)

    def keep(self, name: str, content: StoredContent) -> None:
        raise AssertionError("no component here takes over what it gave before")

    def read(self, name: str) -> Iterator[bytes]:
        data = self.of[name]
        return (data[at : at + 1000] for at in range(0, len(data), 1000))

    def listed(self) -> tuple[StoredContent, ...]:
        return tuple(
            StoredContent(name, digest_of(data), None, len(data))
            for name, data in sorted(self.of.items())
        )


class ComponentRun:
    """One component in one workspace. `now_ns` is an hour ahead, so that nothing is too new to be
    distinguished from a change, unless a test says otherwise."""

    def __init__(self, component: Component, workspace: Path, now_ns: int) -> None:
        self.component = component
        self.workspace = workspace
        self.now_ns = now_ns + _HOUR_NS
        self.kept: dict[int, Contents] = {}
        self.timeout_s = 120.0

    def capture(
        self, previous: ComponentState | None = None, *, look: bool = False
    ) -> ComponentState | None:
        """None when the component says that nothing changed."""
        contents = Contents()
        request = CaptureRequest(
            workspace=self.workspace,
            owner="owner",
            checkpoint=None if look else CheckpointId("c" * 20),
            previous=previous,
            now_ns=self.now_ns,
            timeout_s=self.timeout_s,
        )
        captured = self.component.capture(request, contents)
        if captured is None:
            return None
        state = ComponentState(
            self.component.name,
            captured.facts,
            contents.listed(),
            captured.problems,
            None,
            captured.notes,
        )
        self.kept[id(state)] = contents
        return state

    def captured(self, previous: ComponentState | None = None) -> ComponentState:
        state = self.capture(previous)
        assert state is not None
        return state

    def contents(self, state: ComponentState) -> Contents:
        return self.kept[id(state)]

    def request(
        self,
        target: ComponentState,
        present: ComponentState | None,
        contents: Contents | None = None,
    ) -> RestoreOf:
        return RestoreOf(
            workspace=self.workspace,
            owner="owner",
            present=present,
            target=target,
            mode=EXACT,
            label="c" * 20,
            title="before the change",
            contents=contents or self.contents(target),
            now_ns=self.now_ns,
            timeout_s=self.timeout_s,
        )

    def plan(self, target: ComponentState, present: ComponentState | None) -> ComponentPreview:
        return self.component.plan(self.request(target, present))

    def restore(self, target: ComponentState, present: ComponentState | None) -> None:
        """Twice, because a crash may make it so; and nothing is left to say."""
        request = self.request(target, present)
        self.component.restore(request)
        self.component.restore(request)
        assert list(self.component.verify(request)) == []

    def restore_to(self, target: ComponentState) -> ComponentState:
        """With everything captured first, as the engine does it; that state."""
        present = self.captured()
        self.restore(target, present)
        return present

    def altered(self, state: ComponentState, name: str, data: bytes) -> ComponentState:
        """The same state with another content, as a hostile bundle could bring it."""
        contents = Contents()
        contents.of = {**self.contents(state).of, name: data}
        changed = replace(state, contents=contents.listed())
        self.kept[id(changed)] = contents
        return changed

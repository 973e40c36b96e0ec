"""Two components for tests, which can be made to misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.component_states import ComponentState
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    RestoreOf,
)

NEVER = threading.Event()


class Box:
    """A component whose state is a few bytes in memory; tests make it misbehave."""

    name = "box"
    order = 100
    restored_by_default = True
    modes = ("exact", "doubled")
    content = b"first"
    calls: list[str] = []  # noqa: RUF012 - shared with the test on purpose

    def applies(self, workspace: Path) -> bool:
        return True

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        type(self).calls.append(f"capture {self.name}")
        sink.add("content", [self.content])
        return Captured({"bytes": len(self.content)})

    def describe(self, state: ComponentState) -> Sequence[str]:
        return [f"{state.facts['bytes']} bytes"]

    def plan(self, request: RestoreOf) -> ComponentPreview:
        wanted = b"".join(request.contents.read("content"))
        return ComponentPreview(() if wanted == self.content else ("its content changes",))

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        return [f"{self.name} watches {len(paths)}"]

    def restore(self, request: RestoreOf) -> None:
        type(self).calls.append(f"restore {self.name} {request.mode}")
        times = 2 if request.mode == "doubled" else 1
        type(self).content = b"".join(request.contents.read("content")) * times

    def verify(self, request: RestoreOf) -> Sequence[str]:
        times = 2 if request.mode == "doubled" else 1
        wanted = b"".join(request.contents.read("content")) * times
        return [] if self.content == wanted else ["its content is another"]

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None:
        type(self).calls.append(f"release {self.name} {len(list(needed))}")


class Later(Box):
    """A second one, which is restored after the first."""

    name = "later"
    order = 200
    content = b"later"
    calls = Box.calls

    def restore(self, request: RestoreOf) -> None:
        super().restore(request)
        if b"".join(request.contents.read("content")) == b"poison":
            raise ComponentProblem("it is broken; buy a new one")


def misbehave(monkeypatch: pytest.MonkeyPatch, method: str, act: Any) -> None:
    monkeypatch.setattr(Box, method, act)

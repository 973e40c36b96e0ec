"""A workspace with components of other people."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.components import boxes
from tests.engine.components.boxes import Box, Later
from tests.support.composition import configure
from tests.support.hostile_trees import fill


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A workspace with both components, installed as packages are: by their entry points.

    Who was left waiting ends with the test: released later, it would work in the next one.
    """
    others = set(threading.enumerate())
    packages = tmp_path / "packages"
    points = packages / "boxes-1.dist-info/entry_points.txt"
    fill(packages / "boxes-1.dist-info/METADATA", b"Metadata-Version: 2.1\nName: boxes\n")
    here = f"{boxes.__name__}:"
    rows = f"[holdfast.components]\nbox = {here}Box\nlater = {here}Later\nbad = {here}missing\n"
    fill(points, rows.encode())
    monkeypatch.syspath_prepend(packages)
    for kind, content in ((Box, b"first"), (Later, b"later")):
        monkeypatch.setattr(kind, "content", content)
    Box.calls.clear()
    place = tmp_path / "project"
    fill(place / "file", b"1")
    configure(place, components=["later", "box"], component_timeout=5)
    yield place
    boxes.NEVER.set()
    for left in set(threading.enumerate()) - others:
        left.join(30)
    boxes.NEVER.clear()

"""Where the system has no call that exchanges two names, or moves to a free one: in steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.local import local_filesystem
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.ports.filesystem import SET_ASIDE
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("RB-3", "RB-6")

Step = tuple[str, int]


@pytest.fixture(autouse=True)
def without_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_filesystem, "rename_with_flags", lambda *_: False)


class Places:
    """A staging directory with a slot in it, and a workspace with a path in it."""

    def __init__(self, top: Path) -> None:
        self.area, self.work = top / "area", top / "work"
        self.area.mkdir()
        self.work.mkdir()
        self.fds = [os.open(place, os.O_RDONLY) for place in (self.area, self.work)]

    def exchange(self) -> None:
        LocalFilesystem.exchange(b"0", b"path", src_dir_fd=self.fds[0], dst_dir_fd=self.fds[1])

    def put(self) -> None:
        LocalFilesystem.rename_new(b"0", b"path", src_dir_fd=self.fds[0], dst_dir_fd=self.fds[1])

    def content(self) -> dict[str, bytes]:
        files = (*self.area.rglob("*"), *self.work.rglob("*"))
        return {f"{f.parent.name}/{f.name}": f.read_bytes() for f in files if f.is_file()}


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    places = Places(tmp_path)
    yield places
    for fd in places.fds:
        os.close(fd)


def _at(step: Step, action: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do something right before or right after one of the calls that a move consists of."""
    name, number = step
    real: Callable[..., Any] = getattr(os, name.removeprefix("after "))
    calls: list[None] = []

    def called(*arguments: Any, **options: Any) -> None:
        calls.append(None)
        if name.startswith("after "):
            real(*arguments, **options)
        if len(calls) == number:
            action()
        if not name.startswith("after "):
            real(*arguments, **options)

    monkeypatch.setattr(os, name.removeprefix("after "), called)


def _interrupt() -> None:
    raise KeyboardInterrupt


STEPS: list[Step] = [
    ("rename", 1),
    ("after rename", 1),
    ("link", 1),
    ("after link", 1),
    ("unlink", 1),
    ("after unlink", 1),
    ("rename", 2),
    ("after rename", 2),
]


def test_two_names_are_exchanged(places: Places) -> None:
    fill(places.area / "0", b"new")
    fill(places.work / "path", b"old")
    places.exchange()
    assert places.content() == {"area/0": b"old", "work/path": b"new"}


@pytest.mark.parametrize("step", STEPS)
def test_an_exchange_that_is_interrupted_is_made_or_rolled_back(
    places: Places, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(places.area / "0", b"new")
    fill(places.work / "path", b"old")
    with monkeypatch.context() as patch:
        _at(step, _interrupt, patch)
        with pytest.raises(KeyboardInterrupt):
            places.exchange()
    made = {"area/0": b"old", "work/path": b"new"}
    assert places.content() in (made, {"area/0": b"new", "work/path": b"old"})


def test_who_takes_the_name_between_two_steps_keeps_it_and_nothing_is_lost(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(places.area / "0", b"new")
    fill(places.work / "path", b"old")
    with monkeypatch.context() as patch:
        _at(("link", 1), lambda: fill(places.work / "path", b"by a person"), patch)
        with pytest.raises(FileExistsError):
            places.exchange()
    aside = f"area/0{SET_ASIDE.decode()}"
    assert places.content() == {"area/0": b"new", aside: b"old", "work/path": b"by a person"}


@pytest.mark.parametrize("step", STEPS[2:6])
def test_a_move_to_a_free_name_that_is_interrupted_is_made_or_rolled_back(
    places: Places, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(places.area / "0", b"new")
    with monkeypatch.context() as patch:
        _at(step, _interrupt, patch)
        with pytest.raises(KeyboardInterrupt):
            places.put()
    assert places.content() in ({"area/0": b"new"}, {"work/path": b"new"})


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_name_that_is_taken_is_refused(places: Places, kind: str) -> None:
    fill(places.area / ("0/inside" if kind == "directory" else "0"), b"new")
    fill(places.work / "path", b"old")
    before = places.content()
    with pytest.raises(FileExistsError):
        places.put()
    (places.work / "path").unlink()
    fill(places.work / "path/inside", b"old")
    with pytest.raises(FileExistsError):
        places.put()
    assert before.keys() - places.content().keys() == {"work/path"}


def test_another_name_of_the_same_file_is_a_name_that_is_taken(places: Places) -> None:
    fill(places.area / "0", b"new")
    os.link(places.area / "0", places.work / "path")
    with pytest.raises(FileExistsError):
        places.put()
    assert places.content() == {"area/0": b"new", "work/path": b"new"}


def test_a_directory_moves_to_a_free_name_with_all_that_is_in_it(places: Places) -> None:
    fill(places.area / "0/inside", b"kept")
    places.put()
    assert places.content() == {"path/inside": b"kept"}
    assert (places.work / "path").is_dir()


def test_a_directory_for_which_another_process_is_quicker_is_refused(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(places.area / "0/inside", b"new")
    with monkeypatch.context() as patch:
        _at(("rename", 1), lambda: fill(places.work / "path", b"by a person"), patch)
        with pytest.raises(FileExistsError):
            places.put()
    assert places.content() == {"0/inside": b"new", "work/path": b"by a person"}

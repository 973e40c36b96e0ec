"""Restores where the system cannot exchange two names at once: nothing is lost in between."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.local import local_filesystem
from holdfast.domain.errors import HoldfastError
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.stored_objects import entry_at, read_content
from holdfast.ports.catalog import all_checkpoints
from tests.support.composition import Composed, composed
from tests.support.hostile_trees import fill
from tests.support.tree_hash import debris
from tests.support.watched_filesystem import Call, WatchedFilesystem

pytestmark = pytest.mark.requirement("RB-3", "RB-6")


class _Dead(BaseException):
    """Raised by every call that could change something, from the moment of a process's death."""


@pytest.fixture(autouse=True)
def without_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_filesystem, "rename_with_flags", lambda *_: False)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "edited", b"old")
    return workspace


@pytest.mark.parametrize("best_effort", [False, True])
def test_who_takes_the_name_between_two_steps_loses_nothing_and_no_other_does(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, *, best_effort: bool
) -> None:
    """And what was written in the last moment before, which no checkpoint has yet, is kept."""
    link, rename = os.link, os.rename

    def editing(source: Any, target: Any, **options: Any) -> None:
        if source == b"edited":
            fill(workspace / "edited", b"in the last moment")
        rename(source, target, **options)

    def taking(source: Any, target: Any, **options: Any) -> None:
        if target == b"edited" and not (workspace / "edited").exists():
            fill(workspace / "edited", b"by a person")
        link(source, target, **options)

    with composed(workspace) as opened:
        first = opened.save()
        fill(workspace / "edited", b"by the agent")
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", editing)
            patch.setattr(os, "link", taking)
            with contextlib.suppress(HoldfastError):
                opened.restore(first.id, best_effort=best_effort)
        held = _contents(opened, b"edited")
    assert (workspace / "edited").read_bytes() == b"by a person"
    assert {b"old", b"by the agent", b"in the last moment"} <= held
    assert debris(workspace) == []


def _contents(opened: Composed, path: bytes) -> set[bytes]:
    """What any checkpoint has there."""
    vault = opened.engine.vault
    entries = [
        entry_at(vault.load_tree, made.tree, path) for made in all_checkpoints(vault.catalog)
    ]
    files = [entry for entry in entries if isinstance(entry, FileEntry)]
    return {b"".join(read_content(vault.objects, file)) for file in files}


@pytest.mark.parametrize("step", range(1, 7))
def test_a_death_between_two_steps_is_recovered_from(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """A link that is refused, as the name is taken; then the four steps, and the one after them."""
    with composed(workspace) as opened:
        first = opened.save()
    fill(workspace / "edited", b"by the agent")
    calls: list[str] = []

    def live(call: Call | None = None) -> None:
        if len(calls) >= step:
            raise _Dead

    def counted(name: str) -> Callable[..., None]:
        real = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> None:
            if arguments[0] in (b"0", b"edited", b"0.aside"):
                calls.append(name)
            live()
            if arguments[0] == b"edited":
                fill(workspace / "edited", b"in the last moment")
            real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("rename", "link", "unlink"):
            patch.setattr(os, name, counted(name))
        dying = WatchedFilesystem(live)
        with contextlib.suppress(_Dead), composed(workspace, fs=dying.as_port()) as opened:
            opened.restore(first.id)
    assert calls[: min(step, 5)] == ["link", "rename", "link", "unlink", "rename"][:step]
    with composed(workspace) as opened:
        opened.engine.recover()
        assert (workspace / "edited").read_bytes() == b"old"
        opened.undo()
    before = b"by the agent" if step <= 2 else b"in the last moment"
    assert (workspace / "edited").read_bytes() == before
    assert debris(workspace) == []

"""Git packs and prunes in the background, automatically: a checkpoint taken meanwhile is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.components.git import keep_alive as keeping
from tests.components.git.repositories import commit, git

pytestmark = pytest.mark.requirement("GT-1", "GT-6")


def test_objects_that_git_packs_while_they_are_synced(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir
    packed: list[bytes] = []

    def scandir(path: Any = ".") -> Any:
        if not isinstance(path, bytes) or b"/objects/" not in path:
            return real(path)
        entries: Iterator[Any] = iter(list(real(path)))
        if not packed:
            packed.append(path)
            # Not `gc`: it packs references too, at its own pace beside the capture, which begins
            # again for each that moves.
            git(place, "repack", "-a", "-d", "-q")
        return nullcontext(entries)

    commit(place, "code.txt", "an agent was here\n")
    monkeypatch.setattr(os, "scandir", scandir)
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("while git packs")
        assert packed
        assert outcome.degraded == ()
        assert not outcome.checkpoint.partial


def test_a_directory_that_git_removes_while_a_commit_is_kept_alive(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = keeping.keep, []

    def keep(*arguments: Any) -> str:
        calls.append(arguments)
        if len(calls) == 1:
            raise FileNotFoundError(2, "No such file or directory")
        return real(*arguments)

    monkeypatch.setattr(keeping, "keep", keep)
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("while git prunes")
        assert len(calls) == 2
        assert outcome.degraded == ()
        assert not outcome.checkpoint.partial


def test_git_that_never_comes_to_rest_costs_its_own_state_only(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(*arguments: Any) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(keeping, "keep", keep)
    with SessionCheckpointer(place, "s") as session:
        outcome = session.save_checkpoint("while git prunes for ever")
        assert any("git was changing the repository" in text for text in outcome.degraded)
        assert outcome.checkpoint.partial

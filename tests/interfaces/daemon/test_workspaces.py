"""The workspaces that the daemon keeps open: one user at a time, and the timer knows each use."""

from __future__ import annotations

import os
import shutil
import threading
from datetime import datetime
from pathlib import Path

import pytest

from holdfast.api.automation import open_watcher
from holdfast.app.automation.watched_workspace import WatchedWorkspace
from holdfast.domain.errors import StoreDamaged, WorkspaceTrouble
from holdfast.interfaces.daemon.workspaces import Workspaces
from holdfast.interfaces.hooks.runtime_files import problem_log

pytestmark = pytest.mark.requirement("AU-4", "AU-6")


@pytest.fixture
def kept(workspace: Path) -> Workspaces:
    kept = Workspaces(
        open_watcher(),
        os.environ,
        problem_log(os.environ),
        run_in_background=lambda work: work(),
    )
    kept.work_in(str(workspace), lambda watched: None)
    return kept


def test_work_that_is_repeated_after_a_repair_wakes_the_timer(
    kept: Workspaces, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = list[str]()
    monkeypatch.setattr(kept, "wake_timer", lambda: steps.append("timer"))

    def work(watched: WatchedWorkspace) -> str:
        steps.append("work")
        if steps == ["work"]:
            raise StoreDamaged("the store was repaired")
        return "done"

    assert kept.work_in(str(workspace), work) == "done"
    assert steps == ["work", "work", "timer"]
    kept.close()


def test_the_last_save_of_a_workspace_excludes_its_other_users(
    kept: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    could_use = list[bool]()

    def finish(watched: WatchedWorkspace) -> None:
        def use() -> None:
            with kept.if_free(watched) as free:
                could_use.append(free)

        other = threading.Thread(target=use)
        other.start()
        other.join()

    monkeypatch.setattr(WatchedWorkspace, "finish", finish)
    kept.close()
    assert could_use == [False]


@pytest.mark.parametrize("deleted", [True, False])
def test_a_deleted_workspace_is_closed_and_not_tried_again(
    kept: Workspaces, workspace: Path, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    ended = threading.Event()

    def fail(watched: WatchedWorkspace, local: datetime) -> None:
        ended.set()
        raise WorkspaceTrouble("the file system failed")

    monkeypatch.setattr(WatchedWorkspace, "consider", fail)
    monkeypatch.setattr(kept, "until_due_s", lambda: 0.0)
    if deleted:
        shutil.rmtree(workspace)
    kept.watch_triggers(ended)
    assert [one.workspace for one in kept.all()] == ([] if deleted else [workspace])
    kept.close()

"""Long work reports its progress to a listener, and does nothing without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.repair.check import run_checks
from tests.support.hostile_trees import fill
from tests.support.progress_log import ProgressLog

FILES = 130
SESSION = SessionId("s")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def opened(workspace: Path) -> OpenWorkspace:
    for number in range(FILES):
        fill(workspace / f"d{number % 3}" / f"file{number}", b"%d" % number * 10)
    fill(workspace / "large", b"0123456789" * 300_000)
    fill(workspace / "node_modules" / "ignored", b"x")
    return open_workspace(workspace, create=True)


def _save(opened: OpenWorkspace) -> ProgressLog:
    heard = ProgressLog()
    with opened.engine.vault.progress.reporting_to(heard):
        opened.engine.save(SESSION, make_intent("why"))
    return heard


@pytest.mark.requirement("CL-2")
def test_a_first_save_is_counted_and_then_reported_in_shares(opened: OpenWorkspace) -> None:
    with opened:
        heard = _save(opened)
        assert heard.phases["counting files"][-1] == (100, None)
        heard.require_shares("reading files", FILES + 1)
        assert heard.moved[-1] >= 3_000_000
        assert list(heard.phases)[-1] == "storing"


@pytest.mark.requirement("CL-2")
def test_a_later_save_goes_by_what_the_last_one_found(
    opened: OpenWorkspace, workspace: Path
) -> None:
    with opened:
        _save(opened)
        for number in range(0, FILES, 2):
            fill(workspace / "new" / f"file{number}", b"new")
        heard = _save(opened)
        assert "counting files" not in heard.phases
        heard.require_shares("reading files", FILES + 1)
    with open_workspace(workspace, create=False) as again:
        heard = _save(again)
        assert "counting files" not in heard.phases
        heard.require_shares("reading files", FILES + 1 + FILES // 2)


@pytest.mark.requirement("CL-2")
def test_a_restore_tells_each_of_its_phases_in_shares(
    opened: OpenWorkspace, workspace: Path
) -> None:
    with opened:
        _save(opened)
        for number in range(FILES):
            (workspace / f"d{number % 3}" / f"file{number}").unlink()
        heard = ProgressLog()
        with opened.engine.vault.progress.reporting_to(heard):
            opened.engine.restore(opened.engine.restore_request(SESSION, "HEAD"))
        for phase in ("writing files", "replacing files", "verifying files"):
            heard.require_shares(phase, FILES)
        assert [p for p in heard.phases if p.endswith("files")] == [
            *("reading files", "writing files", "replacing files", "verifying files")
        ]
        assert heard.moved[-1] == sum(len(str(number)) * 10 for number in range(FILES))


@pytest.mark.requirement("CL-2")
def test_a_check_of_every_byte_is_reported_in_shares(opened: OpenWorkspace) -> None:
    with opened:
        _save(opened)
        heard = ProgressLog()
        assert list(run_checks(opened.engine.vault, data=True, progress=heard)) == []
        heard.require_shares("checking objects", opened.engine.vault.objects.count())


@pytest.mark.requirement("PF-2")
def test_nothing_is_counted_without_a_listener(
    opened: OpenWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("counted for nobody")

    monkeypatch.setattr("holdfast.engine.scan.scan_meter.ScanMeter.__init__", fail)
    with opened:
        opened.engine.save(SESSION, make_intent("why"))


def test_after_the_work_nothing_is_reported(opened: OpenWorkspace) -> None:
    with opened:
        heard = _save(opened)
        assert not opened.engine.vault.progress.live
        phases = dict(heard.phases)
        opened.engine.save(SESSION, make_intent("again"))
        assert heard.phases == phases

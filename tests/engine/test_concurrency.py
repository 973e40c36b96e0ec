"""Threads and processes on one workspace at once, and sessions that know nothing of each other."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import Busy, NothingToUndo, UnknownReference
from tests.support.composition import configure
from tests.support.forking_server import ROOT
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot, line_end
from tests.support.tree_hash import debris

pytestmark = pytest.mark.requirement("CP-8")

PROCESSES = 4
THREADS = 4
ROUNDS = 10


def _run_processes(workspace: Path, processes: int, threads: int, rounds: int) -> list[str]:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.busy_process"]
            + [str(argument) for argument in (workspace, seed, threads, rounds)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(processes)
    ]
    lines: list[str] = []
    complaints: list[str] = []
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        out, err = process.communicate()
        lines += out.splitlines()
        if process.returncode or err:
            complaints.append(err)
    assert complaints == []
    return lines


def test_what_was_acknowledged_under_load_is_all_there_and_restores_exactly(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    acknowledged = [json.loads(line) for line in _run_processes(workspace, 4, 4, ROUNDS)]
    assert len(acknowledged) > PROCESSES * THREADS
    assert debris(workspace) == []
    for row in acknowledged:
        with SessionCheckpointer.load(workspace, row["session"]) as session:
            snapshot = get_snapshot(session, row["id"])
            assert [list(pair) for pair in snapshot.manifest] == row["files"]
            for artifact in snapshot.artifacts:
                artifact.read_bytes()
    for row in acknowledged[::5]:
        with SessionCheckpointer.load(workspace, row["session"]) as session:
            session.restore(row["id"])
            found = {
                str(path.relative_to(workspace)): path.read_bytes()
                for path in workspace.rglob("*")
                if path.is_file() and ".holdfast" not in path.parts
            }
            expected = {a.path: a.read_bytes() for a in get_snapshot(session, row["id"]).artifacts}
            assert found == expected
    with open_workspace(workspace, create=False) as opened:
        assert list(opened.engine.vault.objects.check(data=True)) == []
        assert list(opened.engine.vault.catalog.check()) == []


def test_processes_that_meet_a_new_workspace_at_once_share_one_store(tmp_path: Path) -> None:
    for number in range(3):
        workspace = tmp_path / f"project-{number}"
        fill(workspace / "dir-0/file-0", b"x")
        acknowledged = [json.loads(line) for line in _run_processes(workspace, 6, 1, 3)]
        for row in acknowledged:
            with SessionCheckpointer.load(workspace, row["session"]) as session:
                assert get_snapshot(session, row["id"]).id == row["id"]


def test_threads_with_checkpointers_of_their_own_get_along(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"x")
    made: dict[str, list[str]] = {}
    failures: list[Exception] = []

    def work(name: str) -> None:
        try:
            with SessionCheckpointer(workspace, name) as session:
                made[name] = [session.checkpoint(f"{name} {turn}") for turn in range(8)]
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"session-{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for name, ids in made.items():
        with SessionCheckpointer.load(workspace, name) as session:
            assert [summary.id for summary in session.summaries()] == ids[::-1]


def test_a_store_that_another_process_holds_is_busy_after_the_configured_wait(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"x")
    configure(workspace, lock_timeout=0.05)
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("before")
        with (
            open_workspace(workspace, create=False, purpose="a long job") as holder,
            holder.engine.vault.lock.hold(),
        ):
            with pytest.raises(Busy, match="a long job") as refused:
                session.checkpoint("while it is held")
            assert len(session.history()) == 1
        assert refused.value.hint
        session.checkpoint("afterwards")
        assert session.checkpoint_count == 2


def test_a_session_cannot_see_or_touch_the_checkpoints_of_another(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"theirs")
    with (
        SessionCheckpointer(workspace, "theirs") as theirs,
        SessionCheckpointer(workspace, "mine") as mine,
    ):
        first = theirs.checkpoint("theirs", name="named")
        fill(workspace / "file", b"changed")
        second = theirs.checkpoint("theirs again")
        theirs.restore(first)
        fill(workspace / "file", b"mine")
        own = mine.checkpoint("mine")
        for reference in (first, second, first[:12], "named", str(line_end(theirs))):
            assert mine.get(reference) is None
            with pytest.raises(UnknownReference):
                mine.restore(reference)
            with pytest.raises(UnknownReference):
                mine.plan_restore(reference)
            with pytest.raises(UnknownReference):
                mine.diff(reference, own)
        with pytest.raises(NothingToUndo):
            mine.undo()
        assert mine.get_by_name("named") is None
        assert [snapshot.id for snapshot in mine.history(None, records=True)] == [own]
        assert mine.checkpoint_count == 1
        assert get_snapshot(mine, "initial").id == own
        assert get_snapshot(mine, own).parent is None
        assert (workspace / "file").read_bytes() == b"mine"

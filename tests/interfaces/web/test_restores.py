"""Restores, rounds and dialogs over HTTP, checked on disk."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.api.restores import Restores
from holdfast.interfaces.web import operations as operations_module
from holdfast.interfaces.web.operations import Operation, Operations
from tests.behind_the_api import engine_of, store_of
from tests.interfaces.cli.command_line import run
from tests.interfaces.web.client import PATIENCE_S, Client
from tests.support.hostile_trees import fill
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("WB-1")

SESSION = "/api/sessions/work"
CHECKPOINTS = f"{SESSION}/checkpoints"


def test_a_restore_is_previewed_carried_out_undone_and_redone(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    plan = client.get(f"{CHECKPOINTS}/start/rollback/preview")
    assert plan["dry_run"]
    assert sorted(plan["affected_files"]) == ["new.txt", "src/app.py"]
    assert {(one["type"], one["path"]) for one in plan["operations"]} == {
        ("delete", "new.txt"),
        ("restore", "src/app.py"),
    }
    assert (workspace / "new.txt").exists()
    done = client.post(f"{CHECKPOINTS}/start/rollback", {"plan": plan["plan"]})
    assert (done["verified"], done["checkpoint_id"]) == (True, plan["checkpoint_id"])
    assert sorted(done["affected_files"]) == ["new.txt", "src/app.py"]
    assert not (workspace / "new.txt").exists()
    assert (workspace / "src/app.py").read_bytes() == b"print(1)\n"
    client.post(f"{SESSION}/undo")
    assert (workspace / "src/app.py").read_bytes() == b"print(2)\n"
    client.post(f"{SESSION}/redo")
    assert (workspace / "src/app.py").read_bytes() == b"print(1)\n"
    undone = client.post("/api/undo")
    assert undone["undone"]["type"] == "restore"
    assert (workspace / "new.txt").read_bytes() == b"new\n"
    assert client.post("/api/redo")["dry_run"] is False
    assert not (workspace / "new.txt").exists()


def test_a_dry_run_of_undo_changes_nothing(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    client.post(f"{CHECKPOINTS}/start/rollback")
    for path in (f"{SESSION}/undo", "/api/undo"):
        assert client.post(path, {"dry_run": True})["dry_run"]
    assert not (workspace / "new.txt").exists()


@pytest.mark.requirement("RB-7")
def test_paths_and_hunks_are_restored_alone(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    text = [b"%d\n" % n for n in range(30)]
    fill(workspace / "long.txt", b"".join(text))
    session.checkpoint("long", name="long")
    text[3], text[25] = b"three\n", b"twenty-five\n"
    fill(workspace / "long.txt", b"".join(text))
    fill(workspace / "notes.txt", b"mine\n")
    [file] = client.get(f"{CHECKPOINTS}/long/diff?path=long.txt")["files"]
    first, second = file["hunks"]
    place = f"{CHECKPOINTS}/long/rollback"
    chosen = {"paths": ["long.txt"], "hunks": [second["id"]]}
    assert client.post(f"{place}/preview", chosen)["affected_files"] == ["long.txt"]
    client.post(place, chosen)
    kept = (workspace / "long.txt").read_bytes()
    assert b"three\n" in kept
    assert b"twenty-five\n" not in kept
    client.post(place, {"paths": ["long.txt"]})
    assert b"three\n" not in (workspace / "long.txt").read_bytes()
    assert (workspace / "notes.txt").read_bytes() == b"mine\n"
    assert first["number"] == 1


@pytest.mark.requirement("RB-8")
def test_a_preview_that_no_longer_holds_is_refused(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    plan = client.get(f"{CHECKPOINTS}/start/rollback/preview")["plan"]
    fill(workspace / "notes.txt", b"changed meanwhile\n")
    reply = client("POST", f"{CHECKPOINTS}/start/rollback", {"plan": plan})
    assert reply.status == 409
    assert "changed since the preview" in reply.problem["detail"]
    assert (workspace / "new.txt").exists()


def _meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Something happens after a restore was looked up, and before it has the store's lock."""
    look = Restores.working_agents

    def working_agents(self: Restores, request: Any) -> tuple[str, ...]:
        found = look(self, request)
        monkeypatch.setattr(Restores, "working_agents", look)
        act()
        return found

    monkeypatch.setattr(Restores, "working_agents", working_agents)


@pytest.mark.requirement("RB-8")
def test_a_change_while_a_restore_waits_for_its_turn_is_noticed(
    client: Client,
    session: SessionCheckpointer,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = client.get(f"{CHECKPOINTS}/start/rollback/preview")["plan"]
    _meanwhile(monkeypatch, lambda: fill(workspace / "notes.txt", b"changed\n"))
    reply = client("POST", f"{CHECKPOINTS}/start/rollback", {"plan": plan})
    assert reply.status == 409
    assert "changed since the preview" in reply.problem["detail"]
    assert (workspace / "new.txt").exists()


def test_a_checkpoint_that_is_deleted_while_its_restore_waits_is_not_restored(
    client: Client,
    session: SessionCheckpointer,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = describe(workspace)
    _meanwhile(monkeypatch, lambda: client("DELETE", f"{CHECKPOINTS}/start"))
    reply = client("POST", f"{CHECKPOINTS}/start/rollback")
    assert reply.status == 404
    assert "deleted in the meantime" in reply.problem["detail"]
    assert describe(workspace) == before


@pytest.mark.parametrize("other", ["browser", "command line"])
def test_two_who_undo_the_last_change_at_once_undo_it_once(
    client: Client,
    session: SessionCheckpointer,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    other: str,
) -> None:
    client.post(f"{CHECKPOINTS}/start/rollback")

    def undo() -> None:
        if other == "browser":
            client.post("/api/undo")
        else:
            assert run("-C", str(workspace), "undo", "--yes", "--json").status == 0

    _meanwhile(monkeypatch, undo)
    reply = client("POST", "/api/undo")
    assert reply.status == 409
    assert "changed in the meantime" in reply.problem["detail"]
    assert (workspace / "new.txt").read_bytes() == b"new\n"
    assert client.post("/api/redo")["dry_run"] is False


def test_two_browsers_that_restore_at_once_leave_one_of_the_states(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    newest, _, oldest = [one["id"] for one in client.get(CHECKPOINTS)]
    states = []
    for wanted in (oldest, newest):
        client.post(f"{CHECKPOINTS}/{wanted}/rollback")
        states.append(describe(workspace))
    statuses: list[int] = []

    def restore(wanted: str) -> None:
        statuses.append(client("POST", f"{CHECKPOINTS}/{wanted}/rollback").status)

    threads = [threading.Thread(target=restore, args=(one,)) for one in (oldest, newest) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 202, 409, 503}
    with store_of(session).hold():  # when everything has ended
        assert describe(workspace) in states
    assert client.post("/api/check")["ok"]


def test_long_work_goes_on_and_is_found_by_its_address(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    headers = {"Prefer": "respond-async"}
    with store_of(session).hold():
        reply = client("POST", f"{CHECKPOINTS}/start/rollback", headers=headers)
        assert reply.status == 202
        place = reply.headers["location"]
        found = client.get(place)
        assert (found["status"], found["kind"]) == ("running", "restore")
    while found["status"] == "running":
        found = client.get(place)
    assert found["status"] == "done"
    assert found["result"]["verified"]
    assert not (workspace / "new.txt").exists()
    assert client("GET", "/api/operations/none").status == 404


def test_operations_that_overlap_leave_no_listener_behind(session: SessionCheckpointer) -> None:
    operations = Operations(iter("ab").__next__)
    first, second = (Operation(name, "check", None, lambda one: None) for name in "ab")
    outer, inner = ExitStack(), ExitStack()
    outer.enter_context(operations.reporting(session.opened, first))
    inner.enter_context(operations.reporting(session.opened, second))
    assert engine_of(session).vault.progress.live
    outer.close()
    inner.close()
    assert not engine_of(session).vault.progress.live


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../b", ""])
def test_no_path_leads_out_of_the_workspace(
    client: Client, session: SessionCheckpointer, path: str
) -> None:
    reply = client("POST", f"{CHECKPOINTS}/start/rollback", {"paths": [path]})
    assert reply.status == 400


def test_a_round_is_approved_and_reset(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    assert client.get(f"{SESSION}/approval")["has_unapproved"]
    approved = client.post(f"{SESSION}/approve", {"message": "good"})
    assert approved["commits_approved"] == 3
    assert not client.get(f"{SESSION}/approval")["has_unapproved"]
    fill(workspace / "notes.txt", b"bad\n")
    assert client.get(f"{SESSION}/approval")["unsaved"]
    plan = client.get(f"{SESSION}/reset/preview")
    assert plan["affected_files"] == ["notes.txt"]
    done = client.post(f"{SESSION}/reset", {"plan": plan["plan"]})
    assert done["reset_to"] == approved["approved_commit"]
    assert (workspace / "notes.txt").read_bytes() == b"one\n"
    rounds = client.get(f"{SESSION}/rounds")
    assert [one["status"] for one in rounds] == ["merged", "abandoned", "active"]


def test_a_dialog_client_gets_exactly_its_words(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    dialog = "/api/dialogs/work"
    state = client.get(f"{dialog}/session")
    assert state == {
        "active_session": "session_1",
        "session_ref": "refs/heads/session_1",
        "has_unapproved": True,
        "last_approved_at": None,
    }
    approved = client.post(f"{dialog}/approve", {"message": "Feature complete"})
    assert approved.keys() == {"approved_commit", "new_session", "commits_approved"}
    state = client.get(f"{dialog}/session")
    assert (state["active_session"], state["session_ref"]) == (None, None)
    assert state["last_approved_at"] is not None
    fill(workspace / "notes.txt", b"bad\n")
    back = client.post(f"{dialog}/reset")
    assert back.keys() == {"reset_to", "new_session"}
    assert (workspace / "notes.txt").read_bytes() == b"one\n"
    restored = client.post(f"{dialog}/restore", {"checkpoint_id": approved["approved_commit"]})
    assert restored.keys() == {"restored_to", "new_checkpoint"}
    fill(workspace / "notes.txt", b"good\n")
    client.post(f"{dialog}/approve")


@pytest.mark.requirement("GT-3")
def test_checkpoints_are_committed_to_git(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    git = ["git", "-C", str(workspace)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "config", "user.email", "a@b"], check=True)
    subprocess.run([*git, "config", "user.name", "A"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "start"], check=True)
    fill(workspace / "accepted.txt", b"1\n")
    session.checkpoint("to accept")
    plan = client.post(f"{SESSION}/accept", {"dry_run": True})
    assert (plan["dry_run"], plan["commit"]) == (True, None)
    done = client.post(f"{SESSION}/accept", {"message": "All of it"})
    log = subprocess.run([*git, "log", "-1", "--format=%H %s"], capture_output=True, text=True)
    assert log.stdout.split() == [done["commit"], "All", "of", "it"]


def test_nothing_to_undo_is_not_found(client: Client, session: SessionCheckpointer) -> None:
    reply = client("POST", f"{SESSION}/undo")
    assert (reply.status, reply.problem["code"]) == (404, "nothing_to_undo")


def test_only_so_much_work_runs_at_once(
    client: Client, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations_module, "_MOST_RUNNING", 3)
    path, headers = "/api/sessions/work/checkpoints", {"Prefer": "respond-async"}
    with store_of(session).hold():
        begun = [
            client("POST", path, {"reasoning": f"number {number}"}, headers=headers)
            for number in range(3)
        ]
        refused = client("POST", path, {"reasoning": "too many"}, headers=headers)
    assert [reply.status for reply in begun] == [202] * 3
    assert (refused.status, refused.problem["code"]) == (503, "busy")
    assert refused.headers["retry-after"]
    for reply in begun:
        assert client.server.operations.get(reply.json["id"]).finished.wait(PATIENCE_S)
        assert client.get(reply.headers["location"])["status"] == "done"
    client.post(path, {"reasoning": "there is room again"}, 201)

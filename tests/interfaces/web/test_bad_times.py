"""The workspace or its store changes under the server: requests get a sentence or an answer."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.behind_the_api import store_of
from tests.interfaces.web.client import Client
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("WB-1")

SESSION = "/api/sessions/work"
CHECKPOINTS = f"{SESSION}/checkpoints"
READS = (
    "/api/sessions",
    CHECKPOINTS,
    f"{CHECKPOINTS}/timeline",
    f"{CHECKPOINTS}/HEAD",
    f"{CHECKPOINTS}/HEAD/diff",
    f"{CHECKPOINTS}/HEAD/diff?with=before",
    f"{CHECKPOINTS}/HEAD/rollback/preview",
    f"{CHECKPOINTS}/HEAD/raw?path=notes.txt",
    f"{SESSION}/approval",
    "/api/status",
    "/api/overview",
    "/api/doctor",
    "/api/search?q=first",
)


def _replies(client: Client) -> dict[str, int]:
    found = {}
    for path in READS:
        reply = client("GET", path)
        if reply.status >= 400:
            assert reply.problem["code"] != "error", (path, reply)
        found[path] = reply.status
    return found


def test_a_workspace_that_was_moved(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    assert set(_replies(client).values()) == {200}
    workspace.rename(workspace.with_name("moved"))
    statuses = _replies(client)
    assert statuses[f"{CHECKPOINTS}/HEAD/diff"] in (404, 409)
    reply = client("POST", CHECKPOINTS, {"reasoning": "nowhere"})
    assert reply.status in (404, 409)
    assert reply.problem["detail"]
    workspace.with_name("moved").rename(workspace)
    assert set(_replies(client).values()) == {200}


def test_another_project_at_the_place_of_one_that_was_moved_is_left_alone(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    assert set(_replies(client).values()) == {200}
    moved = workspace.with_name("moved")
    workspace.rename(moved)
    with SessionCheckpointer(moved, "work") as there:
        there.checkpoint("in its new place")
    fill(workspace / "precious.txt", b"of another project\n")
    for method, path in (("GET", CHECKPOINTS), ("POST", f"{CHECKPOINTS}/start/rollback")):
        reply = client(method, path)
        assert (reply.status, reply.problem["code"]) == (404, "not_found")
    assert [one.name for one in workspace.iterdir()] == ["precious.txt"]
    assert client.get("/api/sessions") == []
    [known] = client.get("/api/workspaces")["workspaces"]
    place = f"/api/workspaces/{known['id']}"
    assert len(client.get(CHECKPOINTS.replace("/api", place))) == 4


def test_a_store_that_is_gone(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    assert set(_replies(client).values()) == {200}
    shutil.rmtree(session.opened.store_directory)
    assert _replies(client)[CHECKPOINTS] == 500
    said = client.get("/api/doctor")
    assert not said["ok"]
    assert "is missing" in said["findings"][0]["finding"]
    assert (workspace / "notes.txt").read_bytes() == b"one\n"


def test_a_store_that_another_process_keeps_busy_does_not_stop_the_server(
    client: Client, session: SessionCheckpointer
) -> None:
    changes: list[int] = []

    def change() -> None:
        changes.append(client("PUT", f"{CHECKPOINTS}/start", {"add_tags": ["later"]}).status)

    def look() -> None:
        changes.append(client("GET", f"{CHECKPOINTS}/start/diff").status)

    threads = [threading.Thread(target=one) for one in (change, look) * 40]
    with store_of(session).hold():
        for thread in threads:
            thread.start()
        waiting = client.server.waiting.statistics
        while waiting().borrowed_tokens + waiting().tasks_waiting < len(threads):
            assert client("GET", "/livez", token=False).status == 200
        for path in ("/", "/readyz", "/api/sessions", CHECKPOINTS, f"{CHECKPOINTS}/start"):
            assert client("GET", path).status == 200
        assert changes == []
    for thread in threads:
        thread.join()
    assert changes == [200] * len(threads)


def test_a_catalog_that_is_damaged_in_place(client: Client, session: SessionCheckpointer) -> None:
    """What the server has read before may still be there: a probe must not be fooled by that."""
    assert set(_replies(client).values()) == {200}
    for file in session.opened.store_directory.glob("catalog.db*"):
        if not file.name.endswith("-shm"):
            file.write_bytes(bytes(file.stat().st_size))
    assert client("GET", "/livez", token=False).status == 200
    assert client("GET", "/readyz", token=False).status == 503
    reply = client("POST", CHECKPOINTS, {"reasoning": "nowhere"})
    assert (reply.status, reply.problem["code"]) == (500, "store_damaged")
    assert client("GET", "/metrics").status == 200


def test_a_checkpoint_that_is_purged_while_it_is_looked_at(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    made = client.get(f"{CHECKPOINTS}/start")
    fill(workspace / "notes.txt", b"another\n")
    session.checkpoint("another")
    session.purge("start", force=True)
    for path in ("", "/diff", "/file?path=notes.txt", "/rollback/preview"):
        reply = client("GET", f"{CHECKPOINTS}/{made['id']}{path}")
        assert (reply.status, reply.problem["code"]) == (404, "unknown_reference")
    assert client("POST", f"{CHECKPOINTS}/{made['id']}/rollback").status == 404
    assert len(client.get(CHECKPOINTS)) == 3

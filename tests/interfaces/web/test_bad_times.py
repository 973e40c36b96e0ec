"""The workspace or its store changes under the server: requests get a sentence or an answer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
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


def test_a_store_that_is_gone(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    assert set(_replies(client).values()) == {200}
    shutil.rmtree(session.opened.store_directory)
    statuses = _replies(client)
    assert statuses[CHECKPOINTS] == 500
    assert statuses["/api/doctor"] == 500
    assert (workspace / "notes.txt").read_bytes() == b"one\n"


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

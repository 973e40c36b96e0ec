"""Three small clients, each written to one published document, work against the server.

Each uses the routes, methods and fields of its document and nothing else of ours, apart from the
token. Names are in snake_case.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.web.client import Client
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("WB-1")


class SupervisorClient:
    """Sessions with checkpoints and rollback: list, create, show, annotate, delete, diff, plan."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._base = f"/api/sessions/{session_id}/checkpoints"

    def list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get(self._base)
        return found

    def create(self, name: str, annotation: str) -> dict[str, Any]:
        return self._checkpoint(
            self._client.post(self._base, {"name": name, "annotation": annotation}, 201)
        )

    def show(self, checkpoint_id: str) -> dict[str, Any]:
        return self._checkpoint(self._client.get(f"{self._base}/{checkpoint_id}"))

    def annotate(self, checkpoint_id: str, annotation: str) -> None:
        self._client.put(f"{self._base}/{checkpoint_id}", {"annotation": annotation})

    def delete(self, checkpoint_id: str) -> None:
        assert self._client("DELETE", f"{self._base}/{checkpoint_id}").status in (200, 204)

    def diff(self, checkpoint_id: str, other: str | None = None) -> Any:
        end = "" if other is None else f"/{other}"
        return self._client.get(f"{self._base}/{checkpoint_id}/diff{end}")

    def plan(self, checkpoint_id: str) -> dict[str, Any]:
        plan: dict[str, Any] = self._client.get(f"{self._base}/{checkpoint_id}/rollback/preview")
        assert plan["checkpoint_id"] == checkpoint_id
        for operation in plan["operations"]:
            assert operation["type"] in ("restore", "delete", "create")
            assert isinstance(operation["path"], str)
        assert all(isinstance(warning, str) for warning in plan["warnings"])
        return plan

    def rollback(self, checkpoint_id: str) -> None:
        assert self._client("POST", f"{self._base}/{checkpoint_id}/rollback").status == 200

    @staticmethod
    def _checkpoint(found: dict[str, Any]) -> dict[str, Any]:
        assert isinstance(found["id"], str)
        assert isinstance(found["session_id"], str)
        assert found["type"] in ("auto", "manual")
        assert found["message_index"] is None or isinstance(found["message_index"], int)
        datetime.fromisoformat(found["created_at"])
        assert isinstance(found["size_bytes"], int)
        for file in found["files"]:
            assert isinstance(file["path"], str)
            assert isinstance(file["mode"], int)
            assert isinstance(file["hash"], str)
        git = found["git"]
        if git is not None:
            assert isinstance(git["branch"], str)
            assert isinstance(git["has_uncommitted_changes"], bool)
            assert isinstance(git["staged_files"], list)
        return found


def test_a_client_of_session_checkpoints_works(client: Client, workspace: Path) -> None:
    supervisor = SupervisorClient(client, "supervised")
    first = supervisor.create("start", "a good stopping point")
    assert (first["name"], first["annotation"]) == ("start", "a good stopping point")
    fill(workspace / "notes.txt", b"mistake\n")
    fill(workspace / "made-later.txt", b"x")
    assert {one["path"] for one in supervisor.diff(first["id"])["files"]} == {
        "notes.txt",
        "made-later.txt",
    }
    second = supervisor.create("mistake", "")
    assert supervisor.diff(first["id"], second["id"])["files"]
    assert [one["id"] for one in supervisor.list()] == [second["id"], first["id"]]
    supervisor.annotate(first["id"], "before the mistake")
    assert supervisor.show(first["id"])["annotation"] == "before the mistake"
    plan = supervisor.plan(first["id"])
    assert sorted(plan["affected_files"]) == ["made-later.txt", "notes.txt"]
    supervisor.rollback(first["id"])
    assert (workspace / "notes.txt").read_bytes() == b"one\n"
    assert not (workspace / "made-later.txt").exists()
    supervisor.delete(second["id"])
    assert second["id"] not in [one["id"] for one in supervisor.list()]


class DialogClient:
    """Approval of a dialog's work, and the events of its user interface."""

    def __init__(self, client: Client, dialog_id: str) -> None:
        self._client, self._base = client, f"/api/dialogs/{dialog_id}"

    def session(self) -> Any:
        return self._client.get(f"{self._base}/session")

    def act(self, action: str, body: Any = None) -> Any:
        return self._client.post(f"{self._base}/{action}", body)


def test_a_client_of_dialogs_works(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    dialog = DialogClient(client, "work")
    assert dialog.session()["has_unapproved"] is True
    approved = dialog.act("approve", {"message": "Feature complete"})
    assert approved["commits_approved"] == 3
    assert approved["new_session"] == "session_2"
    assert dialog.session() == {
        "active_session": None,
        "session_ref": None,
        "has_unapproved": False,
        "last_approved_at": dialog.session()["last_approved_at"],
    }
    before = session.user_message("Add a database").checkpoint
    fill(workspace / "db.py", b"import sqlite3\n")
    assert dialog.session()["active_session"] == "session_2"
    restored = dialog.act("restore", {"checkpoint_id": before})
    assert restored["restored_to"] == before
    assert restored["new_checkpoint"] != before
    assert not (workspace / "db.py").exists()
    fill(workspace / "db.py", b"import sqlite3\n")
    back = dialog.act("reset")
    assert back["reset_to"] == approved["approved_commit"]
    assert not (workspace / "db.py").exists()


class SnapshotClient:
    """Snapshots with intent: summaries, one in full, which paths differ, and the timeline."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._base = f"/api/sessions/{session_id}/checkpoints"

    def summaries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get(self._base)
        for one in found:
            datetime.fromisoformat(one["timestamp"])
            assert len(one["reasoning_preview"]) <= 80
            assert 0.0 <= one["confidence"] <= 1.0
            assert isinstance(one["file_count"], int)
            assert one["parent"] is None or isinstance(one["parent"], str)
            assert "checkpoint_name" in one
        return found

    def snapshot(self, checkpoint_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"{self._base}/{checkpoint_id}")
        datetime.fromisoformat(found["timestamp"])
        assert found["intent"].keys() >= {
            "reasoning",
            "goal_id",
            "task_id",
            "tool_calls",
            "confidence",
            "checkpoint_name",
        }
        manifest = dict(found["manifest"])
        assert {one["path"]: one["content_hash"] for one in found["artifacts"]} == manifest
        assert {one["status"] for one in found["artifacts"]} == {"passed"}
        return found

    def diff(self, **ends: str) -> Any:
        query = "&".join(f"{key}={value}" for key, value in ends.items())
        return self._client.get(f"{self._base}/diff?{query}")

    def timeline(self) -> Any:
        return self._client.get(f"{self._base}/timeline")


def test_a_client_of_snapshots_works(client: Client, session: SessionCheckpointer) -> None:
    snapshots = SnapshotClient(client, "work")
    third, second, first = snapshots.summaries()
    assert (first["checkpoint_name"], first["parent"]) == ("start", None)
    assert second["parent"] == first["id"]
    assert [one["file_count"] for one in (first, second, third)] == [2, 2, 3]
    shown = snapshots.snapshot(second["id"])
    assert (shown["intent"]["reasoning"], shown["intent"]["confidence"]) == ("second", 0.95)
    assert snapshots.diff() == {"new.txt": "added", "src/app.py": "modified"}
    assert snapshots.diff(from_id=first["id"], to_id=second["id"]) == {"src/app.py": "modified"}
    assert len(snapshots.timeline()["events"]) == 3

"""Three small clients, each written to one published document, work against the server.

Each uses the routes, methods, parameters and fields of its document and nothing else of ours, apart
from the token. Names are in snake_case. A field is there with its type in every answer; one that
the document marks as optional may be null.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.web.client import Client
from tests.interfaces.web.test_events import reading
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("WB-1")

Check = Callable[[Any], bool]


def _is(kind: type) -> Check:
    return lambda value: type(value) is kind


def _optional(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _one_of(*words: str) -> Check:
    return lambda value: value in words


def _list_of(check: Check) -> Check:
    return lambda value: type(value) is list and all(map(check, value))


def _time(value: Any) -> bool:
    return datetime.fromisoformat(value).tzinfo is not None


def _object(fields: Mapping[str, Check]) -> Check:
    """Every field is there, whatever else is."""

    def check(value: Any) -> bool:
        for name, one in fields.items():
            assert name in value, f"{name} is missing"
            assert one(value[name]), f"{name} is {value[name]!r}"
        return True

    return check


CHECKPOINT_FILE = _object(
    {
        "path": _is(str),
        "content": _optional(_is(str)),
        "encoding": _one_of("utf-8", "base64"),
        "mode": _is(int),
        "hash": _is(str),
    }
)
GIT = _object(
    {
        "branch": _is(str),
        "commit_hash": _is(str),
        "has_uncommitted_changes": _is(bool),
        "staged_files": _list_of(_is(str)),
    }
)
LISTED_CHECKPOINT: dict[str, Check] = {
    "id": _is(str),
    "session_id": _is(str),
    "type": _one_of("auto", "manual"),
    "name": _optional(_is(str)),
    "annotation": _optional(_is(str)),
    "message_index": _optional(_is(int)),
    "tool_use_id": _optional(_is(str)),
    "created_at": _time,
    "size_bytes": _is(int),
}
CHECKPOINT = _object(
    {**LISTED_CHECKPOINT, "files": _list_of(CHECKPOINT_FILE), "git": _optional(GIT)}
)
ROLLBACK_PLAN = _object(
    {
        "checkpoint_id": _is(str),
        "operations": _list_of(
            _object({"type": _one_of("restore", "delete", "create"), "path": _is(str)})
        ),
        "affected_files": _list_of(_is(str)),
        "warnings": _list_of(_is(str)),
    }
)


class SupervisorClient:
    """Sessions with checkpoints and rollback: list, create, show, annotate, delete, diff, plan."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._base = f"/api/sessions/{session_id}/checkpoints"

    def list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get(self._base)
        assert _list_of(_object(LISTED_CHECKPOINT))(found)
        return found

    def create(self, **given: str) -> dict[str, Any]:
        found: dict[str, Any] = self._client.post(self._base, given, 201)
        assert CHECKPOINT(found)
        return found

    def show(self, checkpoint_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"{self._base}/{checkpoint_id}")
        assert CHECKPOINT(found)
        return found

    def annotate(self, checkpoint_id: str, annotation: str) -> None:
        self._client.put(f"{self._base}/{checkpoint_id}", {"annotation": annotation})

    def delete(self, checkpoint_id: str) -> None:
        assert self._client("DELETE", f"{self._base}/{checkpoint_id}").status in (200, 204)

    def diff(self, checkpoint_id: str, other: str | None = None) -> Any:
        end = "" if other is None else f"/{other}"
        return self._client.get(f"{self._base}/{checkpoint_id}/diff{end}")

    def plan(self, checkpoint_id: str) -> dict[str, Any]:
        plan: dict[str, Any] = self._client.get(f"{self._base}/{checkpoint_id}/rollback/preview")
        assert ROLLBACK_PLAN(plan)
        assert plan["checkpoint_id"] == checkpoint_id
        assert plan["affected_files"] == [one["path"] for one in plan["operations"]]
        return plan

    def rollback(self, checkpoint_id: str) -> None:
        assert self._client("POST", f"{self._base}/{checkpoint_id}/rollback").status == 200


def test_a_client_of_session_checkpoints_works(client: Client, workspace: Path) -> None:
    git = ["git", "-C", str(workspace), "-c", "user.name=A", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "notes.txt"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "start"], check=True)
    fill(workspace / "image.bin", b"\xff\x00\xfe")
    subprocess.run([*git, "add", "image.bin"], check=True)
    supervisor = SupervisorClient(client, "supervised")
    first = supervisor.create(name="start", annotation="a good stopping point")
    assert (first["name"], first["annotation"]) == ("start", "a good stopping point")
    assert first["type"] == "manual"
    fill(workspace / "notes.txt", b"mistake\n")
    fill(workspace / "made-later.txt", b"x")
    (workspace / "image.bin").unlink()
    assert {one["path"] for one in supervisor.diff(first["id"])["files"]} == {
        "notes.txt",
        "made-later.txt",
        "image.bin",
    }
    second = supervisor.create(name="mistake")
    assert supervisor.diff(first["id"], second["id"])["files"]
    assert [one["id"] for one in supervisor.list()] == [second["id"], first["id"]]
    supervisor.annotate(first["id"], "before the mistake")
    shown = supervisor.show(first["id"])
    assert shown["annotation"] == "before the mistake"
    assert (shown["git"]["branch"], shown["git"]["staged_files"]) == ("main", ["image.bin"])
    assert shown["git"]["has_uncommitted_changes"]
    files = {one["path"]: one for one in shown["files"]}
    assert (files["notes.txt"]["content"], files["notes.txt"]["encoding"]) == ("one\n", "utf-8")
    assert base64.b64decode(files["image.bin"]["content"]) == b"\xff\x00\xfe"
    assert files["image.bin"]["encoding"] == "base64"
    plan = supervisor.plan(first["id"])
    assert {one["path"]: one["type"] for one in plan["operations"]} == {
        "notes.txt": "restore",
        "made-later.txt": "delete",
        "image.bin": "create",
    }
    supervisor.rollback(first["id"])
    assert (workspace / "notes.txt").read_bytes() == b"one\n"
    assert (workspace / "image.bin").read_bytes() == b"\xff\x00\xfe"
    assert not (workspace / "made-later.txt").exists()
    supervisor.delete(second["id"])
    assert second["id"] not in [one["id"] for one in supervisor.list()]


class DialogClient:
    """Approval of a dialog's work. Each answer has exactly the fields of the document."""

    ANSWERS: Mapping[str, Mapping[str, Check]] = {
        "approve": {
            "approved_commit": _is(str),
            "new_session": _is(str),
            "commits_approved": _is(int),
        },
        "reset": {"reset_to": _is(str), "new_session": _is(str)},
        "restore": {"restored_to": _is(str), "new_checkpoint": _is(str)},
    }

    def __init__(self, client: Client, dialog_id: str) -> None:
        self._client, self._base = client, f"/api/dialogs/{dialog_id}"

    def session(self) -> Any:
        found = self._client.get(f"{self._base}/session")
        fields = {
            "active_session": _optional(_is(str)),
            "session_ref": _optional(_is(str)),
            "has_unapproved": _is(bool),
            "last_approved_at": _optional(_time),
        }
        assert found.keys() == fields.keys()
        assert _object(fields)(found)
        active = found["active_session"]
        assert found["session_ref"] == (None if active is None else f"refs/heads/{active}")
        return found

    def act(self, action: str, body: Any = None) -> Any:
        headers = {} if body is None else {"Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        reply = self._client("POST", f"{self._base}/{action}", content, headers=headers)
        assert reply.status == 200
        assert reply.json.keys() == self.ANSWERS[action].keys()
        assert _object(self.ANSWERS[action])(reply.json)
        return reply.json


def test_a_client_of_dialogs_works(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    dialog = DialogClient(client, "work")
    assert dialog.session()["has_unapproved"] is True
    assert dialog.session()["active_session"] == "session_1"
    approved = dialog.act("approve", {"message": "Feature complete"})
    assert approved["commits_approved"] == 3
    assert approved["new_session"] == "session_2"
    state = dialog.session()
    assert (state["active_session"], state["has_unapproved"]) == (None, False)
    assert state["last_approved_at"] is not None
    before = session.user_message("Add a database").checkpoint
    fill(workspace / "db.py", b"import sqlite3\n")
    assert dialog.session()["active_session"] == "session_2"
    restored = dialog.act("restore", {"checkpoint_id": before})
    assert restored["restored_to"] == before
    assert restored["new_checkpoint"] != before
    assert not (workspace / "db.py").exists()
    again = dialog.act("restore", {"checkpoint_id": before})  # nothing is left to change
    assert client.get(f"/api/sessions/work/checkpoints/{again['new_checkpoint']}")
    fill(workspace / "db.py", b"import sqlite3\n")
    back = dialog.act("reset")
    assert back["reset_to"] == approved["approved_commit"]
    assert back["new_session"] == "session_3"
    assert not (workspace / "db.py").exists()
    fill(workspace / "db.py", b"import sqlite3\n")
    assert dialog.act("approve")["new_session"] == "session_4"


@pytest.mark.requirement("WB-2")
def test_a_client_of_dialog_events_works(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    with reading(client, "/api/dialogs/work/events") as reader:
        said = session.user_message("Create a web shop with 3 files")
        with session.editing(["todo.py"]):
            fill(workspace / "todo.py", b"print()\n")
        found: dict[str, Any] = {}
        while found.keys() < {"user", "file_edit"}:
            message = reader.message()
            if message.event in ("user", "file_edit"):
                found[message.event] = message.data
    assert found["user"] == {
        "type": "user",
        "content": "Create a web shop with 3 files",
        "checkpoint": said.checkpoint,
        "dialog_id": "work",
    }
    edit = found["file_edit"]
    assert edit.keys() == {"type", "file", "diff", "dialog_id"}
    assert (edit["type"], edit["file"]) == ("file_edit", str(workspace / "todo.py"))
    assert edit["diff"].startswith("--- ")
    assert "\n+++ b/" in edit["diff"]


def _hashes(pairs: Any) -> bool:
    return _list_of(lambda pair: [type(one) for one in pair] == [str, str])(pairs)


SUMMARY: dict[str, Check] = {
    "id": _is(str),
    "timestamp": _time,
    "checkpoint_name": _optional(_is(str)),
    "reasoning_preview": lambda text: type(text) is str and len(text) <= 80,
    "confidence": lambda number: type(number) is float and 0.0 <= number <= 1.0,
    "file_count": _is(int),
    "parent": _optional(_is(str)),
}
INTENT = _object(
    {
        "reasoning": _is(str),
        "goal_id": _optional(_is(str)),
        "task_id": _optional(_is(str)),
        "tool_calls": _list_of(_is(str)),
        "confidence": SUMMARY["confidence"],
        "checkpoint_name": _optional(_is(str)),
    }
)
SNAPSHOT = _object(
    {
        "id": _is(str),
        "timestamp": _time,
        "parent": _optional(_is(str)),
        "intent": INTENT,
        "artifacts": _list_of(
            _object({"path": _is(str), "content_hash": _is(str), "status": _one_of("passed")})
        ),
        "manifest": _hashes,
    }
)


class SnapshotClient:
    """Snapshots with intent: summaries, one in full, which paths differ, and the timeline."""

    def __init__(self, client: Client, session_id: str) -> None:
        self._client = client
        self._base = f"/api/sessions/{session_id}/checkpoints"

    def summaries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._client.get(self._base)
        assert _list_of(_object(SUMMARY))(found)
        return found

    def snapshot(self, checkpoint_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"{self._base}/{checkpoint_id}")
        assert SNAPSHOT(found)
        manifest = dict(found["manifest"])
        assert {one["path"]: one["content_hash"] for one in found["artifacts"]} == manifest
        return found

    def diff(self, **ends: str) -> Any:
        query = "&".join(f"{key}={value}" for key, value in ends.items())
        return self._client.get(f"{self._base}/diff?{query}")

    def timeline(self) -> Any:
        return self._client.get(f"{self._base}/timeline")


def test_a_client_of_snapshots_works(client: Client, session: SessionCheckpointer) -> None:
    session.checkpoint("Refactored the login. " * 10, goal_id="login", tool_calls=["Edit", "Bash"])
    snapshots = SnapshotClient(client, "work")
    fourth, third, second, first = snapshots.summaries()
    assert (first["checkpoint_name"], first["parent"]) == ("start", None)
    assert second["parent"] == first["id"]
    assert [one["file_count"] for one in (first, second, third)] == [2, 2, 3]
    assert fourth["reasoning_preview"] == ("Refactored the login. " * 10)[:80]
    intent = snapshots.snapshot(fourth["id"])["intent"]
    assert (intent["goal_id"], intent["tool_calls"]) == ("login", ["Edit", "Bash"])
    shown = snapshots.snapshot(second["id"])
    assert (shown["intent"]["reasoning"], shown["intent"]["confidence"]) == ("second", 0.95)
    assert shown["manifest"] != snapshots.snapshot(first["id"])["manifest"]
    assert snapshots.diff() == {"new.txt": "added", "src/app.py": "modified"}
    assert snapshots.diff(from_id=first["id"], to_id=second["id"]) == {"src/app.py": "modified"}
    assert snapshots.diff(to_id=second["id"]) == {"src/app.py": "modified"}
    assert len(snapshots.timeline()["events"]) == 4

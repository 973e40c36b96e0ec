"""Search, replay, settings, cleanup and the state of the store over HTTP."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.system import SystemClock
from holdfast.bootstrap import maintenance
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.web.client import Client
from tests.support.hostile_trees import fill
from tests.support.read_only import told_read_only

pytestmark = pytest.mark.requirement("WB-1")

SESSION = "/api/sessions/work"


def test_moments_are_found_by_their_words(client: Client, session: SessionCheckpointer) -> None:
    found = client.get("/api/search?q=second")
    assert [hit["checkpoint"]["reasoning"] for hit in found["hits"]] == ["second"]
    assert found["complete"]
    assert client.get("/api/search?q=second&session=work")["hits"]
    assert client("GET", "/api/search?q=second&session=none").status == 404


def test_a_line_is_explained(client: Client, session: SessionCheckpointer) -> None:
    found = client.get("/api/why?path=src/app.py&line=1")
    [origin] = found["origins"]
    assert origin["reasoning"] == "second"


@pytest.mark.requirement("SE-10")
def test_a_session_is_replayed_step_by_step(client: Client, session: SessionCheckpointer) -> None:
    page = client.get(f"{SESSION}/replay?limit=2")
    assert [step["reasoning"] for step in page["steps"]] == ["first", "second"]
    assert (page["total"], page["position"], page["next"]) == (3, 2, 2)
    step = client.get(f"{SESSION}/replay/1")
    assert [change["path"] for change in step["changes"]] == ["src/app.py"]
    assert client("GET", f"{SESSION}/replay/3").status == 404
    content = client.get(f"{SESSION}/checkpoints/{step['before']}/file?path=src/app.py")
    assert content["content"] == "print(1)\n"
    for path in ("agents", "memory"):
        assert client.get(f"{SESSION}/checkpoints/HEAD/{path}")["checkpoint"]


def test_no_setting_that_is_accepted_stops_saves(
    client: Client, session: SessionCheckpointer
) -> None:
    """A setting that the next save cannot use would end the protection."""
    odd = (
        "\ud800",
        ["\ud800"],
        ["\udc80"],
        ["["],
        ["\\"],
        ["\u2028"],
        {"\ud800": 1},
        10**30,
        1e308,
    )
    for key in [one["key"] for one in client.get("/api/settings")]:
        for value in odd:
            if client("PUT", f"/api/settings/{key}", {"value": value}).status == 200:
                client.post(f"{SESSION}/checkpoints", {"reasoning": key}, 201)
                client.get("/api/status")
                client.put(f"/api/settings/{key}", {"value": None})


def test_settings_are_read_changed_and_reset(client: Client, session: SessionCheckpointer) -> None:
    changed = client.put("/api/settings/auto_files", {"value": 9})
    assert (changed["value"], changed["origin"]) == (9, "store")
    listed = {one["key"]: one for one in client.get("/api/settings")}
    assert listed["auto_files"]["value"] == 9
    assert all(one["help"] for one in listed.values())
    assert client.put("/api/settings/auto_files", {"value": None})["origin"] == "default"
    for key, value in (("auto_files", "many"), ("nothing", 1), ("ignore", ["\ud800"])):
        reply = client("PUT", f"/api/settings/{key}", {"value": value})
        assert (reply.status, reply.problem["code"]) == (400, "invalid_setting")
        assert reply.problem["hint"]


def test_a_cleanup_is_previewed_and_carried_out(
    client: Client, session: SessionCheckpointer
) -> None:
    plan = client.get("/api/cleanup/preview")
    assert (plan["dry_run"], plan["kept"], plan["dropped"]) == (True, 3, 0)
    assert client.post("/api/cleanup")["dry_run"] is False


def test_the_state_of_the_store_is_reported(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    assert client.post("/api/check") == {"ok": True, "problems": []}
    assert client.get("/api/doctor")["findings"]
    found = client.get("/api/overview")
    assert (found["checkpoints"], found["sessions"], found["is_own"]) == (3, 1, True)
    assert found["path"] == str(workspace)
    assert client.get(f"{SESSION}/statistics")["usage"]["sessions"] == 1


def test_the_workspace_is_compared_with_its_last_checkpoint(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "notes.txt", b"two\n")
    fill(workspace / "__pycache__" / "x.pyc", b"x")
    found = client.get("/api/status")
    assert [one["path"] for one in found["changes"]] == ["notes.txt"]
    assert found["changed"]["modified"] == 1
    assert found["head"]["reasoning"] == "third"
    assert (found["session_id"], found["watch"]) == ("work", None)
    assert found["approval"]["has_unapproved"]
    assert any(one["path"].startswith("__pycache__") for one in found["skipped"])
    assert client.get("/api/status?session=work&limit=0")["changes"] == []


def test_the_last_check_is_remembered(client: Client, session: SessionCheckpointer) -> None:
    assert client.get("/api/status")["last_check"] is None
    client.post("/api/check")
    found = client.get("/api/status")["last_check"]
    assert (found["problems"], found["data"]) == (0, False)


def test_a_damaged_object_is_a_problem_and_the_rest_stays_usable(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "large", random.Random(1).randbytes(2_000_000))
    session.checkpoint("large")
    damaged = 0
    for pack in (session.opened.store_directory / "objects").rglob("*"):
        if pack.is_file() and pack.stat().st_size > 1_900_000:
            with pack.open("r+b") as file:
                file.seek(1_000_000)
                flipped = bytes([file.read(1)[0] ^ 0xFF])
                file.seek(1_000_000)
                file.write(flipped)
            damaged += 1
    assert damaged == 1
    place = f"{SESSION}/checkpoints/HEAD"
    replies = []
    for offset in range(0, 2_000_000, 250_000):
        replies.append(client("GET", f"{place}/file?path=large&offset={offset}"))
    bad = [reply for reply in replies if reply.status != 200]
    assert bad
    assert {(one.status, one.problem["code"]) for one in bad} == {(500, "object_damaged")}
    assert client.get(f"{SESSION}/checkpoints/HEAD/file?path=notes.txt")["content"] == "one\n"


def test_a_program_makes_a_link_for_a_browser(client: Client) -> None:
    made = client.post("/api/login-links")
    link = made["link"].removeprefix(client.server.url)
    assert client("GET", link, token=False).status == 303


@pytest.mark.requirement("CL-3")
def test_repeated_requests_for_the_status_write_one_test_file_a_minute(
    client: Client,
    session: SessionCheckpointer,
    workspace: Path,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tested, really = list[str](), os.open

    def seen(path: Any, flags: int, *given: Any, **named: Any) -> int:
        if ".test." in os.fsdecode(path if isinstance(path, str | bytes) else os.fspath(path)):
            tested.append(os.fsdecode(path))
        return really(path, flags, *given, **named)

    later = 0

    class LaterClock(SystemClock):
        @staticmethod
        def monotonic_ns() -> int:
            return SystemClock.monotonic_ns() + later

    monkeypatch.setattr(maintenance, "SystemClock", LaterClock)
    monkeypatch.setattr(os, "open", seen)

    def warnings() -> str:
        return str(client.get("/api/status")["warnings"])

    for _ in range(3):
        warnings()
    assert len(tested) == 1
    later = 60 * 10**9
    for _ in range(3):
        warnings()
    assert len(tested) == 2
    person = CommandLine(workspace)
    person.json("status")
    assert len(tested) == 3
    with told_read_only(holdfast_home):
        assert "read-only" in str(person.json("status")["warnings"])
        for _ in range(2):  # a failure is looked into every time
            assert "read-only" in warnings()
    assert "read-only" not in warnings()


@pytest.mark.requirement("CL-8")
def test_before_the_first_checkpoint_there_are_settings_a_status_and_a_diagnosis(
    client: Client, workspace: Path
) -> None:
    command_line = CommandLine(workspace)
    listed = {one["key"]: one for one in client.get("/api/settings")}
    expected = {one["key"]: one for one in command_line.json("config", "list")}
    assert {key: one["origin"] for key, one in listed.items()} == {
        key: expected[key]["origin"] for key in listed
    }
    found = client.get("/api/status")
    assert found["workspace"] == str(workspace)
    assert (found["head"], found["session_id"], found["store_bytes"]) == (None, None, 0)
    assert found["budget_bytes"] == command_line.json("status")["budget_bytes"]
    symptoms = client.get("/api/doctor")["findings"]
    [store] = [one for one in symptoms if one["subject"] == "store"]
    assert store["finding"] == "this workspace has no store yet"
    assert client("GET", "/api/status?session=none").status == 404
    assert not (workspace / ".holdfast").exists()


@pytest.mark.requirement("CL-6")
def test_a_setting_can_be_stored_before_the_first_checkpoint(
    client: Client, workspace: Path
) -> None:
    assert client.put("/api/settings/auto_interval", {"value": 45})["value"] == 45
    assert CommandLine(workspace).json("config", "get", "auto_interval")["value"] == 45
    assert client.get("/api/sessions") == []


@pytest.mark.requirement("CL-6")
def test_a_refused_setting_creates_no_store(client: Client, workspace: Path) -> None:
    place = "/api/settings/max_file_size"
    assert client("PUT", place, {"value": "nonsense"}).status == 400
    assert client("PUT", place, {"value": None}).status == 404
    assert not (workspace / ".holdfast").exists()

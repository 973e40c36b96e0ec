"""What the page shows beside a restore, a moment, the retention rules and the store's size."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.web.client import Client, running
from tests.interfaces.web.page.sample_session import SESSION, SampleSession
from tests.support.agent_project import patience as patience
from tests.support.agent_project import runtime as runtime
from tests.support.daemons import daemon_here, save_by_daemon
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-1", "WB-3"), pytest.mark.in_memory]

CHECKPOINTS = f"/api/sessions/{SESSION}/checkpoints"


@pytest.fixture
def agent(tmp_path: Path) -> SampleSession:
    agent = SampleSession(tmp_path, os.environ)
    agent.make_project()
    agent.event("SessionStart", source="startup")
    agent.prompt("Tidy up")
    return agent


@pytest.fixture
def shop(agent: SampleSession) -> Iterator[Client]:
    with running(agent.project) as client:
        yield client


def written(client: Client, agent: SampleSession, path: str, text: str) -> None:
    """The agent's edit, with its checkpoint: hooks make the one after an edit in the background."""
    agent.write(path, text)
    deadline = time.monotonic() + 60
    while True:
        page = client.get(f"/api/sessions/{SESSION}/timeline")
        reasons = [one.get("checkpoint", {}).get("reasoning") for one in page["events"]]
        if f"After Write: {path}" in reasons:
            return
        assert time.monotonic() < deadline, reasons
        time.sleep(0.02)


def test_a_preview_says_who_changed_each_file_last(shop: Client, agent: SampleSession) -> None:
    written(shop, agent, "src/auth/tokens.py", "class Token:\n    by_the_agent = True\n")
    fill(agent.project / "README.md", b"# Mine\n")
    written(shop, agent, "docs/guide.md", "# Guide\n")
    fill(agent.project / "tests/auth/test_refresh.py", b"# not saved yet\n")
    plan = shop.get(f"{CHECKPOINTS}/initial/rollback/preview")
    found = {one["path"]: (one["by"], one["agent"]) for one in plan["last_changes"]}
    assert found == {
        "README.md": ("person", None),
        "docs/guide.md": ("agent", "claude-code"),
        "src/auth/tokens.py": ("agent", "claude-code"),
        "tests/auth/test_refresh.py": ("unsaved", None),
    }
    assert all((one["at"] is None) == (one["by"] == "unsaved") for one in plan["last_changes"])


def test_a_file_that_a_restore_brought_back_is_not_called_the_agents(
    shop: Client, agent: SampleSession
) -> None:
    agent.write("README.md", "# One\n")
    agent.holdfast("checkpoint", "one", "--name", "one", "--session", SESSION)
    agent.write("README.md", "# Two\n")
    agent.holdfast("restore", "one", "--yes", "--session", SESSION)
    plan = shop.get(f"{CHECKPOINTS}/initial/rollback/preview")
    assert [(one["path"], one["by"]) for one in plan["last_changes"]] == [("README.md", "restore")]


def test_a_preview_counts_rows_now_and_then(shop: Client, agent: SampleSession) -> None:
    with sqlite3.connect(agent.project / "app.db") as database:
        database.execute("delete from sessions where id > 14")
        database.execute("create table jobs (id)")
    database.close()
    plan = shop.get(f"{CHECKPOINTS}/initial/rollback/preview")
    assert plan["databases"] == [
        {"path": "app.db", "now": {"jobs": 0, "sessions": 14}, "then": {"sessions": 214}}
    ]
    saved = shop.get(f"{CHECKPOINTS}/initial/databases")
    assert [(one["name"], one["tables"], one["rows"]) for one in saved] == [("app.db", 1, 214)]


def test_a_database_that_is_none_has_no_rows(shop: Client, agent: SampleSession) -> None:
    fill(agent.project / "app.db", b"SQLite format 3\0" + bytes(range(256)) * 20)
    plan = shop.get(f"{CHECKPOINTS}/initial/rollback/preview")
    assert plan["databases"] == [{"path": "app.db", "now": None, "then": {"sessions": 214}}]


def test_rows_in_a_log_are_not_guessed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    fill(project / "a.txt", b"a\n")
    with sqlite3.connect(project / "app.db") as database:
        database.execute("pragma journal_mode = wal")
        database.execute("create table jobs (id)")
        database.commit()
        with SessionCheckpointer(project, "work") as session:
            session.checkpoint("In use", name="used")
        with running(project) as client:
            found = client.get("/api/sessions/work/checkpoints/used/databases")
    database.close()
    assert [(one["name"], one["rows"]) for one in found] == [("app.db", None)]


def test_the_rules_that_apply_are_told(client: Client, session: SessionCheckpointer) -> None:
    def rules() -> dict[str, object]:
        listed = {one["key"]: one for one in client.get("/api/settings")}
        found: dict[str, object] = listed["retention"]["effective"]
        return found

    assert rules()["safety"] == {"age": "1 day", "most": 10}
    changed = client("PUT", "/api/settings/retention", {"value": {"safety": {"most": 3}}}).json
    assert changed["effective"]["safety"] == rules()["safety"] == {"most": 3}
    assert rules()["risky"] == {"age": "30 days"}


def test_growth_rises_with_what_was_saved(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    before = client.get("/api/growth")
    fill(workspace / "large.bin", os.urandom(50_000))
    session.checkpoint("Something large")
    session.checkpoint("Nothing new")
    after = client.get("/api/growth")
    sizes = [one["bytes"] for one in after]
    assert sizes == sorted(sizes)
    assert sizes[: len(before)] == [one["bytes"] for one in before]
    assert sizes[-2] - before[-1]["bytes"] > 50_000
    assert sizes[-1] == sizes[-2]


def test_a_tools_result_in_the_transcript_is_not_shown_as_the_message(
    shop: Client, agent: SampleSession, tmp_path: Path
) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"stdout": ""}'}
    transcript = tmp_path / "transcript.jsonl"
    spoken: list[tuple[str, object]] = [
        ("user", "Clean up the old modules"),
        ("assistant", [call]),
        ("user", [result]),
    ]
    with SessionCheckpointer(agent.project, SESSION) as session:
        for number in range(1, len(spoken) + 1):
            lines = [
                {"type": role, "uuid": f"u{place}", "message": {"role": role, "content": content}}
                for place, (role, content) in enumerate(spoken[:number])
            ]
            transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
            session.import_transcript(transcript, "claude-code")
            made = session.checkpoint(f"after {number} messages")
            message = shop.get(f"{CHECKPOINTS}/{made}")["message"]
            assert message == {"role": "user", "content": "Clean up the old modules"}


def test_a_form_knows_what_a_setting_accepts_and_where_it_can_be_set(
    client: Client, session: SessionCheckpointer
) -> None:
    listed = {one["key"]: one for one in client.get("/api/settings")}
    assert listed["watch"]["choices"] == ["on", "off", "paranoid"]
    assert listed["worktree_files"]["choices"] == ["manual", "always", "never"]
    assert "choices" not in listed["budget"]
    fixed = {key for key, one in listed.items() if one["user_only"]}
    assert fixed == {"total_budget", "daemon_idle", "key_file"}
    changed = client("PUT", "/api/settings/watch", {"value": "paranoid"}).json
    assert changed["choices"] == listed["watch"]["choices"]


def test_durations_are_those_of_this_server_and_restores_those_of_any_process(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    place = "/api/durations"
    assert client.get(place) == {"saves": [], "restores": []}
    session.restore("start")
    session.undo()
    found = client.get(place)
    assert len(found["restores"]) == 2
    assert all(0 < one < 3_600_000 for one in found["restores"])
    assert found["saves"] == []  # the library keeps no times for others
    client.post("/api/sessions/work/checkpoints", {"reasoning": "by this server"}, 201)
    [save] = client.get(place)["saves"]
    assert save > 0
    session.delete_session()
    assert client.get(place)["restores"] == []


@pytest.mark.usefixtures("patience")
def test_durations_include_the_saves_of_the_daemon(runtime: Path, workspace: Path) -> None:
    with daemon_here(), running(workspace) as client:
        save_by_daemon(workspace)
        save_by_daemon(workspace, "another message")
        saves = client.get("/api/durations")["saves"]
        assert len(saves) >= 2
        assert min(saves) > 0

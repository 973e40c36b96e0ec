"""Databases through the library: saved with a checkpoint, restored with the files, undone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.settings import project_settings
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import InvalidSetting, RestoreConflict
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.settings import set_setting
from tests.components.postgres.conftest import SOURCE, Database
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.encrypted_stores import files_with
from tests.support.progress_log import ProgressLog

SESSION = SessionId("s")


@pytest.fixture
def workspace(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(SOURCE, database.server.url(database.name))
    monkeypatch.setenv("PATH", str(database.server.programs), prepend=":")
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "code.py").write_text("v1")
    with open_workspace(workspace, create=True) as opened:
        set_setting(opened.engine, "component_timeout", 120)
    return workspace


@pytest.mark.requirement("DB-2")
def test_rows_and_files_come_back_together_and_the_restore_is_undone(
    database: Database, workspace: Path
) -> None:
    database.fill()
    before = database.dump()
    with SessionCheckpointer(workspace, "s") as session:
        first = session.save_checkpoint("before the migration")
        assert not first.checkpoint.partial
        (workspace / "code.py").write_text("v2")
        database.sql("DROP SCHEMA shop CASCADE", "CREATE TABLE more (a int)")
        changed = database.dump()
        plan = session.plan_restore(first.checkpoint.id)
        [step] = [step for step in plan.components if step.name == "postgres"]
        assert any("recreate shop.users with 3 rows" in text for text in step.actions)
        session.restore(first.checkpoint.id)
        assert (workspace / "code.py").read_text() == "v1"
        assert database.dump() == before
        session.undo()
        assert (workspace / "code.py").read_text() == "v2"
        assert database.dump() == changed
        session.redo()
        assert database.dump() == before


@pytest.mark.requirement("DB-2", "DB-3")
def test_a_database_that_cannot_be_reached_costs_no_files_and_tells_no_secret(
    database: Database, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.sql("CREATE ROLE clerk LOGIN PASSWORD 'right'")
    url = database.server.url(database.name, "clerk", "unmistakable word")
    monkeypatch.setenv(SOURCE, url)
    try:
        with SessionCheckpointer(workspace, "s") as session:
            outcome = session.save_checkpoint("all the same")
            assert outcome.checkpoint.partial
            told = json.dumps(outcome.degraded)
            assert "wrong password" in told
            assert "unmistakable" not in told
            (workspace / "code.py").write_text("v2")
            session.restore(outcome.checkpoint.id)
            assert (workspace / "code.py").read_text() == "v1"
            home = session.save()
        assert list(files_with(home, b"unmistakable", b"unmistakable%20word")) == []
    finally:
        database.sql("DROP ROLE clerk")


@pytest.mark.requirement("DB-2")
def test_a_restore_that_cannot_reach_the_database_changes_nothing(
    database: Database, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.sql("CREATE TABLE t (a int)")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("with the database")
        (workspace / "code.py").write_text("v2")
    monkeypatch.setenv(SOURCE, "postgresql:///gone?host=/nonexistent")
    with SessionCheckpointer(workspace, "s") as session:
        with pytest.raises(RestoreConflict, match="postgres"):
            session.restore(first)
        assert (workspace / "code.py").read_text() == "v2"


@pytest.mark.requirement("DB-2")
def test_an_unchanged_table_is_stored_once(database: Database, workspace: Path) -> None:
    database.sql(
        "CREATE TABLE large (id int PRIMARY KEY, text text)",
        "CREATE TABLE small (id int PRIMARY KEY)",
        "INSERT INTO large SELECT n, md5(n::text) || md5((n + 1)::text)"
        " FROM generate_series(1, 40000) n",
    )
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("first")
        first_bytes = session.stats["bytes_stored"]
        database.sql("INSERT INTO small VALUES (1)")
        session.checkpoint("a small table changed")
        second_bytes = session.stats["bytes_stored"] - first_bytes
        database.sql("UPDATE large SET text = 'new' WHERE id % 100 = 7")
        last = session.checkpoint("one row of a hundred changed, all over the table")
        third_bytes = session.stats["bytes_stored"] - first_bytes - second_bytes
        changed = database.dump()
        database.sql("DROP TABLE large")
        session.restore(last)
        assert database.dump() == changed
    assert first_bytes > 500_000
    assert second_bytes < first_bytes * 0.01
    assert third_bytes < first_bytes * 0.05


@pytest.mark.requirement("DB-2")
def test_a_url_is_no_setting_and_is_not_repeated(workspace: Path) -> None:
    url = "postgresql://u:s3cret@h/d"
    with open_workspace(workspace, create=True) as opened:
        with pytest.raises(InvalidSetting, match="the URL itself is never stored") as caught:
            set_setting(opened.engine, "postgres", [url])
        assert "s3cret" not in str(caught.value)
        assert list(files_with(opened.store.directory, b"s3cret")) == []
    (workspace / ".holdfast/config.toml").write_text('postgres = ["DATABASE_URL"]\n')
    with SessionCheckpointer(workspace, "s") as session:
        assert session.opened.settings.effective.postgres == ("HOLDFAST_POSTGRES_URL",)
    held_back = project_settings(workspace, os.environ).held_back
    assert held_back == {"postgres": "postgres cannot be set by a project"}


@pytest.mark.requirement("DB-2", "CL-2")
def test_dumps_and_loads_tell_how_far_they_are(database: Database, workspace: Path) -> None:
    database.sql(
        "CREATE TABLE large (id int PRIMARY KEY, text text)",
        "INSERT INTO large SELECT n, repeat(md5(n::text), 20) FROM generate_series(1, 9000) n",
        "ANALYZE large",
        "CREATE TABLE never_analysed (id int PRIMARY KEY)",
        "INSERT INTO never_analysed SELECT generate_series(1, 2000)",
    )
    with open_workspace(workspace, create=False) as opened:
        engine, saving, restoring = opened.engine, ProgressLog(), ProgressLog()
        with engine.vault.progress.reporting_to(saving):
            engine.save(SESSION, make_intent("before"))
        database.sql("DROP TABLE large")
        with engine.vault.progress.reporting_to(restoring):
            engine.restore(engine.restore_request(SESSION, "HEAD"))
    dumped = saving.phases[f"postgres: dumping {database.name}"]
    assert dumped[0] == (0, 9000)
    assert dumped[-1] == (11000, None)  # more than the server believed
    assert [done for done, _ in dumped] == sorted(done for done, _ in dumped)
    assert len(dumped) > 3
    assert saving.moved[-1] > 9000 * 640
    assert f"postgres: dumping the schema of {database.name}" in saving.phases
    restoring.require_shares(f"postgres: loading {database.name}", 11000)
    assert restoring.phases[f"postgres: loading {database.name}"][-1] == (11000, 11000)
    assert f"postgres: indexing {database.name}" in restoring.phases


@pytest.mark.requirement("DB-2", "CL-2")
def test_the_command_line_shows_how_far_a_dump_is(database: Database, workspace: Path) -> None:
    database.sql(
        "CREATE TABLE large (id int PRIMARY KEY)",
        "INSERT INTO large SELECT generate_series(1, 20)",
        "ANALYZE large",
    )
    with Screen(workspace, program=_STOPPING) as screen:
        shown = screen.read_until(" of 20, ")
        assert f"postgres: dumping {database.name} " in shown.rpartition("\r")[2]
        screen.type("\n")
        rest = screen.finish()
    assert screen.status == 0
    assert "Saved" in rest


# A save with a bar from the start, that waits when the first rows have passed.
_STOPPING = """
import sys
from holdfast.components.postgres.capture import RowMeter
from holdfast.interfaces.cli import progress_bar
from holdfast.interfaces.cli.main import main
progress_bar._FIRST_AFTER_S = 0
report, stopped = RowMeter._report, []
def stopping(self):
    report(self)
    if self.rows and not stopped:
        stopped.append(input())
RowMeter._report = stopping
sys.exit(main(["checkpoint", "x"]))
"""

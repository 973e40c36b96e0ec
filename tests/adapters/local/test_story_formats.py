"""Stores of every schema there has been open with all their messages and notes, and so do their
bundles.

They were written by `tests/fixtures/make_told_store.py` when their schema was new.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.catalog.migrations import MIGRATIONS, applied_migrations
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.adapters.local.story.migrations import STORY_MIGRATIONS
from holdfast.bootstrap.workspace import open_workspace
from holdfast.engine.repair.check import run_checks
from holdfast.ports.progress import NoProgress
from tests.fixtures import make_told_store as told
from tests.fixtures.make_store import SESSION, describe
from tests.support.encrypted_stores import make_encrypted

pytestmark = pytest.mark.requirement("ST-8")

STORE_ID = "0123456789abcdef0123"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "told_stores"
SCHEMAS = sorted(path.name for path in FIXTURES.iterdir())
PRESENT = f"{MIGRATIONS[-1].name[:4]}-{STORY_MIGRATIONS[-1].name[:4]}"


def _expected(schema: str) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((FIXTURES / schema / "expected.json").read_bytes())
    return expected


def test_there_is_a_store_of_the_present_schema(tmp_path: Path) -> None:
    """A migration is released together with a store that has it."""
    assert PRESENT in SCHEMAS
    for name, migrations in (("catalog.db", MIGRATIONS), ("story.db", STORY_MIGRATIONS)):
        copy = Path(shutil.copy(FIXTURES / PRESENT / "plain" / "store" / name, tmp_path))
        db = connect(copy, synchronous="OFF")
        assert sorted(applied_migrations(db)) == sorted(one.name for one in migrations)
        db.close()


@pytest.fixture(params=SCHEMAS)
def schema(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["plain", "encrypted", "bundle", "bundle, encrypted"])
def workspace(
    request: pytest.FixtureRequest,
    schema: str,
    tmp_path: Path,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """An empty directory whose store is a copy of one from then, or took in a bundle from then."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    key = tmp_path / "keys" / "key"
    if "encrypted" in request.param:
        key.parent.mkdir()
        monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    if "bundle" in request.param:
        if "encrypted" in request.param:
            make_encrypted(workspace, key)
        bundle = FIXTURES / schema / told.BUNDLE
        SessionCheckpointer.import_bundle(workspace, bundle, foreign=True)
        return workspace
    kept = FIXTURES / schema / str(request.param)
    if (kept / "key").exists():
        shutil.copyfile(kept / "key", key)
        key.chmod(0o600)
    shutil.copytree(kept / "store", holdfast_home / "stores" / STORE_ID)
    (workspace / ".holdfast").mkdir()
    (workspace / ".holdfast" / "workspace.json").write_text(json.dumps({"id": STORE_ID}))
    return workspace


def test_it_is_sound(workspace: Path) -> None:
    with open_workspace(workspace, create=False) as opened, opened.store.hold():
        found = run_checks(opened.engine.vault, data=True, progress=NoProgress())
        assert [str(problem) for problem in found] == []


def test_every_checkpoint_restores_byte_for_byte_with_the_state_of_its_agent(
    workspace: Path, schema: str
) -> None:
    expected = _expected(schema)
    with SessionCheckpointer.load(workspace, SESSION) as session:
        for name in ("third", "first", "second", "third"):
            session.restore(name)
            assert describe(workspace) == expected[name], name
            state = told.LATER_STATE if name == "third" else told.STATE
            assert session.agent_states() == {"golden-agent": state}


def test_what_was_said_is_still_there_and_found(workspace: Path) -> None:
    with SessionCheckpointer.load(workspace, SESSION) as session:
        messages = session.messages()
        assert [(one.role.value, one.content) for one in messages] == told.MESSAGES
        assert messages[1].tool_calls == told.TOOL_CALLS
        assert [one.rolled_back_by is not None for one in messages] == [False, False, True, True]
        said = session.annotations("first", revisions=True)
        assert [one.text for one in said] == told.ANNOTATIONS
        assert said[0].author == "ada"
        annotated = session.search("better words").hits[0].checkpoint
        assert annotated is not None
        assert annotated.name == "first"
        found = session.search("second").hits[0].checkpoint
        assert found is not None
        assert (found.name, found.message_index, found.round) == ("second", 1, 1)


def test_rounds_are_as_they_were_and_go_on(workspace: Path, schema: str) -> None:
    with SessionCheckpointer.load(workspace, SESSION) as session:
        rounds = session.rounds()
        assert [one.status.value for one in rounds] == ["merged", "abandoned", "active"]
        assert rounds[0].message == "well done"
        session.restore("third")
        session.checkpoint("a later version was here")
        session.reset()
        assert describe(workspace) == _expected(schema)["second"]
        assert [one.number for one in session.rounds()] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["plain", "encrypted"])
def test_edits_are_still_reported_with_what_they_changed(
    kind: str, schema: str, tmp_path: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = FIXTURES / schema / kind
    if kind == "encrypted":
        key = Path(shutil.copy(kept / "key", tmp_path))
        key.chmod(0o600)
        monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    shutil.copytree(kept / "store", holdfast_home / "stores" / STORE_ID)
    marker = tmp_path / "workspace" / ".holdfast" / "workspace.json"
    marker.parent.mkdir(parents=True)
    marker.write_text(json.dumps({"id": STORE_ID}))
    with SessionCheckpointer.load(tmp_path / "workspace", SESSION) as session:
        (edit,) = session.activities()
        assert (edit.reason, edit.status.value) == ("a wider world", "kept")
        diff = session.edit_diff(edit.number)
    assert diff is not None
    assert "-world" in diff
    assert "+wide world" in diff

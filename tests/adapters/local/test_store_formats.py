"""Stores of every format version there has been open, check, and restore byte for byte (ST-8).

The stores were written by `tests/fixtures/make_store.py` when their format was new. One that is
made now has to pass the same test, so that what is committed and what is written stay the same.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.catalog.migrations import MIGRATIONS, Migration, migrate
from holdfast.adapters.local.layout import FORMAT
from holdfast.adapters.local.sqlite_connection import connect
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import NewerStore
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from tests.adapters.local.tree_pictures import picture
from tests.behind_the_api import local_store
from tests.fixtures.make_store import SESSION, describe
from tests.interfaces.cli.command_line import run
from tests.support.session_states import get_snapshot

pytestmark = pytest.mark.requirement("ST-8")

FIXTURES = Path(__file__).parents[2] / "fixtures"
STORE_ID = "0123456789abcdef0123"
STORES = sorted(path.name for path in (FIXTURES / "stores").iterdir())


def test_there_is_a_store_of_every_format() -> None:
    assert [f"format-{version}" for version in range(1, FORMAT + 1)] == STORES


@pytest.fixture(params=[*STORES, "made now", "made now, encrypted"])
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param in STORES:
        return FIXTURES / "stores" / str(request.param)
    made = tmp_path / "made"
    root = FIXTURES.parents[1]
    command = [sys.executable, "-m", "tests.fixtures.make_store", str(made)]
    encrypted = ["--encrypted"] if "encrypted" in request.param else []
    subprocess.run([*command, *encrypted], check=True, cwd=root)
    return made


@pytest.fixture
def workspace(
    golden: Path, tmp_path: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty directory that carries the marker of a copy of the store."""
    if (golden / "key").exists():
        key = tmp_path / "key"
        shutil.copyfile(golden / "key", key)
        key.chmod(0o600)
        monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    shutil.copytree(golden / "store", holdfast_home / "stores" / STORE_ID)
    workspace = tmp_path / "workspace"
    (workspace / ".holdfast").mkdir(parents=True)
    (workspace / ".holdfast" / "workspace.json").write_text(json.dumps({"id": STORE_ID}))
    return workspace


def test_a_store_opens_and_checks(workspace: Path) -> None:
    with open_workspace(workspace, create=False) as opened:
        assert list(local_store(opened).objects.check(data=True)) == []
        assert list(local_store(opened).catalog.check()) == []


def test_every_checkpoint_restores_byte_for_byte(workspace: Path, golden: Path) -> None:
    expected: dict[str, Any] = json.loads((golden / "expected.json").read_bytes())
    with SessionCheckpointer.load(workspace, SESSION) as session:
        for name in ("first", "second", "third", "first"):
            session.restore(name)
            assert describe(workspace) == expected[name], name


def test_the_story_of_every_checkpoint_is_still_reported(workspace: Path) -> None:
    with SessionCheckpointer.load(workspace, SESSION) as session:
        third, second, first = session.summaries()
        assert [s.checkpoint_name for s in (first, second, third)] == ["first", "second", "third"]
        assert get_snapshot(session, "initial").id == first.id
        assert (first.tags, first.confidence) == (("golden",), 0.25)
        assert second.parent == first.id
        intent = get_snapshot(session, "second").intent
        assert intent.tool_calls == ("Bash(make)", {"name": "Edit", "path": "src/module.txt"})
        assert (intent.goal_id, intent.task_id) == ("goal", "task")
        records = [s.kind for s in session.summaries(records=True)]
        assert records == [third.kind, "restore", "safety", second.kind, first.kind]
        assert session.diff("first", "third")["docs/large"] == "removed"


def test_a_store_goes_on_being_used(workspace: Path) -> None:
    with SessionCheckpointer.load(workspace, SESSION) as session:
        session.restore("third")
        (workspace / "new").write_bytes(b"new")
        saved = session.checkpoint("a later version of Holdfast wrote", name="later")
        session.restore("first")
        session.restore("later")
        assert (workspace / "new").read_bytes() == b"new"
        assert get_snapshot(session, "later").id == saved
        assert session.undo().restored_to


@pytest.mark.requirement("SE-10")
def test_every_store_can_be_walked_through_without_touching_its_workspace(workspace: Path) -> None:
    before = describe(workspace)
    answer = run("-C", str(workspace), "--session", SESSION, "--json", "replay", "--patch")
    assert (answer.status, answer.err) == (0, "")
    steps = answer.json["steps"]
    assert [(step["action"], step["name"]) for step in steps] == [
        ("checkpoint", "first"),
        ("checkpoint", "second"),
        ("restore", None),
        ("checkpoint", "third"),
    ]
    assert all(step["damage"] is None for step in steps)
    assert describe(workspace) == before


@pytest.mark.parametrize("create", [True, False])
def test_a_store_that_a_later_version_migrated_is_refused_untouched(
    workspace: Path, holdfast_home: Path, tmp_path: Path, create: bool
) -> None:
    with open_workspace(workspace, create=False) as opened:
        catalog, unlocked = opened.store.directory / "catalog.db", local_store(opened).unlocked
    cipher = unlocked.keys.cipher("catalog") if unlocked else None
    later = connect(catalog, synchronous="FULL", cipher=cipher)
    migrate(later, (*MIGRATIONS, Migration("9999-later", "CREATE TABLE later (x)")))
    later.close()
    # Moved since: what would be noted about that has to wait until the store is known to be ours.
    moved = workspace.rename(tmp_path / "moved")
    before = picture(tmp_path), picture(holdfast_home)
    with pytest.raises(NewerStore, match="9999-later"):
        open_workspace(moved, create=create)
    after = picture(tmp_path), picture(holdfast_home)
    changed = {
        name
        for old, new in zip(before, after, strict=True)
        for name in old.keys() | new.keys()
        if old.get(name) != new.get(name)
    }
    # The index of the log belongs to its readers; it says nothing of its own.
    assert all(name.endswith("-shm") for name in changed), changed


def test_a_store_that_a_later_version_migrates_takes_nothing_more_of_who_has_it_open(
    workspace: Path,
) -> None:
    """As when Holdfast is upgraded while a daemon or a server of the version before runs."""
    with open_workspace(workspace, create=False) as opened:
        save = partial(opened.engine.save, SessionId(SESSION), make_intent("why"))
        save(kind=Kind.MANUAL)
        store, unlocked = opened.store.directory, local_store(opened).unlocked
        cipher = unlocked.keys.cipher("catalog") if unlocked else None
        with contextlib.closing(
            connect(store / "catalog.db", synchronous="FULL", cipher=cipher)
        ) as later:
            rows = "SELECT count(*) FROM checkpoints"
            before = later.execute(rows).fetchall()
            # A step may change nothing but rows.
            migrate(later, (*MIGRATIONS, Migration("9999-later", "DELETE FROM facts WHERE 0")))
            for _ in range(2):
                with pytest.raises(NewerStore, match="9999-later"):
                    save(kind=Kind.MANUAL)
            assert later.execute(rows).fetchall() == before

"""An encrypted store after something went wrong: read back, and repaired with its key at hand."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import apsw
import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local.encryption.sealed_database import FRAME_BYTES, PAGE_BYTES
from holdfast.bootstrap.maintenance import repair_workspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import KeyNeeded, UnknownReference
from holdfast.domain.paths import STAGING_PREFIX
from tests.adapters.local.tree_pictures import picture
from tests.behind_the_api import local_store
from tests.support.encrypted_stores import HIDDEN, files_with, make_encrypted, problems
from tests.support.hostile_trees import fill
from tests.support.strides import strides

pytestmark = pytest.mark.requirement("ST-6")


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "keys" / "key"
    path.parent.mkdir()
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(path))
    return path


@pytest.fixture
def workspace(tmp_path: Path, key: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    make_encrypted(workspace, key)
    return workspace


@pytest.mark.requirement("RL-3")
@pytest.mark.parametrize("name", ["catalog.db", "objects/index.db", "."])
def test_after_a_failed_sync_its_databases_are_read_back_with_their_keys(
    workspace: Path, holdfast_home: Path, name: str
) -> None:
    with SessionCheckpointer(workspace, "session") as session:
        fill(workspace / "file", b"first")
        first = session.checkpoint("one")
    (store,) = (holdfast_home / "stores").iterdir()
    (store / "suspect").write_text(json.dumps([name]))
    with SessionCheckpointer(workspace, "session") as session:
        fill(workspace / "file", b"second")
        session.checkpoint("two")
        session.restore(first)
    assert not (store / "suspect").exists()
    assert (workspace / "file").read_bytes() == b"first"
    assert problems(workspace) == []


@pytest.mark.requirement("ST-4", "ST-5")
def test_its_content_is_repaired_and_nothing_shows(workspace: Path, holdfast_home: Path) -> None:
    lost, kept = (random.Random(n).randbytes(50_000) for n in range(2))
    fill(workspace / "lost", lost)
    fill(workspace / "confidential-name", b"the-launch-code")
    with SessionCheckpointer(workspace, "secret-session") as session:
        session.checkpoint("a-telling-reason", tags=("my-tag",))
        fill(workspace / "kept", kept)
        second = session.checkpoint("a-telling-reason")
    (pack,) = (holdfast_home / "stores").glob("*/objects/packs/*.pack")
    data = bytearray(pack.read_bytes())
    for position in range(5_000, len(data), 40_000):
        data[position] ^= 1
    pack.write_bytes(data)
    (workspace / "lost").unlink()
    assert problems(workspace)
    before = picture(holdfast_home)
    assert repair_workspace(workspace, act=False).plan.steps
    assert picture(holdfast_home).keys() == before.keys()
    assert repair_workspace(workspace, act=True).done
    assert problems(workspace) == []
    assert not repair_workspace(workspace, act=True).plan.steps
    (workspace / "kept").unlink()
    with SessionCheckpointer(workspace, "secret-session") as session:
        session.restore_checkpoint(second, best_effort=True)
        assert (workspace / "kept").read_bytes() == kept
        traces = session.purge_paths("confidential-name").proof.traces
    assert all(trace.file.startswith("set-aside/") for trace in traces)
    # Of the unknown pack; what else was set aside is opened with the key.
    assert {Path(trace.file).name for trace in traces} >= {pack.name, "damaged-checkpoints.json"}
    assert list(files_with(holdfast_home, *HIDDEN)) == []


def history(workspace: Path, saves: int) -> dict[str, bytes]:
    """Checkpoints by name, and what the file was in each; the catalog has folded its log."""
    known: dict[str, bytes] = {}
    with SessionCheckpointer(workspace, "secret-session") as session:
        for number in range(saves):
            known[f"n{number}"] = b"the-launch-code %d" % number
            fill(workspace / "confidential-name", known[f"n{number}"])
            session.checkpoint("a-telling-reason " * 20, name=f"n{number}", tags=("my-tag",))
    with open_workspace(workspace, create=False) as opened:
        local_store(opened).catalog._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return known


def come_back(workspace: Path, known: dict[str, bytes]) -> set[str]:
    """Those that are there; each restores what it held, or is not there at all."""
    found = set()
    with SessionCheckpointer(workspace, "secret-session") as session:
        for name, content in known.items():
            try:
                session.restore(name)
            except UnknownReference:
                continue
            assert (workspace / "confidential-name").read_bytes() == content
            found.add(name)
    return found


@pytest.mark.requirement("ST-4", "RL-4")
@strides(5)
def test_of_a_damaged_catalog_only_the_pages_that_were_hit_are_lost(
    workspace: Path, holdfast_home: Path, stride: int
) -> None:
    known = history(workspace, 45)
    (catalog,) = (holdfast_home / "stores").glob("*/catalog.db")
    sound = catalog.read_bytes()
    worst, mended = len(known), 0
    for page in range(0, len(sound) // PAGE_BYTES, stride):
        damaged = bytearray(sound)
        damaged[page * PAGE_BYTES + 1000] ^= 1
        copied = holdfast_home.parent / f"copy-{page}"
        shutil.copytree(holdfast_home, copied)
        (copied / "stores" / catalog.parent.name / "catalog.db").write_bytes(damaged)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOLDFAST_HOME", str(copied))
            if not problems(workspace):
                continue  # a page that holds nothing
            assert repair_workspace(workspace, act=False).plan.steps
            assert repair_workspace(workspace, act=True).done
            assert problems(workspace) == []
            assert not repair_workspace(workspace, act=True).plan.steps
            worst = min(worst, len(come_back(workspace, known)))
            mended += 1
        assert list(files_with(copied, *HIDDEN)) == []
        shutil.rmtree(copied)
    assert mended > 5
    assert worst > len(known) // 2


@pytest.mark.requirement("ST-4", "RL-4")
def test_frames_of_its_log_that_were_hit_cost_what_they_held(
    workspace: Path, holdfast_home: Path
) -> None:
    known = history(workspace, 10)
    with SessionCheckpointer(workspace, "secret-session") as session:
        (catalog,) = (holdfast_home / "stores").glob("*/catalog.db")
        log = catalog.with_name("catalog.db-wal")
        number = 10
        while log.stat().st_size < 10 * FRAME_BYTES:
            known[f"n{number}"] = b"the-launch-code %d" % number
            fill(workspace / "confidential-name", known[f"n{number}"])
            session.checkpoint("a-telling-reason", name=f"n{number}")
            number += 1
        files = {path: path.read_bytes() for path in (catalog, log)}
    damaged = bytearray(files[log])
    damaged[len(damaged) // 2] ^= 1
    log.write_bytes(damaged)
    catalog.write_bytes(files[catalog])
    catalog.with_name("catalog.db-shm").unlink(missing_ok=True)
    assert problems(workspace)
    assert repair_workspace(workspace, act=True).done
    assert problems(workspace) == []
    kept = come_back(workspace, known)
    assert {f"n{number}" for number in range(10)} <= kept
    assert list(files_with(holdfast_home, *HIDDEN)) == []


@pytest.mark.requirement("ST-4")
@pytest.mark.parametrize("what", ["overwritten", "gone"])
def test_states_whose_catalog_is_lost_altogether_are_named_again(
    workspace: Path, holdfast_home: Path, what: str
) -> None:
    fill(workspace / "file", b"first")
    with SessionCheckpointer(workspace, "session") as session:
        session.checkpoint("one")
    (catalog,) = (holdfast_home / "stores").glob("*/catalog.db")
    if what == "gone":
        catalog.unlink()
    else:
        catalog.write_bytes(b"damaged" * 1000)
    for companion in catalog.parent.glob("catalog.db-*"):
        companion.unlink()
    fill(workspace / "file", b"wrecked")
    outcome = repair_workspace(workspace, act=True)
    assert outcome.done
    assert outcome.plan.lost
    assert problems(workspace) == []
    with SessionCheckpointer.load(workspace, "recovered") as session:
        session.restore("HEAD")
    assert (workspace / "file").read_bytes() == b"first"


@pytest.mark.requirement("ST-4", "RB-3")
def test_its_damaged_journal_is_set_aside_and_what_was_staged_stays_in_the_workspace(
    workspace: Path, holdfast_home: Path
) -> None:
    fill(workspace / "file", b"first")
    with SessionCheckpointer(workspace, "session") as session:
        first = session.checkpoint("one")
    with open_workspace(workspace, create=False) as opened:
        opened.store.journal.write(b"anything")
        journal = opened.store.directory / "journal"
        staging = STAGING_PREFIX + opened.engine.vault.workspace_id.encode() + b"-1"
    journal.write_bytes(journal.read_bytes()[:-1] + b"?")
    fill(workspace / ".holdfast" / os.fsdecode(staging) / "slot", b"the-launch-code")
    assert problems(workspace)
    assert repair_workspace(workspace, act=True).done
    assert problems(workspace) == []
    (slot,) = (workspace / ".holdfast").glob("set-aside-*/*/slot")
    assert slot.read_bytes() == b"the-launch-code"
    assert list(files_with(holdfast_home, *HIDDEN)) == []
    fill(workspace / "file", b"second")
    with SessionCheckpointer(workspace, "session") as session:
        session.restore(first)
    assert (workspace / "file").read_bytes() == b"first"
    assert slot.exists()


@pytest.mark.requirement("ST-4", "ST-6")
def test_a_repair_needs_the_key(
    workspace: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(workspace, 1)
    (catalog,) = (holdfast_home / "stores").glob("*/catalog.db")
    catalog.write_bytes(b"damaged" * 1000)
    monkeypatch.delenv("HOLDFAST_KEY_FILE")
    with pytest.raises(KeyNeeded):
        repair_workspace(workspace, act=True)
    assert catalog.read_bytes() == b"damaged" * 1000

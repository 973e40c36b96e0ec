"""An encrypted store after something went wrong: read back, repaired, or told as beyond repair."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap import open_workspace
from holdfast.domain.errors import StoreDamaged
from holdfast.engine.check import run_checks
from holdfast.ports.progress import NoProgress
from holdfast.upkeep import repair_workspace
from tests.store.tree_pictures import picture
from tests.support.encrypted_stores import files_with, make_encrypted
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("ST-6")

HIDDEN = (
    b"the-launch-code",
    b"confidential-name",
    b"a-telling-reason",
    b"secret-session",
    b"my-tag",
)


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


def problems(workspace: Path) -> list[str]:
    try:
        with open_workspace(workspace, create=False) as opened:
            found = run_checks(opened.engine.vault, data=True, progress=NoProgress())
            return [problem.problem for problem in found]
    except StoreDamaged as error:
        return [error.message]


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
    assert {Path(trace.file).name for trace in traces} == {pack.name}, "it is sealed: nobody knows"
    assert list(files_with(holdfast_home, *HIDDEN)) == []


@pytest.mark.requirement("ST-4")
def test_its_damaged_catalog_is_named_as_what_cannot_be_repaired(
    workspace: Path, holdfast_home: Path
) -> None:
    fill(workspace / "file", b"first")
    with SessionCheckpointer(workspace, "session") as session:
        session.checkpoint("one")
    (catalog,) = (holdfast_home / "stores").glob("*/catalog.db")
    catalog.write_bytes(b"damaged" * 1000)
    catalog.with_name("catalog.db-wal").unlink()
    with pytest.raises(StoreDamaged, match="only the content can be repaired") as refused:
        repair_workspace(workspace, act=True)
    assert "backup" in (refused.value.hint or "")
    assert catalog.read_bytes() == b"damaged" * 1000

"""What an import adds, what it leaves alone, and what it refuses by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import (
    BudgetReached,
    ForeignBundle,
    InvalidIntent,
    NotFound,
    NothingToUndo,
    Refused,
    UsageError,
)
from holdfast.engine.bundles.exporter import export_to_file
from holdfast.engine.bundles.importer import ImportRequest, import_bundle
from holdfast.engine.bundles.selection import select_all
from holdfast.engine.retention.deletion import delete
from holdfast.engine.retention.protection import protection_reasons
from holdfast.ports.catalog import all_checkpoints
from tests.behind_the_api import engine_of
from tests.support.composition import configure
from tests.support.hostile_trees import fill, noise
from tests.support.session_states import get_snapshot, line_end

pytestmark = pytest.mark.requirement("ST-7")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"one")
    return workspace


@pytest.fixture
def bundle(workspace: Path, tmp_path: Path) -> Path:
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("one", name="first")
        fill(workspace / "file", b"two")
        session.checkpoint("two", name="second")
        session.export(tmp_path / "work.holdfast")
    return tmp_path / "work.holdfast"


def _elsewhere(tmp_path: Path) -> Path:
    there = tmp_path / "elsewhere"
    there.mkdir()
    return there


def _sessions(workspace: Path) -> dict[str, list[str]]:
    with open_workspace(workspace, create=True) as opened:
        catalog = opened.engine.vault.catalog
        return {s.id: [c.id for c in catalog.history(s.id)] for s in catalog.sessions()}


def test_importing_twice_changes_nothing_and_says_so(workspace: Path, bundle: Path) -> None:
    before = _sessions(workspace)
    again = SessionCheckpointer.import_bundle(workspace, bundle)
    assert (again.added, again.already_there, again.stored_bytes) == ((), 2, 0)
    assert _sessions(workspace) == before


def test_another_workspaces_session_is_refused_by_name_until_it_is_asked_for(
    bundle: Path, workspace: Path, tmp_path: Path
) -> None:
    there = _elsewhere(tmp_path)
    with pytest.raises(ForeignBundle) as refusal:
        SessionCheckpointer.import_bundle(there, bundle)
    assert str(workspace) in refusal.value.message
    assert "--foreign" in (refusal.value.hint or "")
    assert _sessions(there) == {}
    SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    assert _sessions(there) == _sessions(workspace)


def test_a_dry_run_verifies_and_adds_nothing(bundle: Path, tmp_path: Path) -> None:
    there = _elsewhere(tmp_path)
    said = SessionCheckpointer.import_bundle(there, bundle, foreign=True, dry_run=True)
    assert len(said.added) == 2
    assert _sessions(there) == {}


def test_what_was_deleted_here_comes_back_and_the_rest_stays(workspace: Path, bundle: Path) -> None:
    with open_workspace(workspace, create=False) as opened:
        engine = opened.engine
        session = engine.vault.catalog.sessions()[0]
        head = session.head
        delete(engine, engine.resolve(session.id, "first"))
        said = import_bundle(engine.vault, ImportRequest(bundle))
        assert (len(said.added), said.already_there) == (1, 1)
        after = engine.vault.catalog.session(session.id)
        assert after is not None
        assert after.head == head
        assert engine.resolve(session.id, "first").intent.reasoning == "one"


def test_a_session_that_grew_elsewhere_grows_here(
    workspace: Path, bundle: Path, tmp_path: Path
) -> None:
    there = _elsewhere(tmp_path)
    SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    with SessionCheckpointer(workspace, "work") as session:
        fill(workspace / "file", b"three")
        newest = session.checkpoint("three")
        session.export(bundle, replace=True)
    said = SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    assert said.added == (newest,)
    assert _sessions(there) == _sessions(workspace)


def test_a_session_of_the_same_name_that_is_another_one_is_refused_by_name(
    bundle: Path, tmp_path: Path
) -> None:
    there = _elsewhere(tmp_path)
    with SessionCheckpointer(there, "work") as session:
        session.checkpoint("something else")
    with pytest.raises(Refused, match="'work'") as refusal:
        SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    assert "--as-session" in (refusal.value.hint or "")
    said = SessionCheckpointer.import_bundle(
        there, bundle, foreign=True, as_session="from-elsewhere"
    )
    assert said.sessions == ("from-elsewhere",)
    assert said.renamed == 0


@pytest.mark.requirement("RL-4")
def test_content_that_is_damaged_here_is_taken_from_the_bundle(
    workspace: Path, bundle: Path, holdfast_home: Path
) -> None:
    for pack in (holdfast_home / "stores").glob("*/objects/packs/*.pack"):
        data = bytearray(pack.read_bytes())
        data[8:] = bytes(byte ^ 1 for byte in data[8:])
        pack.write_bytes(data)
    SessionCheckpointer.import_bundle(workspace, bundle, as_session="copy")
    for name, content in (("first", b"one"), ("second", b"two")):
        with SessionCheckpointer.load(workspace, "copy") as copy:
            copy.restore(name)
        assert (workspace / "file").read_bytes() == content


def test_a_second_copy_under_another_name_gets_ids_of_its_own_once(
    workspace: Path, bundle: Path
) -> None:
    said = SessionCheckpointer.import_bundle(workspace, bundle, as_session="copy")
    assert (len(said.added), said.renamed) == (2, 2)
    again = SessionCheckpointer.import_bundle(workspace, bundle, as_session="copy")
    assert again.added == ()
    with SessionCheckpointer.load(workspace, "copy") as copy:
        newest, oldest = copy.history()
        assert newest.parent == oldest.id == said.added[0]
        assert line_end(copy) == newest.id == said.latest
        copy.restore("first")
    assert (workspace / "file").read_bytes() == b"one"


def test_a_checkpoint_that_is_here_with_other_content_is_refused_by_id(
    workspace: Path, bundle: Path
) -> None:
    with open_workspace(workspace, create=False) as opened:
        catalog = opened.engine.vault.catalog
        first, second = all_checkpoints(catalog)
        with opened.engine.vault.lock.hold(), catalog.transaction() as transaction:
            transaction.remove_checkpoint(second.id)
            transaction.set_head(first.session_id, first.id)
        from dataclasses import replace

        from holdfast.domain.checkpoints import NewCheckpoint

        fields = {n: getattr(second, n) for n in NewCheckpoint.__dataclass_fields__}
        with opened.engine.vault.lock.hold(), catalog.transaction() as transaction:
            transaction.add_checkpoint(replace(NewCheckpoint(**fields), tree=first.tree))
    with pytest.raises(Refused, match=second.id):
        SessionCheckpointer.import_bundle(workspace, bundle)


def test_a_name_that_is_taken_in_the_session_is_refused_by_name(
    workspace: Path, bundle: Path
) -> None:
    with open_workspace(workspace, create=False) as opened:
        session = opened.engine.vault.catalog.sessions()[0].id
        delete(opened.engine, opened.engine.resolve(session, "second"))
    with SessionCheckpointer(workspace, "work") as work:
        work.checkpoint("mine", name="second")
    with pytest.raises(InvalidIntent, match="second"):
        SessionCheckpointer.import_bundle(workspace, bundle)


def test_chosen_checkpoints_work_without_those_between_them(
    workspace: Path, tmp_path: Path
) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        ids = []
        for number in range(5):
            fill(workspace / "file", b"%d" % number)
            ids.append(session.checkpoint(f"state {number}"))
        session.export(tmp_path / "some", ids[1], ids[3], ids[1])
    there = _elsewhere(tmp_path)
    said = SessionCheckpointer.import_bundle(there, tmp_path / "some", foreign=True)
    assert said.added == (ids[1], ids[3])
    assert said.latest == ids[3]
    with SessionCheckpointer.load(there, "work") as session:
        newest, oldest = session.history()
        assert (newest.parent, oldest.parent) == (ids[1], None)
        session.restore(ids[1])
    assert (there / "file").read_bytes() == b"1"


def test_all_sessions_travel_together_and_cannot_become_one(
    workspace: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        with SessionCheckpointer(workspace, name) as session:
            session.checkpoint(name)
    bundle = tmp_path / "all"
    with open_workspace(workspace, create=False) as opened:
        export_to_file(opened.engine.vault, select_all(opened.engine.vault), bundle)
    there = _elsewhere(tmp_path)
    with pytest.raises(Refused, match="2 sessions"):
        SessionCheckpointer.import_bundle(there, bundle, foreign=True, as_session="both")
    SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    assert _sessions(there) == _sessions(workspace)


@pytest.mark.requirement("ST-3", "ST-7")
def test_a_bundle_that_does_not_fit_into_the_budget_is_refused_whole(
    workspace: Path, tmp_path: Path
) -> None:
    fill(workspace / "noise", noise(3_000_000))
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("large")
        session.export(tmp_path / "large")
    there = _elsewhere(tmp_path)
    configure(there, budget=1_000_000)
    with pytest.raises(BudgetReached):
        SessionCheckpointer.import_bundle(there, tmp_path / "large", foreign=True)
    assert _sessions(there) == {}
    configure(there, budget=10_000_000)
    SessionCheckpointer.import_bundle(there, tmp_path / "large", foreign=True)
    assert "work" in _sessions(there)


def test_an_imported_session_can_be_listed_compared_and_gone_on_with(
    bundle: Path, tmp_path: Path
) -> None:
    there = _elsewhere(tmp_path)
    SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    with SessionCheckpointer.load(there, "work") as session:
        assert session.diff("first", "second") == {"file": "modified"}
        session.restore("second")
        fill(there / "file", b"three")
        made = session.checkpoint("three")
        assert get_snapshot(session, "HEAD~1").id != made
        session.restore("first")
        session.undo()
    assert (there / "file").read_bytes() == b"three"


@pytest.mark.requirement("ST-6", "ST-7")
def test_the_file_is_private_appears_whole_and_replaces_nothing_unasked(
    bundle: Path, workspace: Path, tmp_path: Path
) -> None:
    assert bundle.stat().st_mode & 0o777 == 0o600
    before = bundle.read_bytes()
    with SessionCheckpointer(workspace, "work") as session:
        with pytest.raises(Refused, match="already"):
            session.export(bundle)
        (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
        with pytest.raises(Refused, match="already"):
            session.export(tmp_path / "dangling")
        with pytest.raises(UsageError):
            session.export(tmp_path)
        with pytest.raises(Refused, match="cannot write"):
            session.export(tmp_path / "missing/file")
        with pytest.raises(NotFound):
            session.export(tmp_path / "unknown", "no-such-checkpoint")
        assert bundle.read_bytes() == before
        session.export(bundle, replace=True)
    leftovers = [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")]
    assert leftovers == []
    assert not (tmp_path / "nowhere").exists()


def test_a_session_without_checkpoints_has_nothing_to_export(tmp_path: Path) -> None:
    workspace = _elsewhere(tmp_path)
    with SessionCheckpointer(workspace, "empty") as session, pytest.raises(NotFound):
        session.export(tmp_path / "file")
    assert json.dumps(_sessions(workspace)) == "{}"


@pytest.mark.requirement("SE-5", "ST-2")
def test_rounds_come_along_and_go_on_where_they_were(workspace: Path, tmp_path: Path) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("how it began")
        fill(workspace / "file", b"good")
        approved = session.approve("it works").approved.id
        fill(workspace / "file", b"bad")
        end = session.reset().restored.safety
        fill(workspace / "file", b"better")
        session.approve()
        before = session.rounds()
        session.export(tmp_path / "rounds.holdfast")
    there = _elsewhere(tmp_path)
    SessionCheckpointer.import_bundle(there, tmp_path / "rounds.holdfast", foreign=True)
    with SessionCheckpointer(there, "work") as session:
        assert session.rounds() == before
        assert [one.status.value for one in before] == ["merged", "abandoned", "merged", "active"]
        assert session.approval().active.name == "session_4"
        assert session.approval().last_approved_at_ns == before[2].ended_at_ns
        protected = protection_reasons(engine_of(session).vault)
        assert protected[approved] == "it is part of an approved round"
        assert protected[end] == "an abandoned round ended there"
        with pytest.raises(NothingToUndo):
            session.undo()
        session.restore(end)
        assert (there / "file").read_bytes() == b"bad"
        assert session.approve().merged == "session_4"
        assert [one.name for one in session.rounds()] == [f"session_{n}" for n in range(1, 6)]


@pytest.mark.requirement("SE-5")
def test_of_rounds_whose_checkpoints_stay_behind_nothing_is_reported(
    workspace: Path, tmp_path: Path
) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("one", name="first")
        session.approve("a secret success")
        fill(workspace / "file", b"two")
        session.checkpoint("two", name="second")
        session.export(tmp_path / "some.holdfast", "second")
    there = _elsewhere(tmp_path)
    SessionCheckpointer.import_bundle(there, tmp_path / "some.holdfast", foreign=True)
    with SessionCheckpointer(there, "work") as session:
        merged, active = session.rounds()
        assert (merged.name, merged.approved, merged.message) == ("session_1", None, None)
        assert active.name == "session_2"
        assert session.reset().abandoned == "session_2"

"""A restore that was looked at first, and superseded by others before it began."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused, UnknownReference
from holdfast.domain.ids import SessionId
from holdfast.engine.retention.deletion import delete
from holdfast.engine.undo.undo import redo_request, undo_request
from tests.behind_the_api import engine_of
from tests.support.hostile_trees import fill

SESSION = SessionId("s")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"a file")
    fill(workspace / "other", b"one")
    return workspace


@pytest.mark.requirement("RB-4", "CP-8")
def test_a_checkpoint_that_was_deleted_meanwhile_is_not_restored(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session, SessionCheckpointer(workspace, "s") as two:
        first = session.checkpoint("first", name="first")
        fill(workspace / "file", b"two")
        session.checkpoint("second")
        engine, others = engine_of(session), engine_of(two)
        request = engine.restore_request(SESSION, "first")
        delete(others, others.resolve(SESSION, first))
        with pytest.raises(
            UnknownReference, match="first was deleted in the meantime; nothing was restored"
        ) as refused:
            engine.restore(request)
        assert refused.value.hint is not None
        assert session.stats["restores"] == 0
    assert (workspace / "file").read_bytes() == b"two"


@pytest.mark.requirement("RB-2", "CP-8")
def test_an_undo_that_another_process_has_done_meanwhile_is_not_done_again(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session, SessionCheckpointer(workspace, "s") as two:
        first = session.checkpoint("first")
        fill(workspace / "file", b"two")
        session.restore(first)
        engine = engine_of(session)
        undo = undo_request(engine.vault, SESSION)
        two.undo()
        with pytest.raises(Refused, match="ran in the meantime; nothing was undone"):
            engine.restore(undo)
        assert (workspace / "file").read_bytes() == b"two"
        redo = redo_request(engine.vault, SESSION)
        two.redo()
        with pytest.raises(Refused, match="ran in the meantime; nothing was redone"):
            engine.restore(redo)
        assert (workspace / "file").read_bytes() == b"a file"
        two.undo()
        assert (workspace / "file").read_bytes() == b"two"
        assert len(session.history(records=True)) == 1 + 2 * 4


@pytest.mark.requirement("RB-4", "CP-8")
def test_a_checkpoint_is_restored_as_it_is_when_the_restore_begins(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session, SessionCheckpointer(workspace, "s") as two:
        first = session.checkpoint("first")
        fill(workspace / "other", b"two")
        request = engine_of(session).restore_request(SESSION, first)
        fill(workspace / "file", b"present")
        two.purge_paths("file", force=True)
        engine_of(session).restore(request)
        assert (workspace / "file").read_bytes() == b"present"
        assert (workspace / "other").read_bytes() == b"one"

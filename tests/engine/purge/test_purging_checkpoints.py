"""A checkpoint that was removed for good leaves neither its content nor what was said about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from blake3 import blake3

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import Refused
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.engine.repair.check import run_checks
from holdfast.engine.restore.records import described_by_id
from holdfast.ports.progress import NoProgress
from tests.behind_the_api import engine_of
from tests.support.hostile_trees import fill
from tests.support.raw_search import places_of
from tests.support.session_states import get_snapshot

pytestmark = pytest.mark.requirement("ST-5")

LINES = [f"line {n} of a text that many versions share" for n in range(300)]
REASON = "because the customer Ärmelkanal GmbH asked for it confidentially"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "kept", b"kept everywhere")
    return workspace


@pytest.fixture
def session_ids(workspace: Path) -> list[str]:
    """Five versions, each stored against the one before; the third is to go."""
    made = []
    with SessionCheckpointer(workspace, "work") as session:
        for number in range(5):
            lines = list(LINES)
            lines[number * 10] = f"secret-of-version-{number}"
            fill(workspace / "text", "\n".join(lines).encode())
            if number == 2:
                fill(workspace / "only-here", b"content that only the third one has")
                made.append(
                    session.checkpoint(
                        REASON,
                        name="confidential-name",
                        goal_id="goal-that-is-secret",
                        task_id="task-that-is-secret",
                        tags=["tag-that-is-secret"],
                        tool_calls=["Tool(call-that-is-secret)", {"input": "dict-secret"}],
                    )
                )
                (workspace / "only-here").unlink()
            else:
                made.append(session.checkpoint(f"version {number}"))
    return made


SAID = [
    b"confidential-name",
    b"rmelkanal GmbH asked",
    b"goal-that-is-secret",
    b"task-that-is-secret",
    b"tag-that-is-secret",
    b"call-that-is-secret",
    b"dict-secret",
]


def _check(workspace: Path) -> Path:
    with open_workspace(workspace, create=False) as opened:
        vault = opened.engine.vault
        assert list(run_checks(vault, data=True, progress=NoProgress())) == []
        return opened.store.directory


def test_nothing_of_a_purged_checkpoint_is_left(workspace: Path, session_ids: list[str]) -> None:
    store = _check(workspace)
    content = [b"secret-of-version-2", b"content that only the third one has"]
    assert places_of(store, content)
    assert len(places_of(store, SAID)) >= len(SAID)
    with SessionCheckpointer(workspace, "work") as session:
        outcome = session.purge("confidential-name", force=True)
    assert outcome.removed == (session_ids[2],)
    assert outcome.proof.traces == ()
    assert outcome.objects > 0
    only = blake3(b"content that only the third one has").digest()
    assert places_of(store, [*content, *SAID, only, only.hex().encode()]) == []
    _check(workspace)


def test_the_other_checkpoints_stay_whole(workspace: Path, session_ids: list[str]) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.purge(session_ids[2], force=True)
        assert session.get(session_ids[2]) is None
        kept = [i for i in session_ids if i != session_ids[2]]
        assert [s.id for s in session.summaries()] == kept[::-1]
        assert get_snapshot(session, session_ids[3]).parent == session_ids[1]
        for number in (0, 1, 3, 4):
            session.restore(session_ids[number])
            assert b"secret-of-version-%d" % number in (workspace / "text").read_bytes()
            assert (workspace / "kept").read_bytes() == b"kept everywhere"


def test_records_of_restores_forget_the_name(workspace: Path, session_ids: list[str]) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.restore("confidential-name")
        session.undo()
        session.redo()
        session.restore(session_ids[4])
        store = session.save()
        for record in session.summaries(records=True):
            if record.kind == "safety" and record.parent == session_ids[2]:
                session.purge(record.id, force=True)
        session.purge("confidential-name", force=True)
        texts = [s.reasoning_preview for s in session.summaries(records=True)]
    assert places_of(store, [b"confidential-name"]) == []
    assert f"Restored to {session_ids[2][:10]}" in texts
    _check(workspace)


def test_several_go_at_once_and_head_is_on_what_is_left(
    workspace: Path, session_ids: list[str]
) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        outcome = session.purge(session_ids[4], session_ids[3], session_ids[2], force=True)
        assert len(outcome.removed) == 3
        assert session.head_id == session_ids[1]
    store = _check(workspace)
    gone = [b"secret-of-version-%d" % number for number in (2, 3, 4)]
    assert places_of(store, gone) == []
    with SessionCheckpointer(workspace, "work") as session:
        session.purge(*session_ids[:2], force=True)
        assert (session.head_id, session.summaries()) == (None, [])
        session.checkpoint("and it goes on")
    _check(workspace)


@pytest.mark.parametrize(
    ("number", "why"), [(0, "initial"), (4, "HEAD"), (2, "name")], ids=["first", "head", "named"]
)
def test_protected_checkpoints_need_force_and_the_reason_is_reported(
    number: int, why: str, workspace: Path, session_ids: list[str]
) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        with pytest.raises(Refused, match=why) as refusal:
            session.purge(session_ids[number])
        assert "--force" in (refusal.value.hint or "")
        assert len(session.summaries()) == 5
        session.purge(session_ids[number], force=True)
        assert len(session.summaries()) == 4


def test_an_approved_checkpoint_and_one_that_undo_needs_are_protected(
    workspace: Path, session_ids: list[str]
) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        session.restore(session_ids[1])
        undo = next(s.id for s in session.summaries(records=True) if s.kind == "safety")
        with pytest.raises(Refused, match="undo"):
            session.purge(undo)
        vault = engine_of(session).vault
        from holdfast.domain.sessions import Session

        with vault.lock.hold(), vault.catalog.transaction() as transaction:
            approved = CheckpointId(session_ids[3])
            transaction.add_session(Session(SessionId("approver"), 1, approved=approved))
        with pytest.raises(Refused, match="approved round") as refusal:
            session.purge(session_ids[3])
        assert "holdfast reset then goes back to the approval before" in (refusal.value.hint or "")
        session.purge(session_ids[3], force=True)


@pytest.mark.requirement("SE-5")
def test_without_what_was_approved_last_a_reset_goes_back_to_what_was_approved_before(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "rounds"
    fill(workspace / "file", b"first")
    with SessionCheckpointer(workspace, "work") as session:
        session.checkpoint("first")
        fill(workspace / "file", b"approved before")
        session.approve("one")
        fill(workspace / "file", b"approved last")
        last = session.approve("two").approved.id
        fill(workspace / "file", b"not approved")
        session.checkpoint("now")
        session.purge(last, force=True)
        session.reset()
    assert (workspace / "file").read_bytes() == b"approved before"


def test_an_unprotected_one_goes_without_force(workspace: Path, session_ids: list[str]) -> None:
    with SessionCheckpointer(workspace, "work") as session:
        assert session.purge(session_ids[1]).removed == (session_ids[1],)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Restored to x", "Restored to aaaaaaaaaa"),
        ("Before: Restored to x", "Before: Restored to aaaaaaaaaa"),
        ("Restored to x (2 selected paths)", "Restored to aaaaaaaaaa (2 selected paths)"),
        (
            "Before: Undid the restore: back to x, with what changed in the meantime",
            "Before: Undid the restore: back to aaaaaaaaaa, with what changed in the meantime",
        ),
        ("Redid the restore: forward to x", "Redid the restore: forward to aaaaaaaaaa"),
        ("Restored to xx", "Restored to xx"),
        ("Restored to y", "Restored to y"),
        ("the x factor", "the x factor"),
    ],
)
def test_only_texts_about_a_restore_are_reworded(text: str, expected: str) -> None:
    assert described_by_id(text, "x", CheckpointId("a" * 20)) == expected

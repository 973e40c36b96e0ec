"""What was said goes where its checkpoints go: away with them, and into bundles with them."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.maintenance import examine_surroundings, repair_workspace
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import BudgetReached, BundleRefused
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.story import ActivityKind, NewActivity, Role, Rollback, Stretch
from holdfast.engine.bundles.frames import STORY
from holdfast.engine.repair.check import run_checks
from holdfast.engine.retention.cleanup import cleanup, plan_cleanup
from holdfast.engine.retention.deletion import delete
from holdfast.engine.settings import set_setting
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from holdfast.ports.story import NewMessage
from tests.behind_the_api import engine_of
from tests.support.clocks import pass_days
from tests.support.composition import configure
from tests.support.encrypted_stores import files_with, make_encrypted

S = SessionId("s")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("one")
    return workspace


def vault_of(session: SessionCheckpointer) -> Vault:
    return engine_of(session).vault


def say(vault: Vault, *texts: str, session_id: SessionId = S) -> None:
    vault.story.add_messages(session_id, [NewMessage(Role.USER, text, 5) for text in texts])


def note(vault: Vault, checkpoint: str, text: str) -> None:
    vault.story.annotate(S, CheckpointId(checkpoint), text, author="ada", at_ns=1)


def problems(workspace: Path) -> list[str]:
    with open_workspace(workspace, create=False) as opened:
        found = run_checks(opened.engine.vault, data=True, progress=NoProgress())
        return [problem.problem for problem in found]


def story_files(home: Path) -> list[str]:
    return sorted(path.name for path in home.glob("stores/*/story*"))


@pytest.mark.requirement("PF-1", "SE-2")
def test_a_save_without_a_conversation_makes_and_opens_no_story(
    workspace: Path, holdfast_home: Path
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        session.restore(session.checkpoint("again"))
    assert story_files(holdfast_home) == []


@pytest.mark.requirement("SE-2")
def test_a_message_does_not_wait_for_the_holder_of_the_store(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        with vault_of(session).lock.hold(), SessionCheckpointer(workspace, "s") as other:
            say(vault_of(other), "meanwhile")
        assert vault_of(session).story.message_count(S) == 1


@pytest.mark.requirement("SE-7")
def test_a_deleted_checkpoint_takes_its_annotations_along(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first, second = session.checkpoint("one"), session.checkpoint("two")
        vault = vault_of(session)
        note(vault, first, "stays")
        note(vault, second, "goes")
        delete(engine_of(session), engine_of(session).resolve(S, second))
        assert [a.text for a in vault.story.annotations(S)] == ["stays"]


@pytest.mark.requirement("SE-7", "ST-5")
def test_a_purged_checkpoint_leaves_no_trace_of_what_was_said_about_it(
    workspace: Path, holdfast_home: Path
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one")
        (workspace / "a.txt").write_text("two")
        second = session.checkpoint("two")
        vault = vault_of(session)
        say(vault, "a message that stays")
        note(vault, second, "a very telling annotation")
        generation = vault.story.generation()
        session.checkpoint("three")
        outcome = session.purge(second, force=True)
        assert outcome.proof.traces == ()
        assert vault.story.generation() != generation
        assert [m.content for m in vault.story.messages(S)] == ["a message that stays"]
    assert list(files_with(holdfast_home, b"a very telling annotation")) == []
    assert problems(workspace) == []


@pytest.mark.requirement("SE-6", "ST-5")
def test_a_purged_path_takes_the_diffs_of_its_edits_along(
    workspace: Path, holdfast_home: Path
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        saved = CheckpointId(session.checkpoint("one"))
        story = vault_of(session).story
        for path in (b"a.txt", b"b.txt"):
            begun = story.begin(
                NewActivity(S, ActivityKind.EDIT, "why", saved, 1, "nobody", (path,))
            )
            story.settle(begun.number, begun.status.KEPT, at_ns=2, diff=b"-secret of " + path)
        session.purge_paths("a.txt")
        assert [a.paths for a in story.activities(S)] == [(b"b.txt",)]
    assert list(files_with(holdfast_home, b"secret of a.txt")) == []
    assert list(files_with(holdfast_home, b"secret of b.txt")) != []


@pytest.mark.requirement("ST-2", "SE-6")
def test_cleanup_keeps_what_an_open_edit_goes_back_to(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        ids = [session.checkpoint(str(number)) for number in range(3)]
        vault = vault_of(session)
        vault.story.begin(
            NewActivity(S, ActivityKind.EDIT, "why", CheckpointId(ids[1]), 1, "nobody")
        )
        note(vault, ids[1], "kept")
        plan = plan_cleanup(engine_of(session))
        kept = {d.checkpoint.id: d.reason for d in plan.decisions if d.keep}
        assert "edit" in kept[CheckpointId(ids[1])]
        cleanup(engine_of(session), NoProgress())
        assert len(vault.story.annotations(S)) == 1


@pytest.mark.requirement("SE-7", "ST-2")
def test_cleanup_keeps_what_is_annotated(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        set_setting(engine_of(session), "retention", {"tool": {"most": 1}})
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("first")
        made = []
        for number in range(4):
            (workspace / "a.txt").write_text(f"edited {number}")
            saved = engine_of(session).save(S, make_intent(f"Edit {number}"), kind=Kind.TOOL)
            made.append(saved.checkpoint.id)
        session.annotate(made[0], "the last one whose tests passed")
        pass_days(monkeypatch, 2)
        decided = {d.checkpoint.id: d for d in plan_cleanup(engine_of(session)).decisions}
        assert decided[made[0]].keep
        assert decided[made[0]].reason == "protected: it is annotated"
        cleanup(engine_of(session), NoProgress())
        assert [s.id for s in session.history()][1:] == [made[0], session.history()[-1].id]
        assert [a.text for a in session.annotations()] == ["the last one whose tests passed"]


@pytest.mark.requirement("SE-7", "ST-7")
def test_a_session_travels_with_its_conversation_and_annotations(
    workspace: Path, tmp_path: Path
) -> None:
    bundle, other = tmp_path / "bundle", tmp_path / "other"
    other.mkdir()
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        vault = vault_of(session)
        say(vault, "a", "b", "c")
        vault.story.add_rollback(S, Rollback(9, 9, 2, (), (Stretch(1, 2, 9),)))
        note(vault, first, "first words")
        vault.story.annotate(S, CheckpointId(first), "better words", author=None, at_ns=2, number=1)
        outcome = session.export(bundle)
        assert (outcome.messages, outcome.annotations) == (3, 2)
    taken = SessionCheckpointer.import_bundle(other, bundle, foreign=True, as_session="t")
    assert taken.told == 5
    again = SessionCheckpointer.import_bundle(other, bundle, foreign=True, as_session="t")
    assert again.told == 0
    with SessionCheckpointer(other, "t") as session:
        story = vault_of(session).story
        found = story.messages(SessionId("t"))
        assert [(m.content, m.rolled_back_by) for m in found] == [("a", None), ("b", 0), ("c", 0)]
        notes = story.annotations(SessionId("t"), revisions=True)
        assert [(a.text, a.revision, a.author) for a in notes] == [
            ("first words", 1, "ada"),
            ("better words", 2, "ada"),
        ]
        assert {a.checkpoint_id for a in notes} == {session.head_id}
    assert problems(other) == []


@pytest.mark.requirement("SE-7", "ST-7")
def test_of_chosen_checkpoints_only_what_was_written_about_them_travels(
    workspace: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    with SessionCheckpointer(workspace, "s") as session:
        first, second = session.checkpoint("one"), session.checkpoint("two")
        say(vault_of(session), "between us")
        note(vault_of(session), first, "about one")
        note(vault_of(session), second, "about two")
        outcome = session.export(bundle, second)
        assert (outcome.messages, outcome.annotations) == (0, 1)
    assert b"between us" not in bundle.read_bytes()
    assert b"about one" not in bundle.read_bytes()


@pytest.mark.requirement("ST-7")
def test_a_conversation_that_went_on_here_is_not_mixed_with_another(
    workspace: Path, tmp_path: Path
) -> None:
    early, late = tmp_path / "early", tmp_path / "late"
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one")
        vault = vault_of(session)
        say(vault, "a", "b")
        session.export(early)
        say(vault, "c")
        session.export(late)
    other = tmp_path / "other"
    other.mkdir()
    SessionCheckpointer.import_bundle(other, early, foreign=True)
    with open_workspace(other, create=False) as opened:
        say(opened.engine.vault, "something else")
        assert SessionCheckpointer.import_bundle(other, late, foreign=True).told == 0
        found = opened.engine.vault.story.messages(S)
        assert [m.content for m in found] == ["a", "b", "something else"]


@pytest.mark.requirement("ST-7")
def test_a_bundle_whose_messages_do_not_fit_is_refused_whole(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, other = tmp_path / "bundle", tmp_path / "other"
    other.mkdir()
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one")
        say(vault_of(session), "a", "b")
        from holdfast.engine.bundles import exporter as exporting

        parts = [b'{"messages":[],"annotations":[{}]}', b"[]", b'{"messages":[1]}', b"{"]
        gap = b'{"messages":[{"session_id":"s","index":4,"role":"user","content":"x","at_ns":1,'
        gap += b'"tool_calls":[],"source_key":null,"rolled_back":false}],"annotations":[]}'
        for number, part in enumerate([*parts, gap]):
            monkeypatch.setattr(exporting, "encode_story", lambda *_, part=part: [part])
            session.export(bundle, replace=True)
            assert STORY in bundle.read_bytes()
            with pytest.raises(BundleRefused):
                SessionCheckpointer.import_bundle(other, bundle, foreign=True)
            with open_workspace(other, create=True) as opened:
                assert list(opened.engine.vault.catalog.sessions()) == [], number
                assert not opened.engine.vault.has_story()


@pytest.mark.requirement("ST-7", "ST-3")
def test_a_bundle_whose_conversation_would_crowd_saves_out_is_refused_whole(
    workspace: Path, tmp_path: Path
) -> None:
    bundle, other = tmp_path / "bundle", tmp_path / "other"
    other.mkdir()
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one")
        say(vault_of(session), *("x" * 100_000 for _ in range(6)))
        session.export(bundle)
    configure(other, budget=2_000_000)
    with pytest.raises(BudgetReached, match="conversations"):
        SessionCheckpointer.import_bundle(other, bundle, foreign=True)
    with open_workspace(other, create=False) as opened:
        assert list(all_checkpoints(opened.engine.vault.catalog)) == []


@pytest.mark.requirement("ST-4", "RL-4")
def test_a_damaged_story_is_named_by_check_mended_by_repair_and_costs_no_checkpoint(
    workspace: Path, holdfast_home: Path
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        vault = vault_of(session)
        say(vault, *(f"message {number}" for number in range(30)))
        note(vault, first, "a note")
    (path,) = holdfast_home.glob("stores/*/story.db")
    db = apsw.Connection(str(path))
    db.execute("UPDATE messages SET content='a lie' WHERE position=7")
    db.close()
    assert any("checksum" in problem for problem in problems(workspace))
    planned = repair_workspace(workspace, act=False)
    assert [step.type.value for step in planned.plan.steps] == ["rebuild-story"]
    assert repair_workspace(workspace, act=True).done
    assert problems(workspace) == []
    with SessionCheckpointer(workspace, "s") as session:
        found = [m.content for m in vault_of(session).story.messages(S)]
        assert [text for text in found if not text.startswith("message")] == [found[7]]
        assert "lost" in found[7]
        assert [a.text for a in vault_of(session).story.annotations(S)] == ["a note"]
        (workspace / "a.txt").write_text("changed")
        assert session.restore(first) == 1


@pytest.mark.requirement("ST-4", "ST-6")
@pytest.mark.parametrize("damage", ["a page", "everything"])
def test_the_story_of_an_encrypted_store_is_sealed_and_can_be_repaired(
    tmp_path: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    workspace, key = tmp_path / "sealed", tmp_path / "keys" / "key"
    workspace.mkdir()
    key.parent.mkdir()
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(key))
    make_encrypted(workspace, key)
    (workspace / "a.txt").write_text("one")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one")
        say(vault_of(session), *(f"the-launch-code {n} " + "x" * 500 for n in range(60)))
        vault_of(session).story.erase_traces()
    assert list(files_with(holdfast_home, b"the-launch-code")) == []
    (path,) = holdfast_home.glob("stores/*/story.db")
    data = bytearray(path.read_bytes())
    first_byte = len(data) // 2 if damage == "a page" else 0
    length = 10 if damage == "a page" else len(data)
    data[first_byte : first_byte + length] = os.urandom(length)
    path.write_bytes(data)
    assert problems(workspace) != []
    assert repair_workspace(workspace, act=True).done
    assert problems(workspace) == []
    with SessionCheckpointer(workspace, "s") as session:
        found = [m.content for m in vault_of(session).story.messages(S)]
        assert damage == "everything" or sum("launch" in text for text in found) > 30
        say(vault_of(session), "on we go")
        (workspace / "a.txt").write_text("changed")
        assert session.restore(first) == 1
    assert list(files_with(holdfast_home, b"the-launch-code")) == []


@pytest.mark.requirement("CL-1")
def test_doctor_finds_a_story_that_others_may_read(workspace: Path, holdfast_home: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one")
        say(vault_of(session), "a")
    (path,) = holdfast_home.glob("stores/*/story.db")
    path.chmod(0o644)
    symptoms = examine_surroundings(workspace)
    assert any("story.db" in s.finding and s.gravity.value == "warning" for s in symptoms)


@pytest.mark.requirement("RL-3")
def test_a_failed_sync_of_the_story_is_read_back_by_the_next_message_and_costs_no_checkpoint(
    workspace: Path, holdfast_home: Path
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one")
        say(vault_of(session), "a")
    (path,) = holdfast_home.glob("stores/*/story.db")
    path.with_name("story.suspect").write_text('["story.db"]')
    assert any("conversation data failed" in s.finding for s in examine_surroundings(workspace))
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("goes on")
        say(vault_of(session), "b")
        assert [m.content for m in session.messages()] == ["a", "b"]
    assert not path.with_name("story.suspect").exists()

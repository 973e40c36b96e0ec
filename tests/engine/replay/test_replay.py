"""Walking through a session: every state as it was, and nothing of the workspace touched."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint, Kind, Position
from holdfast.domain.errors import NotFound, ObjectMissing, Refused, UnknownReference
from holdfast.domain.ids import Digest, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.story import Role
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.replay.replay import Replay
from holdfast.engine.retention.deletion import delete
from holdfast.engine.stored_objects import entry_at
from holdfast.ports.story import NewMessage
from tests.behind_the_api import engine_of
from tests.support.composition import SESSION, composed
from tests.support.hostile_trees import fill, git
from tests.support.session_states import get_snapshot, line_end
from tests.support.tree_hash import debris, describe

pytestmark = [pytest.mark.requirement("SE-10"), pytest.mark.both_stores]

S = SessionId("s")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SessionCheckpointer]:
    """Three checkpoints, then back to the first one with unsaved work."""
    workspace = tmp_path / "project"
    fill(workspace / "src/app.py", b"one\n")
    fill(workspace / "notes", b"\xff\0 not text")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("the first", name="first", confidence=0.4)
        fill(workspace / "src/app.py", b"one\ntwo\n")
        session.checkpoint("the second", name="second")
        (workspace / "notes").unlink()
        fill(workspace / "later", b"later\n")
        session.checkpoint("the third", name="third")
        fill(workspace / "unsaved", b"nobody saved this\n")
        session.restore("first")
        yield session


def _changes(replay: Replay) -> dict[bytes, str]:
    return {change.path: change.type.value for change in replay.changes()}


def test_steps_are_the_recorded_actions_in_order(session: SessionCheckpointer) -> None:
    with session.replay() as replay:
        actions = [(step.action.value, step.checkpoint.name) for step in replay.steps]
        assert actions == [
            ("checkpoint", "first"),
            ("checkpoint", "second"),
            ("checkpoint", "third"),
            ("restore", None),
        ]
        assert replay.position == 3
        assert replay.step.checkpoint.id == line_end(session)
        assert [step.index for step in replay.steps] == [0, 1, 2, 3]


def test_steps_are_a_sequence_also_from_its_end(session: SessionCheckpointer) -> None:
    session.add_message("user", "and now?")
    session.checkpoint("the fourth")
    with session.replay() as replay:
        steps = list(replay.steps)
        assert replay.steps[-1] == steps[-1]
        assert replay.steps[-2:] == steps[-2:]
        assert list(reversed(replay.steps)) == steps[::-1]
        for beyond in (len(steps), -len(steps) - 1):
            with pytest.raises(IndexError):
                replay.steps[beyond]


def test_one_steps_forward_and_back_and_never_past_the_ends(session: SessionCheckpointer) -> None:
    with session.replay("second") as replay:
        assert replay.step.checkpoint.name == "second"
        assert replay.back().checkpoint.name == "first"
        assert replay.back().checkpoint.name == "first"
        assert replay.forward().checkpoint.name == "second"
        assert replay.last().action.value == "restore"
        assert replay.forward().index == 3
        assert replay.first().index == 0
        assert replay.go_to(99).index == 3


def test_each_state_can_be_read_as_it_was(session: SessionCheckpointer) -> None:
    with session.replay("first") as replay:
        assert replay.files() == ["notes", "src/app.py"]
        assert replay.read("src/app.py") == b"one\n"
        assert replay.read("notes") == b"\xff\0 not text"
        replay.forward()
        assert replay.read("src/app.py") == b"one\ntwo\n"
        replay.forward()
        assert replay.files() == ["later", "src/app.py"]
        assert [path for path, _ in replay.entries("src")] == [b"src/app.py"]
        for missing in ("notes", "nowhere/at/all", "later/below"):
            with pytest.raises(NotFound, match="does not exist at this step"):
                replay.read(missing)
        with pytest.raises(NotFound, match="is not a file"):
            replay.read("src")
        with pytest.raises(NotFound, match="is not a directory"):
            replay.entries("later")


def test_each_step_tells_what_it_changed(session: SessionCheckpointer) -> None:
    with session.replay("first") as replay:
        assert _changes(replay) == {b"notes": "added", b"src/app.py": "added"}
        replay.forward()
        assert _changes(replay) == {b"src/app.py": "modified"}
        [change] = replay.changes()
        diff = replay.diff(change)
        assert diff is not None
        assert [line.text for hunk in diff.hunks() for line in hunk.lines] == [b"one", b"two"]
        replay.forward()
        assert _changes(replay) == {b"notes": "removed", b"later": "added"}
        # A restore began at what was really there, which its safety checkpoint has.
        replay.forward()
        assert replay.step.before is not None
        assert replay.step.before.kind is Kind.SAFETY
        assert _changes(replay)[b"unsaved"] == "removed"
        assert _changes(replay)[b"src/app.py"] == "modified"


def test_a_restore_of_some_paths_changed_only_those(session: SessionCheckpointer) -> None:
    fill(session.workspace / "unsaved", b"once more")
    session.restore_checkpoint("second", ["src"])
    with session.replay() as replay:
        assert replay.step.action.value == "restore"
        assert _changes(replay) == {b"src/app.py": "modified"}
    session.undo()
    with session.replay() as replay:
        assert replay.step.action.value == "undo"
        assert _changes(replay) == {b"src/app.py": "modified"}


def test_a_safety_checkpoint_can_be_opened_too(session: SessionCheckpointer) -> None:
    safety = next(c for c in session.summaries(records=True) if c.kind == "safety")
    with session.replay(safety.id) as replay:
        assert replay.read("unsaved") == b"nobody saved this\n"
        assert replay.back().checkpoint.name == "third"
        assert replay.go_to(replay.position + 2).action.value == "restore"


def test_an_unknown_checkpoint_and_an_empty_session_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with SessionCheckpointer(tmp_path / "empty", "s") as session:
        with pytest.raises(UnknownReference):
            session.replay()
        session.checkpoint("why")
        with pytest.raises(UnknownReference):
            session.replay("nothing-by-that-name")


def test_another_sessions_steps_are_not_seen(session: SessionCheckpointer) -> None:
    with SessionCheckpointer(session.workspace, "other") as other:
        other.checkpoint("of somebody else")
        with other.replay() as replay:
            assert [step.checkpoint.intent.reasoning for step in replay.steps] == [
                "of somebody else"
            ]


def test_the_messages_up_to_each_state_are_there(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    with composed(workspace) as opened:
        engine = opened.engine

        def say(*texts: str) -> None:
            engine.vault.story.add_messages(
                SESSION, [NewMessage(Role.USER, text, at_ns=1) for text in texts]
            )

        def save(index: int | None, tool: str | None = None) -> None:
            intent = make_intent("why", goal_id="goal")
            engine.save(SESSION, intent, position=Position(index, tool))

        save(None)
        say("make it faster", "I did")
        save(1, "tool-7")
        say("make it safer")
        save(2)
        start = engine.resolve(SESSION, "HEAD")
        with Replay(engine.vault, SESSION, start, temporary=tmp_path) as replay:
            assert [m.content for m in replay.messages()] == [
                "make it faster",
                "I did",
                "make it safer",
            ]
            assert [m.content for m in replay.new_messages()] == ["make it safer"]
            replay.back()
            assert [m.index for m in replay.new_messages()] == [0, 1]
            state = replay.agent_state()
            assert (state.message_index, state.tool_use_id) == (1, "tool-7")
            assert (state.intent.goal_id, state.round) == ("goal", "session_1")
            replay.back()
            assert replay.messages() == ()
            assert replay.new_messages() == ()


def test_what_was_saved_besides_files_is_reported(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"1")
    git(workspace, "init", "--initial-branch", "trunk")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("before the branch")
        git(workspace, "checkout", "-b", "experiment")
        session.checkpoint("on the branch")
        with session.replay() as replay:
            assert any(name == "git" and "experiment" in said for name, said in replay.components())
            replay.back()
            assert any(name == "git" and "trunk" in said for name, said in replay.components())


def _lose(workspace: Path, *digests: Digest) -> None:
    with open_workspace(workspace, create=False) as opened, opened.store.hold():
        opened.engine.vault.objects.forget(digests)


def test_damage_costs_the_step_it_hit_and_no_other(session: SessionCheckpointer) -> None:
    with open_workspace(session.workspace, create=False) as opened:
        second = opened.engine.resolve(SessionId("s"), "second")
        entry = entry_at(opened.engine.vault.load_tree, second.tree, b"src/app.py")
        assert isinstance(entry, FileEntry)
    _lose(session.workspace, entry.digest)
    with SessionCheckpointer(session.workspace, "s") as again, again.replay("second") as replay:
        assert _changes(replay) == {b"src/app.py": "modified"}
        for act in (replay.read, replay.materialise):
            with pytest.raises(ObjectMissing):
                act("src/app.py")
        shown = replay.materialise("notes")
        assert shown.read_bytes() == b"\xff\0 not text"
        assert {path.name for path in shown.parent.rglob("*")} <= {"src", "notes"}
        replay.first()
        assert replay.read("src/app.py") == b"one\n"
        replay.go_to(2)
        assert replay.read("later") == b"later\n"


def test_a_state_that_is_gone_can_be_stepped_past(session: SessionCheckpointer) -> None:
    with open_workspace(session.workspace, create=False) as opened:
        second = opened.engine.resolve(SessionId("s"), "second")
    _lose(session.workspace, second.tree)
    with SessionCheckpointer(session.workspace, "s") as again, again.replay("second") as replay:
        for act in (replay.changes, replay.files, replay.materialise):
            with pytest.raises(ObjectMissing):
                act()
        replay.back()
        assert replay.files() == ["notes", "src/app.py"]
        replay.last()
        assert b"unsaved" in _changes(replay)


def test_nothing_of_the_workspace_is_touched(session: SessionCheckpointer) -> None:
    fill(session.workspace / "half done", b"x")
    os.utime(session.workspace / "src", ns=(10**18, 10**18))
    before, times = describe(session.workspace, mtimes=True), _times(session.workspace)
    held = session.summaries(records=True)
    with session.replay("first") as replay:
        for _ in replay.steps:
            list(replay.entries())
            replay.changes()
            replay.materialise()
            replay.forward()
    assert describe(session.workspace, mtimes=True) == before
    assert _times(session.workspace) == times
    assert session.summaries(records=True) == held
    assert debris(session.workspace) == []


def _times(workspace: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in [workspace, *workspace.rglob("*")]}


def test_opening_a_replay_reads_no_step_but_the_current_one(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = engine_of(session).vault.catalog
    read: list[str] = []
    asked = catalog.checkpoint

    def noted(session_id: SessionId, checkpoint_id: str) -> Checkpoint | None:
        read.append(checkpoint_id)
        return asked(session_id, checkpoint_id)

    for number in range(10):
        session.checkpoint(f"more {number}")
    start = get_snapshot(session, "HEAD~4")
    with session.replay("HEAD~4") as replay:
        monkeypatch.setattr(catalog, "checkpoint", noted)
        assert replay.step.checkpoint.id == start.id
        assert read == [start.id, start.parent]
        assert len(replay.steps) == replay.position + 5


def test_a_step_that_is_deleted_meanwhile_is_reported_and_the_others_are_walked_to(
    session: SessionCheckpointer,
) -> None:
    gone = session.checkpoint("to be deleted")
    last = session.checkpoint("the last")
    with session.replay() as replay:
        engine = engine_of(session)
        delete(engine, engine.resolve(S, gone))
        with pytest.raises(NotFound, match="no longer exists"):
            replay.back()
        assert replay.position == len(replay.steps) - 2
        assert replay.forward().checkpoint.id == last
        replay.first()
        assert replay.files() != []


def test_a_closed_replay_reads_nothing(session: SessionCheckpointer) -> None:
    with session.replay() as replay:
        pass
    for act in (replay.files, replay.changes, replay.messages, replay.materialise):
        with pytest.raises(Refused, match="closed"):
            act()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_was_done_each_step_reads_as_it_was_then(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    workspace = tmp_path / "project"
    workspace.mkdir()
    states: dict[str, dict[str, bytes]] = {}
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(12):
            name = f"{dice.choice('ab')}/{dice.choice('xyz')}"
            if (workspace / name).exists() and dice.random() < 0.4:
                (workspace / name).unlink()
            else:
                fill(workspace / name, dice.randbytes(dice.randrange(200)))
            if number > 3 and dice.random() < 0.3:
                session.restore(dice.choice(list(states)))
                taken = str(line_end(session))
            else:
                taken = session.checkpoint(f"step {number}")
            states[taken] = _contents(workspace)
        with session.replay("initial") as replay:
            assert [step.checkpoint.id for step in replay.steps] == list(states)
            for step in replay.steps:
                replay.go_to(step.index)
                expected = states[step.checkpoint.id]
                assert {path: replay.read(path) for path in replay.files()} == expected
                assert _contents(replay.materialise()) == expected


def _contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }

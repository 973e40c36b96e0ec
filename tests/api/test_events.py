"""Workspace events are delivered in order, once, from any number on, no matter who caused them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer, Workspace
from holdfast.adapters.local.event_log import (
    InotifyListener,
    PollingListener,
    open_change_listener,
)
from holdfast.adapters.local.system import SystemClock
from holdfast.api import events as feed
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import NoSpace, NotFound, UsageError
from holdfast.domain.events import Event
from holdfast.domain.ids import SessionId
from holdfast.domain.sessions import Session
from holdfast.engine.history import events as taking_in
from holdfast.engine.retention.deletion import delete
from holdfast.engine.sessions.lifecycle import archive
from tests.behind_the_api import local_store
from tests.support.encrypted_stores import files_with, make_encrypted
from tests.support.hostile_trees import fill
from tests.support.read_only import told_read_only

pytestmark = pytest.mark.requirement("SE-9")

PATIENCE_S = 60.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    fill(place / "file", b"1")
    return place


@pytest.fixture
def session(place: Path) -> Iterator[SessionCheckpointer]:
    with SessionCheckpointer(place, "work") as session:
        yield session


def _types(events: list[Event]) -> list[str]:
    return [event.type.value for event in events]


def _present(place: Path, after: int = 0) -> list[Event]:
    with Workspace(place) as workspace:
        return list(workspace.events(after))


def _work(session: SessionCheckpointer) -> tuple[str, str]:
    """One of everything."""
    file = session.workspace / "file"
    first = session.checkpoint("first")
    file.write_bytes(b"2")
    second = session.checkpoint("second")
    session.restore(first)
    session.undo()
    session.redo()
    session.undo()
    session.approve("good")
    with session.editing(["file"]):
        file.write_bytes(b"3")
    session.annotate(second, "remember this")
    session.add_message("user", "go on")
    session.reset()
    return first, second


def test_everything_that_happens_is_reported_in_its_order(session: SessionCheckpointer) -> None:
    first, second = _work(session)
    told = _present(session.workspace)
    assert [kind for kind in _types(told) if kind not in ("checkpoint", "status")] == [
        "restore",
        "undo",
        "redo",
        "undo",
        "approval",
        "file_edit",
        "annotation",
        "message",
        "reset",
    ]
    saved = [event.checkpoint for event in told if event.type == "checkpoint"]
    assert saved[:2] == [first, second]
    assert [event.about["status"] for event in told if event.type == "status"] == ["active"]
    [edit] = [event for event in told if event.type == "file_edit"]
    assert (edit.session_id, edit.about["status"]) == ("work", "kept")
    [note] = [event for event in told if event.type == "annotation"]
    assert note.checkpoint == second
    [said] = [event for event in told if event.type == "message"]
    assert said.about == {"message": 0, "role": "user"}
    numbers = [event.number for event in told]
    assert numbers == sorted(set(numbers))


def test_a_deletion_a_setting_and_a_status_are_reported(session: SessionCheckpointer) -> None:
    first = session.checkpoint("first")
    session.checkpoint("second")
    place = session.workspace
    before = _present(place)[-1].number
    with open_workspace(place, create=False) as opened:
        engine = opened.engine
        with engine.vault.lock.hold(), engine.vault.catalog.transaction() as changes:
            changes.set_setting("auto_interval", "7")
        delete(engine, engine.resolve(SessionId("work"), first))
    session.archive()
    told = _present(place, before)
    assert {(event.type.value, event.about.get("setting")) for event in told} >= {
        ("settings", "auto_interval"),
        ("deletion", None),
    }
    assert "archived" in [event.about.get("status") for event in told]
    [gone] = [event for event in told if event.type == "deletion"]
    assert gone.checkpoint == first


def _statuses(events: list[Event], session_id: str) -> list[object]:
    return [
        event.about["status"]
        for event in events
        if event.type == "status" and event.session_id == session_id
    ]


def _read_elsewhere(place: Path, after: int, session_id: str) -> list[str]:
    """The same, as another process reads them."""
    read = "import sys; from holdfast import Workspace\n"
    read += "for event in Workspace(sys.argv[1]).events(int(sys.argv[2])):\n"
    read += "    if event.type == 'status' and event.session_id == sys.argv[3]:\n"
    read += "        print(event.about['status'])"
    done = subprocess.run(
        [sys.executable, "-c", read, str(place), str(after), session_id],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize("before", ["active", "ended", "archived"])
def test_a_deleted_session_is_reported_as_deleted(
    session: SessionCheckpointer, before: str
) -> None:
    place = session.workspace
    session.checkpoint("first")
    with SessionCheckpointer(place, "other") as other:
        other.checkpoint("this one stays")
    if before == "ended":
        session.end()
    if before == "archived":
        session.archive()
    seen = _present(place)
    assert _statuses(seen, "work")[-1] == before
    session.delete_session()
    assert _read_elsewhere(place, seen[-1].number, "work") == ["deleted"]
    told = _present(place, seen[-1].number)
    assert _statuses(told, "work") == ["deleted"]
    types = [event.type.value for event in told if event.session_id == "work"]
    assert types == ["deletion", "status"]
    assert _present(place, told[-1].number) == []


def test_a_session_that_begins_again_after_its_deletion_is_active_again(
    session: SessionCheckpointer,
) -> None:
    session.checkpoint("first")
    seen = _present(session.workspace)[-1].number
    session.delete_session()
    assert _statuses(_present(session.workspace, seen), "work") == ["deleted"]
    with SessionCheckpointer(session.workspace, "work") as again:
        again.checkpoint("once more")
    assert _statuses(_present(session.workspace, seen), "work") == ["deleted", "active"]


def test_a_first_reader_hears_of_a_deletion_after_what_was_deleted(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking_in, "_AT_ONCE", 2)
    place = session.workspace
    for number in range(3):
        (place / "file").write_bytes(b"%d" % number)
        session.checkpoint(f"number {number}")
    session.delete_session()
    told = [event for event in _present(place) if event.session_id == "work"]
    assert _statuses(told, "work") == ["deleted"]
    assert told[-1].type == "status"
    for path in session.save().glob("events.db*"):
        path.unlink()
    again = [event for event in _present(place) if event.session_id == "work"]
    assert [event.about for event in again] == [event.about for event in told]


def test_a_session_that_was_archived_is_reported_once(session: SessionCheckpointer) -> None:
    place = session.workspace
    session.checkpoint("first")
    seen = _present(place)[-1].number
    session.archive()
    assert _statuses(_present(place, seen), "work") == ["archived"]
    assert _read_elsewhere(place, seen, "work") == ["archived"]
    for path in session.save().glob("events.db*"):
        path.unlink()
    assert _statuses(_present(place), "work") == ["archived"]


def test_a_session_archived_before_its_first_checkpoint_is_not_taken_for_deleted(
    session: SessionCheckpointer,
) -> None:
    session.checkpoint("first")
    with open_workspace(session.workspace, create=False) as opened:
        engine = opened.engine
        with engine.vault.lock.hold(), engine.vault.catalog.transaction() as changes:
            changes.add_session(Session(SessionId("empty"), 1))
        assert archive(engine, SessionId("empty"))
    assert _statuses(_present(session.workspace), "empty") == ["archived"]


def test_an_archived_session_that_a_reader_missed_is_reported_before_its_deletion(
    session: SessionCheckpointer,
) -> None:
    session.checkpoint("first")
    seen = _present(session.workspace)[-1].number
    session.archive()
    session.delete_session()
    assert _statuses(_present(session.workspace, seen), "work") == ["archived", "deleted"]


def test_settings_are_reported_as_they_are_when_someone_reads(session: SessionCheckpointer) -> None:
    session.checkpoint("first")
    with Workspace(session.workspace) as workspace:
        seen = workspace.newest_event()
        workspace.settings.set("auto_interval", 7)
        workspace.settings.set("auto_interval", 8)
        told = [event.about for event in workspace.events(seen)]
        assert told == [{"setting": "auto_interval"}]
        seen = workspace.newest_event()
        workspace.settings.set("auto_interval", 9)
        workspace.settings.set("auto_interval", 8)
        assert list(workspace.events(seen)) == []


def test_every_follower_gets_the_same_numbers_and_goes_on_where_it_stopped(
    session: SessionCheckpointer, rng: random.Random
) -> None:
    _work(session)
    place = session.workspace
    whole = _present(place)
    for _ in range(10):
        cut = rng.randrange(len(whole))
        assert _present(place, whole[cut].number) == whole[cut + 1 :]
    session.checkpoint("one more")
    assert _types(_present(place, whole[-1].number)) == ["checkpoint"]


def test_an_edit_is_reported_when_it_has_ended(session: SessionCheckpointer) -> None:
    place = session.workspace
    with session.editing(["file"]):
        during = _present(place)
        (place / "file").write_bytes(b"other")
    assert "file_edit" not in _types(during)
    assert _types(_present(place, during[-1].number)) == ["file_edit"]


def test_a_clock_that_goes_back_changes_no_order(
    session: SessionCheckpointer,
) -> None:
    made = [session.checkpoint("now")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemClock, "now_ns", staticmethod(lambda: 1_000_000_000))
        made.append(session.checkpoint("long ago"))
    made.append(session.checkpoint("now again"))
    told = [e.checkpoint for e in _present(session.workspace) if e.type == "checkpoint"]
    assert told == made


def test_what_another_process_saves_wakes_a_follower(session: SessionCheckpointer) -> None:
    session.checkpoint("first")
    place = session.workspace
    save = "import sys; from holdfast import SessionCheckpointer as S;"
    save += "print(S(sys.argv[1], 'theirs').checkpoint('by another process'))"
    with Workspace(place) as workspace:
        last = [event.number for event in workspace.events()][-1]
        following = workspace.events(last, follow=True, timeout_s=PATIENCE_S)
        done = subprocess.run(
            [sys.executable, "-c", save, str(place)], capture_output=True, text=True, check=True
        )
        told = [next(following), next(following)]
        assert {event.type.value for event in told} == {"checkpoint", "status"}
        assert done.stdout.strip() in [event.checkpoint for event in told]


def test_a_follower_ends_when_nothing_happens_or_the_workspace_is_closed(
    session: SessionCheckpointer,
) -> None:
    session.checkpoint("first")
    with Workspace(session.workspace) as workspace:
        assert _types(list(workspace.events(follow=True, timeout_s=0.01)))[0] == "checkpoint"
        told: list[Event] = []
        began = threading.Event()

        def follow() -> None:
            for event in workspace.events(follow=True):
                told.append(event)
                began.set()

        follower = threading.Thread(target=follow)
        follower.start()
        assert began.wait(PATIENCE_S)
    follower.join(PATIENCE_S)
    assert not follower.is_alive()
    with pytest.raises(UsageError):
        next(workspace.events(follow=True))


def test_two_hundred_followers_hear_everything(session: SessionCheckpointer) -> None:
    session.checkpoint("first")
    heard: list[list[str | None]] = [[] for _ in range(200)]
    with Workspace(session.workspace) as workspace:
        last = [event.number for event in workspace.events()][-1]

        def follow(mine: list[str | None]) -> None:
            for event in workspace.events(last, follow=True):
                mine.append(event.checkpoint)
                if len(mine) == 3:
                    return

        followers = [threading.Thread(target=follow, args=(mine,)) for mine in heard]
        for follower in followers:
            follower.start()
        made = [session.checkpoint(f"number {n}") for n in range(3)]
        for follower in followers:
            follower.join(PATIENCE_S)
    assert heard == [made] * 200


@pytest.mark.linux
def test_nothing_is_looked_at_while_nothing_happens(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.checkpoint("first")
    looks = 0
    batch = taking_in._Batch

    def counted(*arguments: object) -> object:
        nonlocal looks
        looks += 1
        return batch(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(taking_in, "_Batch", counted)
    with Workspace(session.workspace) as workspace:
        assert isinstance(workspace._opened.store.open_change_listener(), InotifyListener)
        list(workspace.events(follow=True, timeout_s=0.01))
        settled = looks
        list(workspace.events(follow=True, timeout_s=0.5))
    assert looks <= settled + 1


def test_no_save_writes_to_the_stream(session: SessionCheckpointer) -> None:
    _work(session)
    store = session.save()
    assert not list(store.glob("events*"))
    _present(session.workspace)
    written = {path.name: path.read_bytes() for path in store.glob("events*")}
    assert "events.db" in written
    assert (store / "events.db").stat().st_mode & 0o777 == 0o600
    session.checkpoint("later")
    session.add_message("user", "thank you")
    assert {path.name: path.read_bytes() for path in store.glob("events*")} == written


def test_a_lost_stream_is_reported_once_more_with_higher_numbers(
    session: SessionCheckpointer,
) -> None:
    _work(session)
    place = session.workspace
    before = _present(place)
    for path in session.save().glob("events.db*"):
        path.unlink()
    again = _present(place, before[-1].number)
    assert again[0].number > before[-1].number
    kept = [event for event in before if event.type != "status"]
    assert [event.about for event in again if event.type != "status"] == [
        event.about for event in kept
    ]


def test_an_encrypted_store_keeps_its_events_to_itself(
    place: Path, tmp_path: Path, holdfast_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_KEY_FILE", str(tmp_path / "key"))
    make_encrypted(place, tmp_path / "key")
    with SessionCheckpointer(place, "secret-session") as session:
        session.checkpoint("a-telling-reason")
    assert "secret-session" in [event.session_id for event in _present(place)]
    assert list(files_with(holdfast_home, b"secret-session")) == []


def test_a_store_that_takes_no_writes_is_followed_in_memory(
    session: SessionCheckpointer, holdfast_home: Path
) -> None:
    made = session.checkpoint("first")
    place = session.workspace
    session.close()
    with told_read_only(holdfast_home):
        assert made in [event.checkpoint for event in _present(place)]
    assert not list(holdfast_home.rglob("events*"))


@pytest.mark.parametrize("trouble", [NoSpace("no space left"), OSError("no answer")])
def test_following_begins_again_after_trouble(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    """A workspace that is kept open must not stay silent once the disk has room again."""
    record, failing = taking_in.record_events, threading.Event()

    def fail_for_a_while(vault: Any) -> None:
        if failing.is_set():
            raise trouble
        record(vault)

    monkeypatch.setattr(feed, "record_events", fail_for_a_while)
    workspace = session.opened
    newest = workspace.newest_event()
    failing.set()
    for _ in range(2):
        with pytest.raises(type(trouble)):
            next(workspace.events(newest, follow=True, timeout_s=PATIENCE_S))
    failing.clear()
    followed = workspace.events(newest, follow=True, timeout_s=PATIENCE_S)
    session.checkpoint("there is room again")
    assert next(followed).type.value == "checkpoint"


@pytest.mark.parametrize("after", [-1, True, "1", None])
def test_a_number_that_is_none_is_refused(session: SessionCheckpointer, after: object) -> None:
    session.checkpoint("first")
    with Workspace(session.workspace) as workspace, pytest.raises(UsageError):
        workspace.events(after)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"follow": "x"}, {"timeout_s": "x"}, {"timeout_s": -1}, {"timeout_s": float("nan")}]
)
def test_an_argument_of_another_kind_is_refused(
    session: SessionCheckpointer, wrong: dict[str, Any]
) -> None:
    session.checkpoint("one")
    with Workspace(session.workspace) as workspace, pytest.raises(UsageError):
        list(workspace.events(**wrong))


def test_a_closed_workspace_says_that_it_is_closed(session: SessionCheckpointer) -> None:
    session.checkpoint("one")
    workspace = Workspace(session.workspace)
    workspace.close()
    with pytest.raises(UsageError, match="closed"):
        workspace.events()
    with pytest.raises(UsageError):
        Workspace(5)  # type: ignore[arg-type]


def test_a_place_where_nothing_was_saved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Workspace(tmp_path)


@pytest.mark.linux
@pytest.mark.parametrize("bell_of", [InotifyListener, PollingListener])
def test_a_process_with_more_than_1024_open_files_can_wait(
    session: SessionCheckpointer, bell_of: type[InotifyListener | PollingListener]
) -> None:
    session.checkpoint("first")
    with open_workspace(session.workspace, create=False) as opened, ExitStack() as taken:
        for _ in range(1_100):
            taken.callback(os.close, os.dup(0))
        with closing(bell_of(local_store(opened)._layout)) as bell:
            assert not bell.wait(0.01)
            bell.stop()
            assert bell.wait(PATIENCE_S)


@pytest.mark.linux
@pytest.mark.parametrize("bell_of", [InotifyListener, PollingListener])
def test_a_bell_rings_for_what_was_written_and_when_it_is_stopped(
    session: SessionCheckpointer, bell_of: type[InotifyListener | PollingListener]
) -> None:
    session.checkpoint("first")
    with open_workspace(session.workspace, create=False) as opened:
        layout = local_store(opened)._layout
        with closing(bell_of(layout)) as bell:
            assert not bell.wait(0.01)
            session.checkpoint("second")
            assert bell.wait(PATIENCE_S)
            while bell.wait(0.01):
                pass
            session.add_message("user", "hello")
            assert bell.wait(PATIENCE_S)
            bell.stop()
            assert bell.wait(PATIENCE_S)


def test_without_inotify_the_bell_looks(
    session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.checkpoint("first")

    def none_left(*_: object) -> None:
        raise OSError(os.strerror(24))

    monkeypatch.setattr("holdfast.adapters.local.linux_calls.Inotify.__init__", none_left)
    with (
        open_workspace(session.workspace, create=False) as opened,
        closing(open_change_listener(local_store(opened)._layout)) as bell,
    ):
        assert isinstance(bell, PollingListener)

"""Live events over HTTP: all of them, once, in order, to everybody who reads."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast import SessionCheckpointer
from holdfast.api import events as feed
from holdfast.api.workspace import Workspace
from holdfast.domain.errors import NoSpace
from holdfast.domain.events import Event
from holdfast.engine.history import events as taking_in
from holdfast.interfaces.web import streams
from holdfast.interfaces.web.operations import Operation
from holdfast.interfaces.web.workspaces import ServedWorkspaces
from tests.behind_the_api import store_of
from tests.interfaces.cli.command_line import command
from tests.interfaces.web.client import Client, running
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("WB-2")

EVENTS = "/api/events"


@dataclass(frozen=True, slots=True)
class Message:
    id: str | None
    event: str
    data: Any


class Reader:
    """An open stream."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer
        self.comments = 0

    def message(self) -> Message:
        """The next one; waits for it."""
        fields: dict[str, str] = {}
        while True:
            line = self._answer.readline()
            assert line, "the stream has ended"
            text = line.decode().rstrip("\n")
            if text.startswith(":"):
                self.comments += 1
            elif text:
                name, _, value = text.partition(": ")
                fields[name] = value
            elif "data" in fields:
                return Message(fields.get("id"), fields["event"], json.loads(fields["data"]))

    def heartbeat(self) -> None:
        while not self._answer.readline().startswith(b":"):
            pass

    def ends(self) -> bool:
        return not self._answer.read()


@contextmanager
def reading(client: Client, path: str = EVENTS, **headers: str) -> Iterator[Reader]:
    connection = client.connection()
    connection.request("GET", path, headers={**client.token_header, **headers})
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    answer.readline()  # it is listening now
    try:
        yield Reader(answer)
    finally:
        connection.close()


def test_what_another_process_saves_appears(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    with reading(client) as reader:
        subprocess.run(
            command("-C", str(workspace), "--session", "work", "checkpoint", "from outside"),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        found = reader.message()
        assert (found.event, found.data["type"]) == ("checkpoint", "checkpoint")
        assert found.data["summary"]["reasoning"] == "from outside"
        assert found.data["session_id"] == "work"


def test_dialog_clients_get_exactly_their_fields(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    with reading(client, "/api/dialogs/work/events") as reader:
        said = session.user_message("Create a small app")
        messages = [reader.message(), reader.message()]
        [user] = [one.data for one in messages if one.event == "user"]
        assert user == {
            "type": "user",
            "content": "Create a small app",
            "checkpoint": said.checkpoint,
            "dialog_id": "work",
        }
        with session.editing(["notes.txt", "src/app.py"]):
            fill(workspace / "notes.txt", b"two\n")
            fill(workspace / "src" / "app.py", b"print(3)\n")
        edits: list[Message] = []
        while len(edits) < 2:
            one = reader.message()
            edits += [one] if one.event == "file_edit" else []
    assert [edit.data.keys() for edit in edits] == [{"type", "file", "diff", "dialog_id"}] * 2
    assert [edit.data["file"] for edit in edits] == [
        str(workspace / "notes.txt"),
        str(workspace / "src/app.py"),
    ]
    assert "+two" in edits[0].data["diff"]
    assert "+print(3)" not in edits[0].data["diff"]
    assert "+print(3)" in edits[1].data["diff"]
    number = edits[1].id
    assert edits[0].id == f"{number}.1"
    with reading(client, **{"Last-Event-ID": f"{number}.1"}) as reader:
        assert reader.message() == edits[1]


def test_restores_approvals_and_other_changes_are_reported(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    with reading(client, "/api/sessions/work/events") as reader:
        done = client.post("/api/sessions/work/checkpoints/start/rollback")
        found = [reader.message()]
        while found[-1].event != "restore":
            found.append(reader.message())
        assert found[-1].data["kind"] == "restore"
        assert found[-1].data["restored_to"] == done["restored_to"]
        assert found[-1].data["safety"] == done["safety_checkpoint"]
        session.approve("good")
        while found[-1].event != "approval":
            found.append(reader.message())
        session.annotate("start", "note")
        while found[-1].data.get("what") != "annotation":
            found.append(reader.message())
        assert found[-1].event == "status"
        assert found[-1].data["about"]["annotation"] == 1


def _numbers(found: list[Message]) -> list[int]:
    return [int(one.id) for one in found if one.id is not None and "." not in one.id]


def test_a_reader_that_comes_back_misses_nothing_and_gets_nothing_twice_after_a_restart(
    workspace: Path, session: SessionCheckpointer
) -> None:
    with running(workspace) as client:
        port = urlsplit(client.server.url).port or 0
        with reading(client, f"{EVENTS}?after=0") as reader:
            first = [reader.message() for _ in range(2)]
    session.checkpoint("while nobody served")
    again = {"Last-Event-ID": first[-1].id or ""}
    with running(workspace, port=port) as client, reading(client, **again) as reader:
        session.checkpoint("live")
        found = list(first)
        while found[-1].data.get("summary", {}).get("reasoning") != "live":
            found.append(reader.message())
    numbers = _numbers(found)
    assert numbers == sorted(set(numbers))
    made = [one.data["summary"]["reasoning"] for one in found if one.event == "checkpoint"]
    assert made == ["first", "second", "third", "while nobody served", "live"]


def test_a_reader_that_the_ring_left_behind_is_notified_and_misses_nothing(
    workspace: Path, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_RING", 2)
    served = ServedWorkspaces(workspace)
    every = streams.Streams(served, time.monotonic_ns)
    every.heartbeat_s = 0.01

    async def read() -> bytes:
        newest = session.opened.newest_event()
        messages = every.read(None, streams.LastEvent(newest), newest, None)
        assert (await anext(messages)).startswith(b"retry")
        saving = asyncio.create_task(asyncio.to_thread(session.checkpoint, "taken at once"))
        while b"taken at once" not in await anext(messages):
            pass
        await saving
        while await anext(messages) != b": heartbeat\n\n":
            pass  # it has caught up, and waits for the ring
        stream = every.of(None)
        before = stream.position()
        for number in range(20):
            await asyncio.to_thread(session.checkpoint, f"number {number}.")
        while stream.position() < before + 20:
            await asyncio.sleep(0.01)
        assert len(stream._ring) == 2
        assert b'"what": "behind"' in await anext(messages)
        read = b""
        while b"number 19." not in read:
            read += await anext(messages)
        await messages.aclose()
        return read

    found = asyncio.run(read())
    every.close()
    served.close()
    numbers = re.findall(rb'"reasoning": "number (\d+)\.', found)
    assert numbers == [b"%d" % number for number in range(20)]


def test_many_readers_get_every_event(client: Client, session: SessionCheckpointer) -> None:
    results: list[list[str]] = []
    ready = threading.Barrier(201)

    def read() -> None:
        with reading(client) as reader:
            ready.wait(120)
            made: list[str] = []
            while len(made) < 10:
                one = reader.message()
                if one.event == "checkpoint":
                    made.append(one.data["summary"]["reasoning"])
            results.append(made)

    threads = [threading.Thread(target=read) for _ in range(200)]
    for thread in threads:
        thread.start()
    ready.wait(120)
    for number in range(10):
        session.checkpoint(f"number {number}")
    for thread in threads:
        thread.join(120)
    assert results == [[f"number {number}" for number in range(10)]] * 200


def test_progress_of_long_work_is_reported(client: Client, session: SessionCheckpointer) -> None:
    headers = {"Prefer": "respond-async"}
    with reading(client) as reader:
        with store_of(session).hold():
            reply = client("POST", "/api/sessions/work/checkpoints/start/rollback", headers=headers)
        name = reply.headers["location"].rpartition("/")[2]
        while True:
            found = reader.message()
            about = found.data.get("about", {})
            if about.get("id") == name and about["status"] == "done":
                break
        assert (found.id, found.data["what"]) == (None, "progress")


def test_progress_is_forgotten_even_if_the_last_reader_leaves_before_the_end(
    workspace: Path, session: SessionCheckpointer
) -> None:
    every = streams.Streams(ServedWorkspaces(workspace), time.monotonic_ns)
    operation = Operation("long", "rollback", None, every.report)
    every.of(None).readers = 1
    operation.advance("scan", 1, 2)
    assert "long" in every._reported_ns
    every.of(None).readers = 0
    operation.finished.set()
    every.report(operation)
    assert not every._reported_ns
    every.close()


def test_a_workspace_named_by_its_id_has_the_same_stream(
    client: Client, session: SessionCheckpointer
) -> None:
    [own] = client.get("/api/workspaces")["workspaces"]
    path = f"/api/workspaces/{own['id']}/events"
    with reading(client) as first, reading(client, path) as second:
        session.checkpoint("seen by both")
        assert first.message() == second.message()
        assert client.server.streams.of(own["id"]) is client.server.streams.of(None)


def test_a_quiet_stream_has_heartbeats(client: Client, session: SessionCheckpointer) -> None:
    client.server.streams.heartbeat_s = 0.05
    with reading(client) as reader:
        reader.heartbeat()
        reader.heartbeat()


def test_a_session_that_is_quiet_has_heartbeats_while_others_work(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    """Events of other sessions come more often than heartbeats are due."""
    client.server.streams.heartbeat_s = 1.0
    ended = threading.Event()

    def work() -> None:
        stream = client.server.streams.of(None)
        while not ended.wait(0.02):
            stream.publish([b"event: status\ndata: {}\n\n"], None, "another")

    worker = threading.Thread(target=work)
    with reading(client, "/api/sessions/work/events") as reader:
        worker.start()
        try:
            reader.heartbeat()
        finally:
            ended.set()
            worker.join()


def test_an_event_that_cannot_be_passed_on_at_once_is_passed_on_later(
    client: Client, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, failed = streams.encoded, threading.Event()
    from_store, is_live = streams.Stream.from_store, threading.Event()

    def catch_up(stream: streams.Stream, after: int) -> list[Any]:
        found = from_store(stream, after)
        if not found:
            is_live.set()
        return found

    def encode(workspace: Workspace, event: Event) -> tuple[bytes, ...]:
        if not failed.is_set():
            failed.set()
            raise OSError("the disk does not answer")
        return encoded(workspace, event)

    monkeypatch.setattr(streams.Stream, "from_store", catch_up)
    with reading(client) as reader:
        assert is_live.wait(60)  # until then, the reader itself reads from the store
        monkeypatch.setattr(streams, "encoded", encode)
        session.checkpoint("late")
        assert reader.message().data["what"] == "unavailable"
        assert reader.message().data["summary"]["reasoning"] == "late"


def test_a_stream_goes_on_when_a_full_disk_has_room_again(
    client: Client, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, full = taking_in.record_events, threading.Event()

    def record_events(vault: Any) -> None:
        if full.is_set():
            raise NoSpace("no space left for the store's story.db")
        record(vault)

    monkeypatch.setattr(feed, "record_events", record_events)
    with reading(client) as reader:
        session.checkpoint("before")
        assert reader.message().data["summary"]["reasoning"] == "before"
        full.set()
        session.checkpoint("meanwhile")
        assert reader.message().data["about"]["code"] == "no_space"
        full.clear()
        session.checkpoint("after")
        made = [reader.message().data["summary"]["reasoning"] for _ in range(2)]
        assert made == ["meanwhile", "after"]


def test_streams_end_with_the_server(workspace: Path, session: SessionCheckpointer) -> None:
    with running(workspace) as client:
        connection = client.connection()
        connection.request("GET", EVENTS, headers=client.token_header)
        answer = connection.getresponse()
        answer.readline()
    answer.read()
    connection.close()


def test_large_events_leave_the_ring_before_there_are_many(
    workspace: Path, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_RING_BYTES", 100_000)
    stream = streams.Stream(ServedWorkspaces(workspace), None)
    for number in range(1, 11):
        stream.publish([b"x" * 30_000], number)
    assert [entry.number for entry in stream.after(7) or ()] == [8, 9, 10]
    assert stream.after(6) is None
    stream.publish([b"x" * 200_000], 11)
    assert stream.after(10) is None  # it is read from the store
    assert stream.after(11) == []


def test_large_events_are_read_from_the_store_a_few_at_a_time(
    workspace: Path, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_AT_ONCE_BYTES", 100_000)
    begin = session.opened.newest_event()
    for _ in range(10):
        session.add_message("user", "x" * 30_000)
    served = ServedWorkspaces(workspace)
    stream = streams.Stream(served, None)
    first = stream.from_store(begin)
    assert len(first) == 4
    rest = stream.from_store(first[-1].number or 0)
    served.close()
    assert len(rest) == 4


def test_a_diff_with_lines_that_look_like_headers_is_that_of_its_file(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / "query.sql", b"-- a/old\nsame\nselect 1\n")
    session.checkpoint("a query")
    with reading(client, "/api/dialogs/work/events") as reader:
        with session.editing(["notes.txt", "query.sql"]):
            fill(workspace / "notes.txt", b"two\n")
            fill(workspace / "query.sql", b"++ b/new\nsame\nselect 2\n")
        edits = [reader.message() for _ in range(3)][1:]
    assert "+two" in edits[0].data["diff"]
    for line in ("--- a/old", "+++ b/new", "-select 1", "+select 2"):
        assert line in edits[1].data["diff"].splitlines()


def test_an_event_that_is_gone_does_not_cost_messages_of_the_next_one(
    session: SessionCheckpointer, workspace: Path
) -> None:
    with session.editing(["notes.txt", "src/app.py"]):
        fill(workspace / "notes.txt", b"two\n")
        fill(workspace / "src" / "app.py", b"print(3)\n")
    *_, edit = session.opened.events()
    stream = streams.Stream(ServedWorkspaces(workspace), None)
    [entry] = stream.from_store(edit.number - 1)
    assert len(entry.messages) == 2
    for gone in (edit.number - 1, edit.number + 1):
        assert streams.LastEvent.parse(f"{gone}.1").unseen(entry) == entry.messages
    assert streams.LastEvent.parse(f"{edit.number}.1").unseen(entry) == entry.messages[1:]


def test_a_reader_whose_event_has_fewer_messages_now_gets_the_last_one(
    client: Client, session: SessionCheckpointer
) -> None:
    newest = session.opened.newest_event()
    with reading(client, **{"Last-Event-ID": f"{newest}.2"}) as reader:
        assert reader.message().id == str(newest)


def test_a_reader_that_names_an_event_of_a_lost_log_gets_everything(
    client: Client, session: SessionCheckpointer
) -> None:
    expected = [event.number for event in session.opened.events()]
    with reading(client, **{"Last-Event-ID": "9" * 18}) as reader:
        assert _numbers([reader.message() for _ in expected]) == expected
        session.checkpoint("live")
        assert reader.message().data["summary"]["reasoning"] == "live"


@pytest.mark.parametrize("value", ["x", "-1", "1.x", "9" * 30, "1.2.3"])
def test_an_id_that_is_none_is_refused(
    client: Client, session: SessionCheckpointer, value: str
) -> None:
    reply = client("GET", EVENTS, headers={"Last-Event-ID": value})
    assert reply.status == 400


def test_unknown_sessions_have_no_events(client: Client, session: SessionCheckpointer) -> None:
    assert client("GET", "/api/sessions/none/events").status == 404
    assert client("GET", "/api/workspaces/none/events").status == 404

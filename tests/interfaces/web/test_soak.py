"""Many readers of many events: each gets all of them, once and in order."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.web.client import Client, running

pytestmark = pytest.mark.requirement("WB-2")

_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)
_LAST = b"the last message"


def _read(client: Client, ready: threading.Barrier, results: list[list[int]]) -> None:
    connection = client.connection()
    connection.request("GET", "/api/events", headers=client.token_header)
    answer = connection.getresponse()
    answer.readline()
    ready.wait()
    numbers: list[int] = []
    lines = rest = b""
    while _LAST not in lines:
        piece = answer.read1(1 << 16)
        assert piece, "the stream has ended"
        lines, _, rest = (rest + piece).rpartition(b"\n\n")
        numbers += map(int, _ID.findall(lines))
    connection.close()
    results.append(numbers)


def _soak(workspace: Path, session: SessionCheckpointer, *, readers: int, events: int) -> None:
    results: list[list[int]] = []
    ready = threading.Barrier(readers + 1, timeout=600)
    with running(workspace) as client:
        threads = [
            threading.Thread(target=_read, args=(client, ready, results)) for _ in range(readers)
        ]
        for thread in threads:
            thread.start()
        ready.wait()
        before = session.opened.newest_event()
        for number in range(events - 1):
            session.add_message("assistant", f"message {number}")
        session.add_message("user", _LAST.decode())
        for thread in threads:
            thread.join()
    expected = [event.number for event in session.opened.events(before)]
    assert len(expected) == events
    assert len(results) == readers
    assert all(numbers == expected for numbers in results)


def test_readers_get_every_event_once(workspace: Path, session: SessionCheckpointer) -> None:
    _soak(workspace, session, readers=10, events=200)


@pytest.mark.torture
def test_many_readers_get_very_many_events_once(
    workspace: Path, session: SessionCheckpointer
) -> None:
    _soak(workspace, session, readers=200, events=10_000)

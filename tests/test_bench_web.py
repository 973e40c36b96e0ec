"""The benchmarks of the HTTP API and the web page measure a real server, a real browser and a store
that holds what they say.

Nothing here looks at how long anything took.
"""

import http.client
import json
from pathlib import Path

import pytest

from bench import rows, web_api, web_page
from bench.contest import Book
from bench.measure import Refusal
from bench.peers import HOLDFAST, REFERENCE
from bench.processes import plain_surroundings
from tests.support.chromium import WHY_NO_CHROMIUM

pytestmark = pytest.mark.in_memory

ROUNDS = 2


def test_every_figure_is_measured_on_a_store_with_a_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "holdfast"))
    book = Book()
    past = web_api.prepare(tmp_path, 200, 40, ROUNDS + 1)
    with web_api.serving(past.workspace) as server:
        connection = http.client.HTTPConnection(server.host)
        answer = json.loads(server.ask(connection, web_api.REQUESTS[web_api.TIMELINE]))
        assert len(answer["events"]) == 100
        answer = json.loads(server.ask(connection, web_api.REQUESTS[web_api.DIFF]))
        assert len(answer["files"]) == web_api.FILES_CHANGED
        connection.close()
        web_api.measure(book, server, ROUNDS, mixed_s=0.05)
        web_page.measure(book, past, server, ROUNDS)
    with plain_surroundings(tmp_path):
        web_api.measure_git(book, tmp_path, past.workspace, 30, ROUNDS)
    web_page.compare_a_click(book)

    measured = {name: page[HOLDFAST.title] for name, page in book.pages.items()}
    faults = {name: one.faults for name, one in measured.items() if one.faults}
    if WHY_NO_CHROMIUM:
        assert faults == {name: [WHY_NO_CHROMIUM] for name in measured if name.startswith("page")}
        return
    assert faults == {}
    assert all(min(one.samples) > 0 for one in measured.values())
    assert len(measured[web_page.CLICK].samples) == ROUNDS
    assert set(measured) >= {*web_api.LIMITS_MS, *web_page.LIMITS_MS}
    for name in (web_api.TIMELINE, web_api.DIFF, web_page.CLICK):
        assert len(book.pages[name][REFERENCE.title].samples) == ROUNDS

    lines = list(rows.of_web("web 200", book))
    bounded = [line for line in lines if line.bound is not None]
    assert len(bounded) == len({**web_api.LIMITS_MS, **web_page.LIMITS_MS})
    single = [line for line in bounded if not isinstance(line.judge(), Refusal)]
    # How many frames there are is the browser's affair: the busier it is, the more.
    judged = {line.operation for line in single} - {f"p95 of {web_page.FRAME}"}
    assert judged == {web_api.MIXED, web_page.SLOWEST_FRAME}


def test_a_page_without_its_moments_gets_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "holdfast"))
    monkeypatch.setattr(web_page, "OLDEST", "a reason that no save had")
    book = Book()
    past = web_api.prepare(tmp_path, 20, 10, 2)
    with web_api.serving(past.workspace) as server:
        web_page.measure(book, past, server, 1)
    page = book.pages[web_page.FRAME][HOLDFAST.title]
    assert not page.sound

"""The benchmark of the HTTP API measures a real server of a store that holds what it says.

Nothing here looks at how long anything took.
"""

import http.client
import json
from pathlib import Path

import pytest

from bench import web_api
from bench.processes import plain_surroundings


def test_every_request_is_answered_from_a_store_with_a_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "holdfast"))
    workspace = web_api.prepare(tmp_path, 200, 40)
    with web_api.serving(workspace) as server:
        connection = http.client.HTTPConnection(server.host)
        path, _ = web_api.REQUESTS["a page of the timeline"]
        assert len(json.loads(server.ask(connection, path))["events"]) == 100
        path, _ = web_api.REQUESTS["a diff of 5 files"]
        assert len(json.loads(server.ask(connection, path))["files"]) == web_api.FILES_CHANGED
        connection.close()
        lines = list(web_api.measure(server, 1))
        assert web_api.mixed_reads(server, 0.05) > 0
    assert len(lines) == len(web_api.REQUESTS)
    assert all(line.median_ms > 0 for line in lines)


def test_git_does_the_same_clicks(tmp_path: Path) -> None:
    with plain_surroundings(tmp_path):
        listing, difference = web_api.measure_git(tmp_path / "shadow", 30, 1)
    assert listing.median_ms > 0
    assert difference.median_ms > 0

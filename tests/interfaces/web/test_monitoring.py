"""Metrics, probes, spans and logs: enough to watch the server by, and nothing of the work in it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import socket
from http.client import IncompleteRead
from pathlib import Path
from typing import Any, cast

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import Message, Receive, Scope, Send

from holdfast import SessionCheckpointer
from holdfast.domain.errors import Refused
from holdfast.interfaces.mcp.connection_limits import ConnectionLimits
from holdfast.interfaces.web.telemetry import Telemetry
from holdfast.interfaces.web.workspaces import ServedWorkspaces
from tests.interfaces.web.client import Client, running
from tests.project.repository import ROOT
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("WB-5")

CHECKPOINTS = "/api/sessions/work/checkpoints"
REQUIRED = {
    "checkpoint_creation_duration_seconds",
    "checkpoint_restoration_latency_ms",
    "checkpoint_count_total",
    "checkpoint_storage_bytes",
    "git_operations_duration_seconds",
}
SECRET = "s3cr3t"


def _work(client: Client, workspace: Path) -> None:
    """One of everything, with a word in it that nobody may see."""
    fill(workspace / f"{SECRET}.txt", SECRET.encode())
    made = client.post(CHECKPOINTS, {"reasoning": SECRET, "name": SECRET}, 201)
    fill(workspace / f"{SECRET}.txt", b"changed")
    client.get(f"{CHECKPOINTS}/{made['id']}/rollback/preview")
    client.post(f"{CHECKPOINTS}/{SECRET}/rollback")
    client.get(f"/api/search?q={SECRET}")
    client("GET", f"{CHECKPOINTS}/{SECRET}-unknown")
    client("GET", f"/{SECRET}")


def _samples(client: Client) -> dict[str, float]:
    reply = client("GET", "/metrics")
    assert reply.status == 200
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


def test_metrics_have_the_promised_names_and_count_the_work(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    _work(client, workspace)
    reply = client("GET", "/metrics")
    families = {one.name for one in text_string_to_metric_families(reply.body.decode())}
    assert families >= REQUIRED | {"search_duration_seconds", "watcher_active"}
    found = _samples(client)
    assert found["checkpoint_creation_duration_seconds_count"] == 1
    assert found["checkpoint_restoration_latency_ms_count"] == 1
    assert found["checkpoint_storage_bytes"] > 0
    assert found["search_duration_seconds_count"] == 1
    counted = re.findall(rb'checkpoint_count_total\{kind="manual"\} (\d+)', reply.body)
    assert counted == [b"4"]
    assert b'errors_total{code="unknown_reference"} 1.0' in reply.body
    assert client(SECRET.upper(), "/livez").status == 405
    assert SECRET.upper().encode() not in client("GET", "/metrics").body
    assert SECRET.encode() not in reply.body


@pytest.mark.requirement("MC-4")
def test_limits_and_breakers_are_counted(
    client: Client,
    session: SessionCheckpointer,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("URL", "postgresql://ada@127.0.0.1:1/shop")
    session.opened.settings.set("postgres", ["URL"])
    for number in range(4):
        fill(workspace / "notes.txt", b"%d" % number)
        client.post(CHECKPOINTS, {"reasoning": f"number {number}"}, 201)
    client.server.limits.unread.cut_off = 2
    metrics = client("GET", "/metrics").body.decode()
    assert 'component_failures{component="postgres"} 3.0' in metrics
    assert 'component_breaker_open{component="postgres"} 1.0' in metrics
    assert 'http_connections_cut_off_total{reason="unread"} 2.0' in metrics
    assert 'http_connections_cut_off_total{reason="incomplete"} 0.0' in metrics
    assert "http_unread_bytes 0.0" in metrics
    for number in range(3):
        client("GET", f"/nothing/{number}", token=False)
    client("POST", CHECKPOINTS, b"x", headers={"Content-Type": "text/plain"})
    client("GET", f"/nothing/{number}")
    metrics = client("GET", "/metrics").body.decode()
    for code, number in (("not_signed_in", 3), ("not_json", 1), ("no_route", 1)):
        assert f'errors_total{{code="{code}"}} {number}.0' in metrics


def test_the_dashboard_and_the_alerts_name_metrics_that_exist(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    _work(client, workspace)
    of_the_daemon = {"watcher_directories", "watcher_overflows", "watcher_cpu_seconds_total"}
    existing = set(_samples(client)) | of_the_daemon
    dashboard = json.loads((ROOT / "docs/monitoring/dashboard.json").read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    alerts = (ROOT / "docs/monitoring/alerts.yml").read_text("utf-8")
    asked += re.findall(r"expr: '(.*)'", alerts)
    assert len(re.findall(r"- alert:", alerts)) == len(re.findall(r"expr:", alerts)) >= 8
    named = {name for one in asked for name in re.findall(r"[a-z]+(?:_[a-z]+)+", one)}
    named -= {"histogram_quantile", "min_over_time"}
    assert named <= existing
    page = (ROOT / "docs/reference/monitoring.md").read_text("utf-8")
    for name in named:
        assert re.sub(r"_(bucket|count|sum)$", "", name) in page


THRESHOLDS = {
    "http_request_duration_seconds_bucket[": (0.4, 1),
    "http_request_duration_seconds_count{status=~": (0.00005, 0.001),
    "checkpoint_creation_duration_seconds_bucket[": (0.8, 2),
    "checkpoint_restoration_latency_ms_bucket[": (1500, 5000),
    "search_duration_seconds_bucket[": (0.04, 0.1),
    "http_request_duration_seconds_bucket{route=~": (0.15, 0.5),
    "watcher_cpu_seconds_total[": (0.025, 0.05),
    "process_resident_memory_bytes[": (80e6, 200e6),
    "git_operations_duration_seconds_bucket[": (0.4, 1),
    "http_connections_limit ": (400, 200),
}
"""Of the specification: when to warn, and when to act."""


@pytest.mark.parametrize("metric", THRESHOLDS)
def test_alerts_have_the_thresholds_of_the_specification(metric: str) -> None:
    alerts = (ROOT / "docs/monitoring/alerts.yml").read_text("utf-8")
    found = {
        re.findall(r"severity: (\w+)", one)[0]: float(re.findall(r"[<>] ([0-9.]+)'", one)[0])
        for one in alerts.split("- alert:")
        if metric in one
    }
    assert found == dict(zip(("warning", "critical"), THRESHOLDS[metric], strict=True))


def test_thresholds_are_bounds_of_buckets(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    """A quantile between two bounds is a guess."""
    _work(client, workspace)
    metrics = client("GET", "/metrics").body.decode()
    for metric, thresholds in THRESHOLDS.items():
        name, bucket, _ = metric.partition("_bucket")
        if bucket:
            bounds = re.findall(rf'{name}_bucket{{.*le="([0-9.]+)"', metrics)
            assert set(thresholds) <= set(map(float, bounds)), metric


def test_an_open_stream_is_no_slow_request(workspace: Path) -> None:
    now, lines = [0], list[str]()
    served = ServedWorkspaces(workspace)
    telemetry = Telemetry(served, lambda: now[0], lambda: 0, ConnectionLimits())

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        now[0] += 3_600 * 10**9

    async def send(message: Message) -> None:
        now[0] += 10**6

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    observed = telemetry.observed(stream, lines.append)
    asyncio.run(cast("Any", observed)({"type": "http", "method": "GET"}, receive, send))
    assert json.loads(lines[0])["elapsed_ms"] == 0


def test_metrics_tell_that_the_store_cannot_be_read(
    client: Client, session: SessionCheckpointer
) -> None:
    assert _samples(client)["checkpoint_store_readable"] == 1
    shutil.rmtree(session.opened.store_directory)
    assert _samples(client)["checkpoint_store_readable"] == 0


def test_probes_tell_whether_the_server_works_and_nothing_else(
    client: Client, session: SessionCheckpointer, workspace: Path
) -> None:
    for path in ("/livez", "/readyz", "/healthz"):
        reply = client("GET", path, token=False)
        assert (reply.status, reply.json) == (200, {"status": "ok"})
    shutil.rmtree(session.opened.store_directory)
    assert client("GET", "/livez", token=False).status == 200
    reply = client("GET", "/readyz", token=False)
    assert (reply.status, reply.json) == (503, {"status": "unavailable"})
    known = {"If-None-Match": "*"}
    assert client("GET", "/readyz", headers=known, token=False).status == 503
    reply = client("GET", CHECKPOINTS)
    assert reply.status == 500
    assert reply.problem["code"] == "store_missing"


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What a collector would get of the servers that begin in a test."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def test_saves_and_restores_are_spans_without_contents(
    workspace: Path, session: SessionCheckpointer, collected: InMemorySpanExporter
) -> None:
    """And nothing else is a span: those of the web framework would have paths and searches."""
    with running(workspace) as client:
        _work(client, workspace)
        client.post("/api/dialogs/work/restore", {"checkpoint_id": "start"})
    spans = collected.get_finished_spans()
    assert [span.name for span in spans] == ["holdfast.save", *["holdfast.restore"] * 2]
    saved, restored, again = (dict(span.attributes or {}) for span in spans)
    assert saved["holdfast.session_id"] == "work"
    assert saved["holdfast.files"] == 4
    assert restored["holdfast.checkpoint"] == saved["holdfast.checkpoint"]
    assert (restored["holdfast.kind"], restored["holdfast.files"]) == ("restore", 1)
    assert again.keys() == restored.keys()
    assert SECRET not in "".join(span.to_json() for span in spans)


def test_a_failed_restore_is_a_span_with_its_code_and_no_words(
    collected: InMemorySpanExporter, client: Client
) -> None:
    for error in (Refused(SECRET), OSError(SECRET)):
        with pytest.raises(type(error)), client.server.telemetry.restore("restore", "work"):
            raise error
    spans = collected.get_finished_spans()
    found = [dict(span.attributes or {})["holdfast.error.type"] for span in spans]
    assert found == ["refused", "OSError"]
    assert {span.status.status_code for span in spans} == {trace.StatusCode.ERROR}
    assert SECRET not in "".join(span.to_json() for span in spans)


def test_errors_after_the_status_are_lines_of_json_too_and_cut_the_answer_off(
    workspace: Path, session: SessionCheckpointer, rng: random.Random
) -> None:
    fill(workspace / f"{SECRET}.bin", rng.randbytes(8 << 20))
    session.checkpoint("large")
    [pack] = session.opened.store_directory.rglob("*.pack")
    content = bytearray(pack.read_bytes())
    content[-2 << 20] ^= 1
    pack.chmod(0o600)
    pack.write_bytes(content)
    lines: list[str] = []
    with running(workspace, log=lines.append) as client:
        with pytest.raises(IncompleteRead):
            client("GET", f"{CHECKPOINTS}/HEAD/raw?path={SECRET}.bin")
        host, _, port = client.host.partition(":")
        with socket.create_connection((host, int(port))) as broken:
            broken.sendall(b"\0\r\n\r\n")
            broken.recv(1 << 16)
    found = [json.loads(line) for line in lines]
    request, error, warning = sorted(found, key=lambda one: one.get("level", ""))
    assert (request["status"], request["code"]) == (200, "object_damaged")
    assert (error["level"], warning["level"]) == ("error", "warning")
    assert any(one.startswith("holdfast.") for one in error["traceback"])
    assert SECRET not in "".join(lines)


def test_each_request_is_a_line_of_json_without_names(
    workspace: Path, session: SessionCheckpointer
) -> None:
    lines: list[str] = []
    with running(workspace, log=lines.append) as client:
        _work(client, workspace)
        client("GET", f"/login?code={SECRET}", token=False)
    found = [json.loads(line) for line in lines]
    assert [one["status"] for one in found] == [201, 200, 200, 200, 404, 404, 401]
    assert found[0]["route"] == CHECKPOINTS.replace("work", "{session_id}")
    assert found[4]["code"] == "unknown_reference"
    assert all(one["elapsed_ms"] > 0 for one in found)
    text = "".join(lines)
    assert SECRET not in text
    assert client.server.token not in text

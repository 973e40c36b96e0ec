"""The server's telemetry: Prometheus metrics, OpenTelemetry spans, and log lines.

Guarantee: only ids, counts, sizes, times and codes; no reasons, messages, paths, names or contents.
Durations cover this server's work. Counts and sizes cover the store, which other programs write
too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import StatusCode
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.domain.errors import HoldfastError, NothingSaved
from holdfast.interfaces.daemon.client import ask_status, workspace_in
from holdfast.interfaces.mcp.connection_limits import ConnectionLimits
from holdfast.interfaces.web.access import OBSERVED_KEY
from holdfast.interfaces.web.workspaces import ServedWorkspaces

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.04, 0.05, 0.1, 0.15, 0.25, 0.4, 0.5, 0.8, 1, 2, 5, 10, 30, 120)
_MILLISECONDS = (5, 10, 25, 50, 100, 250, 500, 1000, 1500, 2000, 5000, 10_000, 60_000)
DAEMON_S = 0.5
"""How long to wait for the daemon's facts about a workspace."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
_STREAM = "text/event-stream"


class Telemetry:
    """The telemetry of one server."""

    def __init__(
        self,
        workspaces: ServedWorkspaces,
        monotonic_ns: Callable[[], int],
        readers: Callable[[], int],
        limits: ConnectionLimits,
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._tracer = trace.get_tracer("holdfast")
        self._registry = registry = CollectorRegistry()
        self._saves = Histogram(
            "checkpoint_creation_duration_seconds",
            "How long checkpoints took to make.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._restores = Histogram(
            "checkpoint_restoration_latency_ms",
            "How long restores took.",
            ["kind"],
            buckets=_MILLISECONDS,
            registry=registry,
        )
        self._git = Histogram(
            "git_operations_duration_seconds",
            "How long work in the git repository took.",
            ["operation"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._searches = Histogram(
            "search_duration_seconds",
            "How long searches took.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._errors = Counter(
            "errors",
            "Failed requests, by problem code.",
            ["code"],
            registry=registry,
        )
        self._requests = Histogram(
            "http_request_duration_seconds",
            "How long requests took; streams, until they began.",
            ["method", "route", "status"],
            buckets=_SECONDS,
            registry=registry,
        )
        Gauge("event_stream_readers", "Open event streams.", registry=registry).set_function(
            readers
        )
        ProcessCollector(registry=registry)
        registry.register(_StoreCollector(workspaces))
        registry.register(_LimitsCollector(limits))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        found: bytes = generate_latest(self._registry)
        return found

    @contextmanager
    def save(self, session_id: str) -> Iterator[dict[str, Any]]:
        """Measure a save; the caller adds attributes when it is done."""
        with self._span("holdfast.save", session_id) as (attributes, elapsed_s):
            yield attributes
        self._saves.observe(elapsed_s())

    @contextmanager
    def restore(self, kind: str, session_id: str) -> Iterator[dict[str, Any]]:
        with self._span("holdfast.restore", session_id, kind=kind) as (attributes, elapsed_s):
            yield attributes
        self._restores.labels(kind).observe(elapsed_s() * 1000)

    @contextmanager
    def git(self, operation: str) -> Iterator[None]:
        begun = self._monotonic_ns()
        yield
        self._git.labels(operation).observe((self._monotonic_ns() - begun) / 1e9)

    @contextmanager
    def search(self) -> Iterator[None]:
        begun = self._monotonic_ns()
        yield
        self._searches.observe((self._monotonic_ns() - begun) / 1e9)

    def failed(self, code: str) -> None:
        self._errors.labels(code).inc()

    @contextmanager
    def _span(
        self, name: str, session_id: str, **known: str
    ) -> Iterator[tuple[dict[str, Any], Callable[[], float]]]:
        begun = self._monotonic_ns()
        attributes: dict[str, Any] = {"session_id": session_id, **known}
        # The error itself may quote a path or a name.
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield attributes, lambda: (self._monotonic_ns() - begun) / 1e9
            except Exception as error:
                code = error.code if isinstance(error, HoldfastError) else type(error).__name__
                attributes["error.type"] = code
                span.set_status(StatusCode.ERROR)
                raise
            finally:
                span.set_attributes({f"holdfast.{k}": v for k, v in attributes.items()})

    def observed(self, app: ASGIApp, log: Callable[[str], None] | None) -> ASGIApp:
        """The application, with each request measured and, if requested, logged."""

        async def observe(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            begun, found = self._monotonic_ns(), dict[str, str]()
            status = 0
            ended: int | None = None

            async def noticed(message: Message) -> None:
                nonlocal status, ended
                if message["type"] == "http.response.start":
                    status = message["status"]
                    if Headers(scope=message).get("content-type", "").startswith(_STREAM):
                        ended = self._monotonic_ns()  # it lasts as long as its reader wants
                await send(message)

            try:
                await app({**scope, OBSERVED_KEY: found}, receive, noticed)
            finally:
                elapsed_s = ((self._monotonic_ns() if ended is None else ended) - begun) / 1e9
                route, code = found.get("route", "none"), found.get("code")
                # Clients choose the method, but a metric must have few labels.
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._requests.labels(method, route, str(status)).observe(elapsed_s)
                if code is not None:
                    self.failed(code)
                if log is not None:
                    log(_line(method, route, status, elapsed_s, code))

        return observe


def _line(method: str, route: str, status: int, elapsed_s: float, code: str | None) -> str:
    """One line of the log. It has the route's address, because a path may contain names."""
    return json.dumps(
        {
            "method": method,
            "route": route,
            "status": status,
            "elapsed_ms": round(elapsed_s * 1000, 3),
            "code": code,
        }
    )


@contextmanager
def logged_as_json(log: Callable[[str], None] | None) -> Iterator[None]:
    """Within the block, warnings and errors of all libraries go to the log too."""
    if log is None:
        yield
        return
    handler, root = _JsonLines(log), logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _JsonLines(logging.Handler):
    """Omits arguments and error messages, which may quote a path or a name."""

    def __init__(self, log: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        traceback = None if error is None else error.__traceback__
        self._log(
            json.dumps(
                {
                    "level": record.levelname.lower(),
                    "logger": record.name,
                    "message": str(record.msg).partition("\n")[0],
                    "error": None if error is None else type(error).__name__,
                    "traceback": [
                        f"{frame.f_globals.get('__name__')}:{line} {frame.f_code.co_name}"
                        for frame, line in walk_tb(traceback)
                    ],
                }
            )
        )


class _LimitsCollector:
    """The cost of slow clients, and how many were disconnected."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits

    def collect(self) -> Iterator[Any]:
        cut_off = CounterMetricFamily(
            "http_connections_cut_off",
            "Connections closed because the request never ended or the response was not read.",
            labels=["reason"],
        )
        cut_off.add_metric(["incomplete"], self._limits.incomplete.cut_off)
        cut_off.add_metric(["unread"], self._limits.unread.cut_off)
        unread = GaugeMetricFamily(
            "http_unread_bytes", "Bytes that slow clients have not read yet."
        )
        unread.add_metric([], self._limits.unread_bytes())
        open_now = GaugeMetricFamily("http_connections", "Open connections.")
        open_now.add_metric([], self._limits.connections)
        most = GaugeMetricFamily("http_connections_limit", "How many can be open at once.")
        most.add_metric([], self._limits.most_connections)
        yield from (cut_off, unread, open_now, most)


class _StoreCollector:
    """Counts and sizes of the server's own workspace, read on request."""

    def __init__(self, workspaces: ServedWorkspaces) -> None:
        self._workspaces = workspaces

    def describe(self) -> list[Any]:
        return []  # the store is read only when metrics are requested

    def collect(self) -> Iterator[Any]:
        counts = GaugeMetricFamily(
            "checkpoint_count_total", "Checkpoints in the store, by kind.", labels=["kind"]
        )
        size = GaugeMetricFamily("checkpoint_storage_bytes", "The size of the store on disk.")
        budget = GaugeMetricFamily(
            "checkpoint_storage_budget_bytes", "The disk budget of the store."
        )
        newest = GaugeMetricFamily(
            "checkpoint_newest_timestamp_seconds", "When the newest checkpoint was made."
        )
        failures = GaugeMetricFamily(
            "component_failures", "Failures of a component in a row.", labels=["component"]
        )
        paused = GaugeMetricFamily(
            "component_breaker_open",
            "1 while Holdfast skips a component that failed.",
            labels=["component"],
        )
        readable = GaugeMetricFamily(
            "checkpoint_store_readable", "1 while the store can be read, or there is none yet."
        )
        with self._noticed(readable), self._workspaces.use(None) as workspace:
            totals = workspace.upkeep.totals()
            for kind, number in totals.by_kind.items():
                counts.add_metric([kind.value], number)
            size.add_metric([], workspace.upkeep.size_bytes())
            budget.add_metric([], workspace.upkeep.budget_bytes)
            if totals.latest is not None:
                newest.add_metric([], totals.latest.timestamp())
            for one in workspace.health.degraded(workspace.head()):
                failures.add_metric([one.name], one.failures)
                paused.add_metric([one.name], int(one.left_alone_until_ns is not None))
        yield from (counts, size, budget, newest, failures, paused, readable)
        yield from self._watcher()

    @staticmethod
    @contextmanager
    def _noticed(readable: GaugeMetricFamily) -> Iterator[None]:
        """Metrics that need the store are left out while it cannot be read."""
        try:
            yield
            readable.add_metric([], 1)
        except NothingSaved:
            readable.add_metric([], 1)
        except (HoldfastError, OSError):
            readable.add_metric([], 0)

    def _watcher(self) -> Iterator[Any]:
        watched = GaugeMetricFamily("watcher_active", "1 while the daemon watches the workspace.")
        directories = GaugeMetricFamily(
            "watcher_directories", "Directories that the daemon watches."
        )
        overflows = GaugeMetricFamily("watcher_overflows", "How often the daemon lost events.")
        used = CounterMetricFamily("watcher_cpu_seconds", "CPU time of the daemon that watches.")
        status = ask_status(str(self._workspaces.own), DAEMON_S)
        found = workspace_in(status).get("watch")
        if "cpu_s" in status:
            used.add_metric([], status["cpu_s"])
        watched.add_metric([], 0 if found is None else int(bool(found["watched"])))
        if found is not None:
            directories.add_metric([], found["directories"])
            overflows.add_metric([], found["overflows"])
        yield from (watched, directories, overflows, used)

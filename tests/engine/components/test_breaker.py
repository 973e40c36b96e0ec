"""A component that fails again and again is left alone for a while, and files are saved."""

from __future__ import annotations

import os
import socket
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.components.postgres.component import PostgresComponent
from holdfast.domain.component_states import ComponentState
from holdfast.domain.intent import make_intent
from holdfast.domain.outcomes import SaveOutcome
from holdfast.engine.components.manifests import degraded
from holdfast.engine.engine import Engine
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    Component,
    ComponentPreview,
    ComponentProblem,
    ContentSink,
    RestoreOf,
)
from holdfast.tools import ToolHandlers
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import SESSION, Composed, SteppedClock, composed, configure
from tests.support.hostile_trees import fill
from tests.support.postgres_server import server_programs

pytestmark = pytest.mark.requirement("MC-4")

SECOND_NS = 1_000_000_000


class Server:
    """State that is elsewhere; while it is `down`, every try fails."""

    name = "server"
    order = 100
    restored_by_default = True
    modes = ("exact",)

    def __init__(self, *, outside: bool = True) -> None:
        self.outside = outside
        self.down = False
        self.tries = 0

    def applies(self, workspace: Path) -> bool:
        return True

    def capture(self, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        self.tries += 1
        if self.down:
            raise ComponentProblem("it does not answer")
        return Captured({"tries": self.tries})

    def describe(self, state: ComponentState) -> Sequence[str]:
        return ()

    def plan(self, request: RestoreOf) -> ComponentPreview:
        return ComponentPreview(("it changes",))

    def concerns(
        self, workspace: Path, paths: Sequence[bytes], *, timeout_s: float
    ) -> Sequence[str]:
        return ()

    def restore(self, request: RestoreOf) -> None: ...

    def verify(self, request: RestoreOf) -> Sequence[str]:
        return ()

    def release(self, workspace: Path, owner: str, needed: Iterable[ComponentState]) -> None: ...


class Only:
    def __init__(self, component: Component) -> None:
        self._component = component

    def any_for(self, workspace: Path, *, recorded: bool) -> bool:
        return True

    def all(self) -> Sequence[Component]:
        return (self._component,)

    def applying(self, workspace: Path) -> Sequence[Component]:
        return self.all()

    def named(self, names: Container[str]) -> Sequence[Component]:
        return [one for one in self.all() if one.name in names]

    def missing(self) -> Sequence[str]:
        return ()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "file", b"0")
    return workspace


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(1_800_000_000 * SECOND_NS)


@contextmanager
def _with(workspace: Path, clock: SteppedClock, component: Component) -> Iterator[Composed]:
    with composed(workspace, clock=clock) as made:
        vault = replace(made.engine.vault, components=Only(component))
        yield replace(made, engine=Engine(vault))


def _save(made: Composed, content: bytes) -> SaveOutcome:
    fill(made.engine.vault.workspace / "file", content)
    outcome = made.engine.save(SESSION, make_intent("why"))
    assert outcome.checkpoint.changed.total == 1 or content == b"0"
    return outcome


def test_what_fails_three_times_is_not_tried_for_a_while(
    workspace: Path, clock: SteppedClock
) -> None:
    server = Server()
    server.down = True
    with _with(workspace, clock, server) as made:
        outcomes = [_save(made, b"%d" % number) for number in range(6)]
        assert server.tries == 3
        assert outcomes[2].degraded == ("server: it does not answer",)
        left_alone = "server: paused after 3 failures in a row, the last: it does not answer"
        assert {one.degraded for one in outcomes[3:]} == {(left_alone,)}
        # Nothing is written for it: the same is said with the same object.
        assert len({one.checkpoint.components for one in outcomes[3:]}) == 1
        (said,) = degraded(made.engine.vault, outcomes[-1].checkpoint)
        assert (said.name, said.reason, said.failures) == ("server", "it does not answer", 3)
        assert said.left_alone_until_ns is not None
        assert clock.now < said.left_alone_until_ns <= clock.now + 60 * SECOND_NS


def test_it_is_tried_again_later_and_a_success_ends_it(
    workspace: Path, clock: SteppedClock
) -> None:
    server = Server()
    server.down = True
    with _with(workspace, clock, server) as made:
        for number in range(4):
            _save(made, b"%d" % number)
        clock.now += 61 * SECOND_NS
        _save(made, b"4")
        _save(made, b"5")
        assert server.tries == 4
        server.down = False
        _save(made, b"6")
        assert server.tries == 4
        clock.now += 61 * SECOND_NS
        assert _save(made, b"7").degraded == ()
        server.down = True
        for number in range(8, 11):
            _save(made, b"%d" % number)
        assert server.tries == 8
        _save(made, b"11")
        assert server.tries == 8


def test_a_clock_that_is_set_back_does_not_make_it_last(
    workspace: Path, clock: SteppedClock
) -> None:
    server = Server()
    server.down = True
    with _with(workspace, clock, server) as made:
        for number in range(4):
            _save(made, b"%d" % number)
        clock.now -= 3600 * SECOND_NS
        _save(made, b"4")
        assert server.tries == 4


def test_what_a_restore_saves_first_is_always_tried(workspace: Path, clock: SteppedClock) -> None:
    server = Server()
    with _with(workspace, clock, server) as made:
        good = _save(made, b"1").checkpoint
        server.down = True
        for number in range(2, 6):
            _save(made, b"%d" % number)
        assert server.tries == 4
        server.down = False
        made.restore(good.id)
        assert server.tries > 4
        assert (workspace / "file").read_bytes() == b"1"


def test_what_depends_on_local_files_alone_is_always_tried(
    workspace: Path, clock: SteppedClock
) -> None:
    server = Server(outside=False)
    server.down = True
    with _with(workspace, clock, server) as made:
        for number in range(6):
            _save(made, b"%d" % number)
    assert server.tries == 6


@pytest.mark.requirement("DB-2")
def test_a_database_server_that_takes_connections_and_never_answers(
    workspace: Path, clock: SteppedClock
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        url = f"postgresql://ada@127.0.0.1:{silent.getsockname()[1]}/shop"
        environment = {"PATH": str(server_programs()), "URL": url}
        configure(workspace, component_timeout=1)
        with _with(workspace, clock, PostgresComponent(["URL"], environment)) as made:
            outcomes = [_save(made, b"%d" % number) for number in range(3)]
            assert all(outcome.degraded for outcome in outcomes)
            assert _drained(silent) >= 3
            for number in range(3, 8):
                (said,) = _save(made, b"%d" % number).degraded
                assert said.startswith("postgres: paused after 3 failures")
            assert _drained(silent) == 0


def _drained(listening: socket.socket) -> int:
    count = 0
    while True:
        try:
            listening.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


@pytest.mark.requirement("CL-1")
def test_status_and_statistics_tell_what_is_left_alone(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(workspace, postgres=["URL"])
    monkeypatch.setenv("URL", "postgresql://ada@127.0.0.1:1/shop")
    monkeypatch.setenv("PATH", os.pathsep.join((str(server_programs()), os.environ["PATH"])))
    cli = CommandLine(workspace)
    cli("checkpoint", "why")
    (said,) = cli.json("status")["degraded"]
    assert list(said) == ["component", "reason", "failures", "left_alone_until"]
    assert (said["component"], said["failures"], said["left_alone_until"]) == ("postgres", 1, None)
    assert "postgres" in next(
        line for line in cli("status").out.splitlines() if line.startswith("without")
    )
    with SessionCheckpointer(workspace, cli.json("status")["session_id"]) as session:
        answer = ToolHandlers(session).call("checkpoint_stats")
    assert "The last checkpoint does not include postgres" in answer.output

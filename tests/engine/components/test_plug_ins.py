"""Components of other people: their mistakes are reported and affect nothing else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.components import installed
from holdfast.domain.errors import RestoreConflict, RestoreFailed, UsageError
from holdfast.engine.retention.cleanup import cleanup
from holdfast.engine.retention.deletion import delete
from holdfast.ports.component import (
    Captured,
    CaptureRequest,
    ComponentProblem,
    ContentSink,
    RestoreOf,
)
from holdfast.testing.samples import incompressible
from tests.behind_the_api import engine_of
from tests.engine.components.boxes import NEVER, Box, Later, misbehave
from tests.support.composition import configure
from tests.support.hostile_trees import fill


@pytest.mark.requirement("DB-3")
def test_components_come_and_go_with_a_checkpoint_in_their_order(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content, Later.content = b"second", b"second"
        fill(workspace / "file", b"2")
        done = session.restore_checkpoint(first)
        assert [(c.name, c.status) for c in done.components] == [
            ("box", "restored"),
            ("later", "restored"),
        ]
        assert (Box.content, Later.content) == (b"first", b"later")
        restores = [call for call in Box.calls if call.startswith("restore")]
        assert restores == ["restore box exact", "restore later exact"]
        session.undo()
        assert (Box.content, Later.content) == (b"second", b"second")
        session.redo()
        assert (Box.content, Later.content) == (b"first", b"later")


@pytest.mark.requirement("DB-3")
def test_a_restore_chooses_components_and_ways(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content, Later.content = b"second", b"second"
        session.restore_checkpoint(first, components={"later": "files", "box": "doubled"})
        assert (Box.content, Later.content) == (b"firstfirst", b"second")
        session.undo()
        assert (Box.content, Later.content) == (b"second", b"second")
        for wrong in ({"nobody": "exact"}, {"box": "backwards"}):
            with pytest.raises(UsageError):
                session.restore_checkpoint(first, components=wrong)


@pytest.mark.requirement("DB-3", "BX-7")
def test_a_restore_says_what_its_checkpoint_could_not_save(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = Box.capture

    def locked(box: Box, request: CaptureRequest, sink: ContentSink) -> Captured | None:
        if box.name == "box":
            raise ComponentProblem("the box is locked; unlock it")
        return capture(box, request, sink)

    with SessionCheckpointer(workspace, "s") as session:
        with monkeypatch.context() as meanwhile:
            misbehave(meanwhile, "capture", locked)
            first = session.checkpoint("while the box was locked")
        Box.content, Later.content = b"second", b"second"
        said = "box: left as it is; that checkpoint could not save it: the box is locked; unlock it"
        assert said in session.plan_restore(first).warnings
        done = session.restore_checkpoint(first)
        assert said in done.warnings
        assert (Box.content, Later.content) == (b"second", b"later")


@pytest.mark.requirement("DB-3", "BX-7")
def test_a_restore_names_what_needs_a_plug_in_that_is_gone(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("with the box")
    Box.content, Later.content = b"second", b"second"
    plugged_in = installed._plugged_in

    def without_the_box(name: str) -> Any:
        if name == "box":
            raise LookupError("no installed package offers it")
        return plugged_in(name)

    monkeypatch.setattr(installed, "_plugged_in", without_the_box)
    with SessionCheckpointer(workspace, "s") as session:
        (said,) = (one for one in session.plan_restore(first).warnings if one.startswith("box: "))
        assert said.startswith("box: left as it is; it cannot be loaded (LookupError: no installed")
        assert said in session.restore_checkpoint(first).warnings
    assert (Box.content, Later.content) == (b"second", b"later")


@pytest.mark.requirement("DB-3")
def test_an_undo_leaves_alone_what_the_restore_left_alone(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        fill(workspace / "file", b"2")
        session.restore_checkpoint(first, components={"later": "files", "box": "files"})
        Box.content = b"worked on since"
        session.undo()
        assert Box.content == b"worked on since"
        assert (workspace / "file").read_bytes() == b"2"


def _raises(*_: object) -> None:
    raise RuntimeError("out of\norder")


def _exits(*_: object) -> None:
    sys.exit(3)


def _hangs(*_: object) -> None:
    NEVER.wait()


def _endless(_self: Box, _request: CaptureRequest, sink: ContentSink) -> Captured:
    def pieces() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 20)

    sink.add("ten gigabytes", pieces())
    return Captured({})


def _no_json(*_: object) -> Captured:
    return Captured({"what": object()})


def _huge_facts(*_: object) -> Captured:
    return Captured({"what": "x" * 10_000_000})


def _no_bytes(_self: Box, _request: CaptureRequest, sink: ContentSink) -> Captured:
    sink.add("text", ["text"])  # type: ignore[list-item]
    return Captured({})


def _unchanged(*_: object) -> None:
    return None


@pytest.mark.requirement("DB-3")
@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (_raises, "RuntimeError: out of order"),
        (_exits, "SystemExit: 3"),
        (_hangs, "it did not finish within 0.2 seconds"),
        (_endless, "it produced more than 5.0 MB"),
        (_no_json, "its facts are not JSON"),
        (_huge_facts, "its facts use"),
        (_no_bytes, "it returned str instead of bytes"),
        (_unchanged, "it reported no change, but has no earlier state"),
    ],
)
def test_whatever_a_component_does_files_and_the_others_are_saved(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, act: Any, reason: str
) -> None:
    configure(
        workspace, component_timeout=0.2 if act is _hangs else 60, component_max_size=5_000_000
    )
    misbehave(monkeypatch, "capture", act)
    monkeypatch.setattr(Later, "capture", _whole_capture)
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("why")
        (degraded,) = outcome.degraded
        assert degraded.startswith(f"box: {reason}")
        assert outcome.checkpoint.partial
        assert outcome.checkpoint.files == 1
        Later.content = b"changed"
        fill(workspace / "file", b"2")
        with pytest.raises(RestoreConflict, match="box: it was not captured at that time"):
            session.restore_checkpoint(
                outcome.checkpoint.id, components={"box": "exact", "later": "exact"}
            )
        assert Later.content == b"changed"
        monkeypatch.undo()


def _whole_capture(self: Later, request: CaptureRequest, sink: ContentSink) -> Captured:
    sink.add("content", [self.content])
    return Captured({"bytes": len(self.content)})


@pytest.mark.requirement("DB-3")
def test_what_a_component_gives_after_it_was_given_up_is_refused(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(workspace, component_timeout=0.2)
    refused: list[str] = []
    done = threading.Event()

    def late(_self: Box, _request: CaptureRequest, sink: ContentSink) -> Captured:
        NEVER.wait()
        try:
            sink.add("late", [b"too late"])
        except ComponentProblem as error:
            refused.append(str(error))
        done.set()
        return Captured({})

    misbehave(monkeypatch, "capture", late)
    monkeypatch.setattr(Later, "capture", _whole_capture)
    with SessionCheckpointer(workspace, "s") as session:
        assert session.save_checkpoint("why").degraded
        NEVER.set()
        assert done.wait(30)
    assert refused == ["it was cancelled"]


@pytest.mark.requirement("DB-3")
def test_a_component_that_cannot_be_loaded_is_named(workspace: Path) -> None:
    configure(workspace, components=["box", "bad", "nobody"])
    with SessionCheckpointer(workspace, "s") as session:
        bad, nobody = session.save_checkpoint("why").degraded
    assert bad.startswith("bad: it cannot be loaded (AttributeError")
    assert "nobody: it cannot be loaded (LookupError: no installed package offers it" in nobody


@pytest.mark.requirement("DB-3", "RB-3")
def test_a_component_that_fails_takes_the_whole_restore_back(workspace: Path) -> None:
    Later.content = b"poison"
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content, Later.content = b"second", b"second"
        fill(workspace / "file", b"2")
        with pytest.raises(RestoreFailed, match="later: it is broken; buy a new one") as failure:
            session.restore_checkpoint(first)
        assert "rolled back" in failure.value.message
        assert (Box.content, Later.content) == (b"second", b"second")
        assert (workspace / "file").read_bytes() == b"2"
        done = session.restore_checkpoint(first, best_effort=True)
        assert [(c.name, c.status) for c in done.components] == [
            ("box", "restored"),
            ("later", "failed"),
        ]
        assert "it is as it was before" in done.components[1].detail
        assert (Box.content, Later.content) == (b"first", b"second")
        assert (workspace / "file").read_bytes() == b"1"


@pytest.mark.requirement("DB-3", "RB-3")
@pytest.mark.parametrize("act", [_hangs, _raises, _exits])
def test_a_restore_that_hangs_or_dies_is_rolled_back(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, act: Any
) -> None:
    configure(workspace, component_timeout=0.3)
    real = Box.restore
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content = b"second"
        fill(workspace / "file", b"2")
        acts = iter([act])
        misbehave(monkeypatch, "restore", lambda *given: next(acts, real)(*given))
        with pytest.raises(RestoreFailed, match="box"):
            session.restore_checkpoint(first, components={"later": "files"})
        assert Box.content == b"second"
        assert (workspace / "file").read_bytes() == b"2"
        session.restore_checkpoint(first, components={"later": "files"})
        assert Box.content == b"first"


@pytest.mark.requirement("DB-3", "ST-1")
def test_large_contents_are_stored_in_pieces_and_only_what_changed_is_stored_again(
    workspace: Path,
) -> None:
    large = bytearray(incompressible("a large database", 12_000_000))
    Box.content = bytes(large)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        size = session.stats["bytes_stored"]
        assert size > 12_000_000
        large[6_000_000:6_000_010] = b"0123456789"
        Box.content = bytes(large)
        session.checkpoint("after a small change")
        assert session.stats["bytes_stored"] - size < 700_000
        session.restore_checkpoint(first)
        assert Box.content == incompressible("a large database", 12_000_000)


@pytest.mark.requirement("DB-3", "ST-2", "ST-4")
def test_contents_live_and_go_with_their_checkpoints(workspace: Path, tmp_path: Path) -> None:
    Box.content = incompressible("one", 300_000)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("one", name="one")
        Box.content = incompressible("two", 300_000)
        second = session.checkpoint("two")
        session.export(tmp_path / "bundle.holdfast")
        engine = engine_of(session)
        delete(engine, engine.resolve(session._id, second))
        cleanup(engine, _Quiet())
        assert session.stats["bytes_stored"] < 450_000
        assert any(call == "release box 1" for call in Box.calls)
        session.restore_checkpoint(first)
        assert Box.content == incompressible("one", 300_000)
    imported = SessionCheckpointer.import_bundle(
        workspace, tmp_path / "bundle.holdfast", as_session="copy"
    )
    with SessionCheckpointer(workspace, "copy") as session:
        assert len(imported.added) == 2
        session.restore_checkpoint("HEAD")
        assert Box.content == incompressible("two", 300_000)


class _Quiet:
    def advance(self, phase: str, done: int, total: int | None) -> None:
        return None


@pytest.mark.requirement("RB-2", "DB-3")
def test_an_undo_leaves_alone_what_another_process_changed_while_the_restore_ran(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore = Box.restore

    def beside_others(self: Box, request: RestoreOf) -> None:
        restore(self, request)
        Later.content = b"written by somebody else meanwhile"

    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content = b"second"
        misbehave(monkeypatch, "restore", beside_others)
        session.restore_checkpoint(first, components={"later": "files"})
        misbehave(monkeypatch, "restore", restore)
        session.undo()
        assert Box.content == b"second"
        assert Later.content == b"written by somebody else meanwhile"

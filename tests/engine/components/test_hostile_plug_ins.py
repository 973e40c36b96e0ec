"""Plug-ins that hang, lie about themselves or answer nonsense: files are saved, and it is said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import RestoreConflict, RestoreFailed
from holdfast.engine.components import capture
from holdfast.engine.components.guard import Refusal
from holdfast.ports.component import ComponentPreview, RestoreOf
from tests.behind_the_api import engine_of
from tests.engine.components import boxes
from tests.engine.components.boxes import NEVER, Box, Later, misbehave
from tests.support.composition import configure
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("DB-3")


def _waits(*_: object) -> bool:
    return NEVER.wait()


def _fails(*_: object) -> bool:
    raise RuntimeError("out of order")


@pytest.mark.parametrize("applies", [_waits, _fails])
def test_one_that_cannot_say_whether_it_applies_blocks_no_other(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, applies: Any
) -> None:
    configure(workspace, components=["later", "box"], component_timeout=1)
    monkeypatch.setattr(Later, "applies", Box.applies)
    misbehave(monkeypatch, "applies", applies)
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("why")
        assert outcome.checkpoint.files == 1
        assert {call for call in Box.calls if call.startswith("capture")} == {
            "capture box",
            "capture later",
        }


def test_one_that_answers_just_after_the_time_limit_is_captured(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered_late(call: Callable[[], object], *, timeout_s: float) -> None:
        call()
        raise Refusal("it did not finish in time")

    configure(workspace, components=["box"])
    with SessionCheckpointer(workspace, "s") as session:
        vault = engine_of(session).vault
        with monkeypatch.context() as patched:
            patched.setattr(capture, "guarded", answered_late)
            assert capture._applicable(vault, vault.components.named(["box"])) == {"box"}


def _property(value: object) -> property:
    def give(_: object) -> object:
        if isinstance(value, BaseException):
            raise value
        return value

    return property(give)


@pytest.mark.parametrize("order", [RuntimeError("none"), "first", None, True])
def test_one_without_a_place_in_the_order_is_named_and_files_are_saved(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, order: object
) -> None:
    monkeypatch.setattr(Later, "order", 200)
    monkeypatch.setattr(Box, "order", _property(order))
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("why")
        assert outcome.checkpoint.files == 1
        assert outcome.checkpoint.partial
        [trouble] = outcome.degraded
        assert trouble.startswith("box: it cannot be loaded (")


@pytest.fixture
def packages(workspace: Path, tmp_path: Path) -> Iterator[Path]:
    """Where more of them can be installed; what they import is forgotten afterwards."""
    known = set(sys.modules)
    yield tmp_path / "packages"
    for name in set(sys.modules) - known:
        del sys.modules[name]


def _install(packages: Path, package: str, component: str, place: str) -> None:
    fill(packages / f"{package}-1.dist-info/METADATA", f"Name: {package}\n".encode())
    points = f"[holdfast.components]\n{component} = {place}\n".encode()
    fill(packages / f"{package}-1.dist-info/entry_points.txt", points)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("raise RuntimeError('no licence')", "no licence"),
        ("import no_such_module_at_all", "no_such_module_at_all"),
        ("from tests.engine.components.boxes import NEVER\nNEVER.wait()", "did not finish"),
        ("odd = None", "TypeError"),
    ],
)
def test_one_that_fails_or_hangs_when_it_is_imported_costs_no_files(
    workspace: Path, packages: Path, code: str, says: str
) -> None:
    configure(workspace, components=["odd", "box"], component_timeout=2)
    fill(packages / "odd_module.py", code.encode())
    _install(packages, "odd", "odd", "odd_module:odd")
    with SessionCheckpointer(workspace, "s") as session:
        outcome = session.save_checkpoint("why")
        assert outcome.checkpoint.files == 1
        [trouble] = outcome.degraded
        assert trouble.startswith("odd: it cannot be loaded (")
        assert says in trouble
        assert "capture box" in Box.calls


def test_two_packages_that_offer_one_name_are_both_named(workspace: Path, packages: Path) -> None:
    _install(packages, "rival", "box", f"{boxes.__name__}:Later")
    with SessionCheckpointer(workspace, "s") as session:
        [trouble] = session.save_checkpoint("why").degraded
    assert "several packages offer it" in trouble
    assert f"{boxes.__name__}:Box" in trouble
    assert f"{boxes.__name__}:Later" in trouble


@pytest.mark.parametrize("answer", [None, "text", 7, ComponentPreview(actions=7)])  # type: ignore[arg-type]
def test_a_plan_that_is_none_stops_the_restore_with_its_reason(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content = b"second"
        monkeypatch.setattr(Later, "plan", Box.plan)
        misbehave(monkeypatch, "plan", lambda *_: answer)
        with pytest.raises(RestoreConflict, match="box"):
            session.restore_checkpoint(first)
        assert Box.content == b"second"


@pytest.mark.parametrize("answer", [True, 7, [object()], ["not\x1b[2J\nright"]])
def test_a_verdict_that_is_none_takes_the_restore_back(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content = b"second"
        fill(workspace / "file", b"2")
        misbehave(monkeypatch, "verify", lambda *_: answer)
        with pytest.raises(RestoreFailed, match="box") as caught:
            session.restore_checkpoint(first)
        assert caught.value.message.isprintable()
        assert Box.content == b"second"
        assert (workspace / "file").read_bytes() == b"2"


def test_what_a_preview_says_is_made_fit_for_a_terminal(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = ComponentPreview(("do\x1b]0;owned\x07\nit",), ("be\rware",))
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        misbehave(monkeypatch, "plan", lambda *_: hostile)
        plan = session.plan_restore(first)
        assert plan.components[0].actions == ("do]0;owned it",)
        assert "box: be ware" in plan.warnings


def test_a_restore_that_was_given_up_gets_no_more_content(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[RestoreOf] = []
    restore = Box.restore

    def hangs_once(self: Box, request: RestoreOf) -> None:
        if not kept:
            kept.append(request)
            NEVER.wait()
        restore(self, request)

    configure(workspace, components=["box"], component_timeout=2)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        Box.content = b"second"
        misbehave(monkeypatch, "restore", hangs_once)
        with pytest.raises(RestoreFailed, match="did not finish"):
            session.restore_checkpoint(first)
        assert Box.content == b"second"
        with pytest.raises(Exception, match="cancelled"):
            b"".join(kept[0].contents.read("content"))

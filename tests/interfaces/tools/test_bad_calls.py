"""Calls that cannot be answered get a correction that leads to one that can; nothing is raised."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import SessionCheckpointer
from holdfast.api.confirmations import VALID_MINUTES, Confirmations
from holdfast.domain.errors import Refused
from holdfast.engine.engine import Engine
from holdfast.interfaces.tools.arguments import BadArguments, parse_arguments
from holdfast.interfaces.tools.handlers import TOOLS
from holdfast.interfaces.tools.maintenance import CleanedUp
from holdfast.interfaces.tools.restore_result import Restored
from holdfast.tools import ToolHandlers
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("CP-10")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("checkpoint_why", {}, "needs path"),
        ("checkpoint_why", None, "needs path"),
        ("checkpoint_why", "", "needs path"),
        ("checkpoint_annotate", {"text": "   "}, "text of checkpoint_annotate is empty"),
        ("checkpoint_create", {"reasoning": 5}, "reasoning of checkpoint_create is a number"),
        ("checkpoint_create", {"reasoning": ["a"]}, "is a list, not a string"),
        ("checkpoint_create", {"reasoning": "x" * 100_001}, "the limit is 100,000"),
        ("checkpoint_create", {"reasoning": "r", "confidence": 2}, "confidence of"),
        ("checkpoint_create", {"reasoning": "r", "confidence": "high"}, "'high', not a number"),
        ("checkpoint_create", {"reasoning": "r", "confidence": 10**400}, "a number is needed"),
        ("checkpoint_create", {"reasoning": "r", "confidence": True}, "true or false, not a"),
        (
            "checkpoint_create",
            {"reasoning": "r", "tags": [1]},
            "tags of checkpoint_create contains",
        ),
        ("checkpoint_create", {"reasoning": "r", "tags": {"a": 1}}, "an object, not a list"),
        ("checkpoint_create", {"reasoning": "r", "tags": ["t"] * 1001}, "the limit is 1,000"),
        ("checkpoint_create", {"reasoning": "r", "name": "HEAD"}, "reserved reference"),
        ("checkpoint_create", {"reasoning": "r", "colour": "red"}, "no argument 'colour'"),
        ("checkpoint_create", {"reasoning": "r", 7: 1}, "no argument 7"),
        ("checkpoint_create", "{broken", "not valid JSON"),
        ("checkpoint_create", "[" * 99_999, "not valid JSON"),
        ("checkpoint_create", "[1]", "are a list, not an object"),
        ("checkpoint_create", '"' + "x" * 4_000_001 + '"', "at most 4,000,000 are read"),
        ("checkpoint_create", 7, "are a number, not an object"),
        ("checkpoint_list", {"limit": 0}, "the minimum is 1"),
        ("checkpoint_list", {"limit": 1.5}, "whole number"),
        ("checkpoint_list", {"limit": float("nan")}, "whole number"),
        ("checkpoint_list", {"limit": 10**9}, "the maximum is 1000"),
        ("checkpoint_list", {"cursor": "../x"}, "unknown cursor"),
        ("checkpoint_list", {"cursor": "9" * 30}, "unknown cursor"),
        ("checkpoint_list", {"kind": "purple"}, "types are: manual, auto"),
        ("checkpoint_list", {"records": "maybe"}, "not true or false"),
        ("checkpoint_search", {}, "needs query"),
        ("checkpoint_search", {"query": "x" * 2_001}, "the limit is 2,000"),
        ("checkpoint_annotate", {"text": "x" * 1_000_000}, "1000000 bytes; the limit is 100000"),
        ("checkpoint_annotate", {"text": "ä" * 60_000}, "120000 bytes; the limit is 100000"),
        (
            "checkpoint_annotate",
            f'{{"text": "{"x" * 1_000_000}"}}',
            "1000000 bytes; the limit is 100000",
        ),
        ("checkpoint_show", {"ref": "nothing-like-it"}, "unknown_reference"),
        ("checkpoint_show", {"ref": "x" * 401}, "the limit is 400"),
        ("checkpoint_diff", {"paths": ["/etc/passwd"]}, "outside the workspace"),
        ("checkpoint_diff", {"paths": ["../x"]}, "not a path inside the workspace"),
        ("checkpoint_diff", {"paths": ["a\0b"]}, "not a path inside the workspace"),
        ("checkpoint_diff", {"paths": [""]}, "non-empty"),
        ("checkpoint_restore", {"ref": "HEAD", "paths": ["gone"]}, "neither in that checkpoint"),
        ("checkpoint_restore", {"confirm_token": "made-up"}, "not_confirmed"),
        ("checkpoint_cleanup", {"confirm_token": "made-up"}, "not_confirmed"),
        ("checkpoint_undo", {}, "nothing_to_undo"),
        ("checkpoint_reset", {"confirm_token": "made-up"}, "not_confirmed"),
        ("checkpoint_auto_configure", {"settings": {"ignore": ["*"]}}, "has no 'ignore'"),
        ("checkpoint_auto_configure", {"settings": {"key_file": "/x"}}, "has no 'key_file'"),
        ("checkpoint_auto_configure", {"settings": {"retention": 4}}, "invalid_setting"),
        (
            "checkpoint_auto_configure",
            {"settings": {"auto_files.x": 1}},
            "has no 'auto_files.x'",
        ),
        ("checkpoint_auto_configure", {"settings": "no"}, "is a string, not an object"),
        ("checkpoint_auto_configure", {"settings": [1]}, "is a list, not an object"),
        ("checkpoint_stats", {"verbose": True}, "it takes: no arguments"),
        ("checkpoint_created", {}, "Did you mean checkpoint_create?"),
        ("rm -rf", {}, "Tools are: checkpoint_create"),
    ],
)
def test_the_answer_says_what_is_wrong_and_how_it_is_right(
    tools: ToolHandlers, session: SessionCheckpointer, name: str, arguments: Any, said: str
) -> None:
    session.checkpoint("there is one")
    result = tools.call(name, arguments)
    assert not result.success
    assert said in result.output
    assert "Traceback" not in result.output
    assert len(result.output) < 2_000
    if name in TOOLS:
        assert "What to do: " in result.output


def test_what_models_write_is_understood(tools: ToolHandlers, session: SessionCheckpointer) -> None:
    text = json.dumps({"reasoning": "r", "confidence": "0.9", "tags": '["a", "b"]', "name": None})
    assert tools.call("checkpoint_create", text).success
    assert session.history()[0].intent.tags == ("a", "b")
    one: Any = b'{"reasoning": "r", "tags": "one"}'
    assert tools.call("checkpoint_create", one).success
    assert session.history()[0].intent.tags == ("one",)
    assert tools.call("checkpoint_list", {"limit": "2", "records": "True"}).success
    assert tools.call("checkpoint_stats", None).success
    assert tools.call("checkpoint_show", {"ref": " "}).success


def test_of_several_settings_all_are_changed_or_none(tools: ToolHandlers) -> None:
    wrong = {"auto_files": 7, "retention.tool": {"most": "many"}}
    assert not tools.call("checkpoint_auto_configure", {"settings": wrong}).success
    listed = tools.call("checkpoint_auto_configure").output
    assert "auto_files = 5 (default)" in listed
    right = {"auto_files": 7, "retention.tool": {"most": 3}}
    assert tools.call("checkpoint_auto_configure", {"settings": right}).success
    assert "retention = {'tool': {'most': 3}}" in tools.call("checkpoint_auto_configure").output


def test_a_name_that_is_no_text_is_answered(tools: ToolHandlers) -> None:
    nothing: Any = None
    assert not tools.call(nothing, {}).success
    unhashable: Any = ["checkpoint_list"]
    assert not tools.call(unhashable, {}).success


def test_a_token_counts_once(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    fill(workspace / "notes.txt", b"broken")
    preview = tools.call("checkpoint_restore", {"ref": "HEAD"}).data
    assert isinstance(preview, Restored)
    token = {"confirm_token": preview.confirm_token}
    assert tools.call("checkpoint_restore", token).success
    fill(workspace / "notes.txt", b"broken again")
    again = tools.call("checkpoint_restore", token)
    assert not again.success
    assert "already used" in again.output
    assert (workspace / "notes.txt").read_bytes() == b"broken again"


@pytest.mark.parametrize("tool", ["checkpoint_cleanup", "checkpoint_restore"])
def test_a_token_is_for_the_tool_that_gave_it(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path, tool: str
) -> None:
    session.checkpoint("good")
    fill(workspace / "notes.txt", b"broken")
    other = "checkpoint_cleanup" if tool == "checkpoint_restore" else "checkpoint_restore"
    preview = tools.call(other, {"ref": "HEAD"} if other == "checkpoint_restore" else {}).data
    assert isinstance(preview, Restored | CleanedUp)
    assert not tools.call(tool, {"confirm_token": preview.confirm_token}).success
    assert (workspace / "notes.txt").read_bytes() == b"broken"


def test_a_workspace_that_changed_since_the_preview_is_previewed_again(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    fill(workspace / "notes.txt", b"broken")
    first = tools.call("checkpoint_restore", {"ref": "HEAD"}).data
    assert isinstance(first, Restored)
    fill(workspace / "src" / "app.py", b"changed too")
    answer = tools.call("checkpoint_restore", {"confirm_token": first.confirm_token})
    assert isinstance(answer.data, Restored)
    assert answer.success
    assert not answer.data.done
    assert "has changed since the preview" in answer.output
    assert (workspace / "notes.txt").read_bytes() == b"broken"
    assert tools.call("checkpoint_restore", {"confirm_token": answer.data.confirm_token}).success
    assert (workspace / "src" / "app.py").read_bytes() == b"print(1)\n"


@pytest.mark.requirement("RB-1")
def test_a_change_just_before_the_store_is_locked_is_previewed_again(
    tools: ToolHandlers,
    session: SessionCheckpointer,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session.checkpoint("good")
    fill(workspace / "notes.txt", b"broken")
    first = tools.call("checkpoint_restore", {"ref": "HEAD"}).data
    assert isinstance(first, Restored)
    restore = Engine.restore

    def late(engine: Engine, *given: Any, **named: Any) -> Any:
        fill(workspace / "src" / "app.py", b"changed too")
        return restore(engine, *given, **named)

    monkeypatch.setattr(Engine, "restore", late)
    answer = tools.call("checkpoint_restore", {"confirm_token": first.confirm_token})
    assert isinstance(answer.data, Restored)
    assert not answer.data.done
    assert (workspace / "src" / "app.py").read_bytes() == b"changed too"
    assert (workspace / "notes.txt").read_bytes() == b"broken"


def test_a_token_means_the_checkpoint_that_was_shown(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    fill(workspace / "notes.txt", b"newer")
    preview = tools.call("checkpoint_restore", {"ref": "HEAD"}).data
    assert isinstance(preview, Restored)
    session.checkpoint("HEAD is another one now")
    answer = tools.call("checkpoint_restore", {"confirm_token": preview.confirm_token})
    assert answer.success
    assert (workspace / "notes.txt").read_bytes() == b"one\n"


def test_other_arguments_beside_a_token_are_refused(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good", name="good")
    fill(workspace / "notes.txt", b"broken")
    preview = tools.call("checkpoint_restore", {"ref": "good"}).data
    assert isinstance(preview, Restored)
    both = {"confirm_token": preview.confirm_token, "ref": "good", "paths": ["src"]}
    answer = tools.call("checkpoint_restore", both)
    assert not answer.success
    assert "paths of checkpoint_restore" in answer.output
    assert (workspace / "notes.txt").read_bytes() == b"broken"
    preview = tools.call("checkpoint_restore", {"ref": "good"}).data
    assert isinstance(preview, Restored)
    same = {"confirm_token": preview.confirm_token, "ref": "good"}
    assert tools.call("checkpoint_restore", same).success


class _Clock:
    def __init__(self) -> None:
        self.now = 0

    def now_ns(self) -> int:
        return self.now

    monotonic_ns = now_ns


def test_a_token_expires() -> None:
    clock = _Clock()
    confirmations = Confirmations(clock.monotonic_ns, iter("ab").__next__)
    confirmations.offer("t", 1)
    clock.now = VALID_MINUTES * 60 * 10**9
    assert confirmations.take("t", "a") == 1
    confirmations.offer("t", 2)
    clock.now += VALID_MINUTES * 60 * 10**9 + 1
    with pytest.raises(Refused, match="expired"):
        confirmations.take("t", "b")


def test_only_so_many_tokens_are_open() -> None:
    numbers = iter(range(100))
    confirmations = Confirmations(_Clock().monotonic_ns, lambda: str(next(numbers)))
    tokens = [confirmations.offer("t", number) for number in range(100)]
    with pytest.raises(Refused, match="was replaced"):
        confirmations.take("t", tokens[0])
    assert confirmations.take("t", tokens[-1]) == 99


def test_one_token_is_one_deed_however_many_ask_at_once() -> None:
    confirmations = Confirmations(_Clock().monotonic_ns, lambda: "token")
    confirmations.offer("t", 1)
    begin = threading.Barrier(8)
    taken: list[object] = []

    def ask() -> None:
        begin.wait()
        try:
            taken.append(confirmations.take("t", "token"))
        except Refused:
            return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [1]


def test_a_workspace_that_is_gone_is_reported(tools: ToolHandlers, workspace: Path) -> None:
    shutil.rmtree(workspace)
    for name in TOOLS:
        result = tools.call(name, {"reasoning": "r"} if name == "checkpoint_create" else {})
        assert "Traceback" not in result.output
    assert not tools.call("checkpoint_create", {"reasoning": "r"}).success


def test_an_unexpected_failure_is_reported_without_its_stack(
    tools: ToolHandlers, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("wires\ncrossed")

    monkeypatch.setattr("holdfast.engine.statistics.session_statistics", fail)
    result = tools.call("checkpoint_stats", {})
    assert not result.success
    assert "RuntimeError: wires\\x0acrossed" in result.output
    assert "Traceback" not in result.output


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(data=st.data(), name=st.sampled_from(sorted(TOOLS)))
def test_arguments_of_any_kind_are_taken_or_corrected(data: st.DataObject, name: str) -> None:
    known = [parameter.name for parameter in TOOLS[name].parameters]
    keys = st.sampled_from([*known, "other"]) if known else st.just("other")
    arguments = data.draw(st.dictionaries(keys, _VALUES) | _VALUES | st.binary(max_size=20))
    with contextlib.suppress(BadArguments):
        assert list(parse_arguments(TOOLS[name], arguments)) == known

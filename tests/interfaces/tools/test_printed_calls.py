"""The calls that two designs of checkpoint tools print are accepted and answered with their keys.

The eight tools of L9 ADR-0062, with its parameters and defaults, and the four of Sunwell RFC-128.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.interfaces.tools.handlers import TOOLS, input_schema
from holdfast.tools import ToolHandlers
from tests.behind_the_api import engine_of
from tests.components.git.repositories import git
from tests.support.clocks import pass_days
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("MC-1")


def answer(tools: ToolHandlers, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The data of an answer, as a program that speaks JSON sees it."""
    result = tools.call(name, arguments)
    assert result.success, result.output
    data: Any = result.data
    return dataclasses.asdict(data)


def restored(tools: ToolHandlers, /, **arguments: Any) -> dict[str, Any]:
    """A restore whose preview was confirmed."""
    token = answer(tools, "checkpoint_restore", **arguments)["confirm_token"]
    return answer(tools, "checkpoint_restore", confirm_token=token)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("checkpoint_create", {"description": None, "tags": None}),
        ("checkpoint_list", {"limit": 10, "checkpoint_type": None, "session_id": None}),
        ("checkpoint_restore", {"checkpoint_id": None, "files_only": True, "preview": False}),
        ("checkpoint_diff", {"checkpoint_id": None, "context_lines": 3}),
        ("checkpoint_search", {"query": None, "limit": 5}),
        (
            "checkpoint_auto_configure",
            {"enabled": None, "interval_minutes": None, "file_threshold": None}
            | {"max_checkpoints": None},
        ),
        ("checkpoint_stats", {}),
        ("checkpoint_cleanup", {}),
        ("checkpoint_history", {"limit": 10}),
    ],
)
def test_parameters_are_offered_with_the_printed_defaults(
    name: str, parameters: dict[str, Any]
) -> None:
    offered = input_schema(TOOLS[name])["properties"]
    assert offered.keys() >= parameters.keys()
    assert {one: offered[one].get("default") for one in parameters} == parameters


def test_create_answers_with_id_sha_files_and_time(tools: ToolHandlers) -> None:
    made = answer(tools, "checkpoint_create", description="Before refactor", tags=["auth"])
    assert made["success"] is True
    assert made["files_saved"] == 2
    assert made["degraded_mode"] is False
    assert re.fullmatch(r"[0-9a-f]{64}", made["sha"])
    assert made["timestamp"] == made["checkpoint"]["created_at"]
    [listed] = answer(tools, "checkpoint_list")["checkpoints"]
    assert listed["id"] == made["checkpoint_id"]
    assert (listed["reasoning"], listed["tags"]) == ("Before refactor", ["auth"])


def test_create_without_words_says_what_changed(tools: ToolHandlers, workspace: Path) -> None:
    assert answer(tools, "checkpoint_create")["checkpoint"]["reasoning"] == "First checkpoint"
    fill(workspace / "notes.txt", b"two\n")
    made = answer(tools, "checkpoint_create", description=None, tags=None)
    assert "notes.txt" in made["checkpoint"]["reasoning"]
    unchanged = answer(tools, "checkpoint_create", description="")["checkpoint"]
    assert unchanged["reasoning"].startswith("No changes since")


def test_a_description_is_text_and_never_a_command(tools: ToolHandlers, workspace: Path) -> None:
    words = "test; rm -rf / $(touch pwned) `id`"
    assert answer(tools, "checkpoint_create", description=words)["success"]
    assert answer(tools, "checkpoint_list")["checkpoints"][0]["reasoning"] == words
    assert not (workspace / "pwned").exists()


def test_both_names_of_a_parameter_with_two_values_are_refused(tools: ToolHandlers) -> None:
    answer(tools, "checkpoint_create", name="one")
    same = {"checkpoint_id": "one", "ref": "one", "checkpoint": None}
    assert tools.call("checkpoint_restore", same).success
    refused = tools.call("checkpoint_restore", {"checkpoint_id": "one", "ref": "HEAD"})
    assert not refused.success
    assert "different values" in refused.output


def test_a_description_and_another_reasoning_are_refused(
    tools: ToolHandlers, session: SessionCheckpointer
) -> None:
    assert answer(tools, "checkpoint_create", description="same", reasoning="same")["success"]
    refused = tools.call("checkpoint_create", {"description": "one", "reasoning": "two"})
    assert not refused.success
    assert "different values" in refused.output
    assert session.checkpoint_count == 1


def test_a_list_is_filtered_by_type_and_by_session(
    tools: ToolHandlers, workspace: Path, session: SessionCheckpointer
) -> None:
    answer(tools, "checkpoint_create", description="mine")
    with SessionCheckpointer(workspace, "other") as other:
        other.checkpoint("theirs")
    manual = answer(tools, "checkpoint_list", limit=10, checkpoint_type="manual")["checkpoints"]
    assert [one["reasoning"] for one in manual] == ["mine"]
    assert (manual[0]["type"], manual[0]["session_id"]) == ("manual", session.session_id)
    own = SessionId(session.session_id)
    for kind in (Kind.TOOL, Kind.RISKY, Kind.END_OF_DAY):
        fill(workspace / "notes.txt", kind.encode())
        engine_of(session).save(own, make_intent(kind.value), kind=kind)
    restored(tools, checkpoint_id=manual[0]["id"])
    for wanted, kinds in (
        ("manual", ["manual"]),
        ("auto", ["end-of-day", "risky", "tool"]),
        ("risky", ["risky"]),
        ("end-of-day", ["end-of-day"]),
        ("safety", ["safety"]),
    ):
        found = answer(tools, "checkpoint_list", checkpoint_type=wanted)["checkpoints"]
        assert [one["kind"] for one in found] == kinds, wanted
        named = session.summaries(kind=wanted, records=wanted == "safety")
        assert [one["id"] for one in found] == [one.id for one in named], wanted
    arguments = {"checkpoint_type": "session", "records": True}
    of_session = answer(tools, "checkpoint_list", **arguments)["checkpoints"]
    assert {one["kind"] for one in of_session} >= {"safety", "restore"}
    [theirs] = answer(tools, "checkpoint_list", session_id="other")["checkpoints"]
    assert (theirs["reasoning"], theirs["session_id"]) == ("theirs", "other")


def test_the_hint_of_a_listed_checkpoint_restores_it(tools: ToolHandlers) -> None:
    made = answer(tools, "checkpoint_create")
    [listed] = answer(tools, "checkpoint_list")["checkpoints"]
    expected = f'checkpoint_restore {{"checkpoint_id": "{made["checkpoint_id"]}"}}'
    assert listed["restore_hint"] == expected


@pytest.mark.requirement("BX-8")
def test_the_hint_of_another_sessions_checkpoint_restores_it_too(
    tools: ToolHandlers, workspace: Path
) -> None:
    with SessionCheckpointer(workspace, "other") as other:
        theirs = other.checkpoint("theirs", name="same")
    fill(workspace / "notes.txt", b"two\n")
    mine = answer(tools, "checkpoint_create", name="same")["checkpoint_id"]
    [listed] = answer(tools, "checkpoint_list", session_id="other")["checkpoints"]
    tool, _, arguments = listed["restore_hint"].partition(" ")
    assert tool == "checkpoint_restore"
    token = answer(tools, tool, **json.loads(arguments))["confirm_token"]
    text = tools.call(tool, {"confirm_token": token}).output
    assert (workspace / "notes.txt").read_bytes() == b"one\n"
    assert "Another session" not in text, "the agent did it itself"
    [way_back] = re.findall(r"To undo this: checkpoint_restore (\{.*?\})\.", text)
    restored(tools, **json.loads(way_back))
    assert (workspace / "notes.txt").read_bytes() == b"two\n"
    assert answer(tools, "checkpoint_restore", checkpoint="other:same")["target"] == theirs
    assert answer(tools, "checkpoint_restore", checkpoint="same")["target"] == mine


def test_a_restore_is_previewed_and_then_restores_the_files(
    tools: ToolHandlers, workspace: Path
) -> None:
    made = answer(tools, "checkpoint_create")
    fill(workspace / "notes.txt", b"broken\n")
    fill(workspace / "extra.txt", b"saved too\n")
    answer(tools, "checkpoint_create")
    shown = answer(tools, "checkpoint_restore", checkpoint_id=made["sha"], preview=True)
    assert (shown["success"], shown["preview"], shown["done"]) == (True, True, False)
    assert shown["checkpoint_id"] == made["checkpoint_id"]
    assert shown["files_affected"] == [
        {"status": "D", "file": "extra.txt"},
        {"status": "M", "file": "notes.txt"},
    ]
    assert shown["total_files"] == 2
    assert (workspace / "notes.txt").read_bytes() == b"broken\n"
    done = restored(tools, checkpoint=made["checkpoint_id"], files_only=True)
    assert (done["success"], done["preview"], done["total_files"]) == (True, False, 2)
    assert (done["method"], done["branch_created"]) == ("files_only", None)
    assert (workspace / "notes.txt").read_bytes() == b"one\n"


def test_the_start_of_a_sha_names_a_checkpoint_too(tools: ToolHandlers, workspace: Path) -> None:
    made = answer(tools, "checkpoint_create")
    fill(workspace / "notes.txt", b"two\n")
    answer(tools, "checkpoint_create")
    for start in (made["sha"], made["sha"][:12], made["sha"][:7]):
        shown = answer(tools, "checkpoint_show", checkpoint_id=start)["checkpoint"]
        assert shown["id"] == made["checkpoint_id"]
    for unknown in (made["sha"][:6], "0" * 64):
        refused = tools.call("checkpoint_show", {"checkpoint_id": unknown})
        assert "unknown_reference" in refused.output


def test_a_sha_names_the_checkpoint_and_not_the_copy_before_a_restore(
    tools: ToolHandlers, workspace: Path
) -> None:
    first = answer(tools, "checkpoint_create")
    fill(workspace / "notes.txt", b"two\n")
    second = answer(tools, "checkpoint_create")
    restored(tools, checkpoint_id=first["checkpoint_id"])
    for made in (first, second):
        shown = answer(tools, "checkpoint_show", checkpoint_id=made["sha"])["checkpoint"]
        assert (shown["id"], shown["kind"]) == (made["checkpoint_id"], "manual")


def test_files_only_false_puts_git_on_a_branch_of_its_own(
    tools: ToolHandlers, workspace: Path
) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "first")
    made = answer(tools, "checkpoint_create")
    fill(workspace / "notes.txt", b"two\n")
    git(workspace, "commit", "-qam", "second")
    asked = {"checkpoint_id": made["checkpoint_id"], "files_only": False}
    assert " is created at " in tools.call("checkpoint_restore", asked).output
    done = restored(tools, checkpoint_id=made["checkpoint_id"], files_only=False)
    assert done["method"] == "full_branch"
    assert done["branch_created"].startswith("restore/")
    assert git(workspace, "branch", "--show-current").strip() == done["branch_created"]
    assert (workspace / "notes.txt").read_bytes() == b"one\n"


def test_the_diff_of_a_checkpoint_has_its_changes_with_context(
    tools: ToolHandlers, workspace: Path
) -> None:
    lines = [b"%d\n" % number for number in range(20)]
    fill(workspace / "notes.txt", b"".join(lines))
    first = answer(tools, "checkpoint_create")
    lines[10] = b"changed\n"
    fill(workspace / "notes.txt", b"".join(lines))
    made = answer(tools, "checkpoint_create")
    shown = answer(tools, "checkpoint_diff", checkpoint_id=made["checkpoint_id"])
    assert (shown["from_id"], shown["to_id"]) == (first["checkpoint_id"], made["checkpoint_id"])
    assert [line for line in shown["diff"].split("\n") if line.startswith(" ")] == [
        " 7", " 8", " 9", " 11", " 12", " 13"
    ]  # fmt: skip
    narrow = answer(tools, "checkpoint_diff", checkpoint_id=made["sha"], context_lines=0)["diff"]
    assert "-10\n+changed" in narrow
    assert " 9" not in narrow.split("\n")
    whole = answer(tools, "checkpoint_diff", checkpoint_id=first["checkpoint_id"])
    assert whole["from_id"] is None
    assert {one["change"] for one in whole["changes"]} == {"added"}


def test_a_comparison_begins_at_head_or_for_a_named_end_at_the_first_checkpoint(
    tools: ToolHandlers, workspace: Path
) -> None:
    first = answer(tools, "checkpoint_create")["checkpoint_id"]
    fill(workspace / "notes.txt", b"two\n")
    second = answer(tools, "checkpoint_create")["checkpoint_id"]
    fill(workspace / "notes.txt", b"three\n")
    head = answer(tools, "checkpoint_create")["checkpoint_id"]
    for arguments, sides in (
        ({}, (head, None)),
        ({"from_checkpoint": first}, (first, None)),
        ({"to_checkpoint": second}, (first, second)),
        ({"to_checkpoint": "HEAD"}, (first, head)),
    ):
        found = answer(tools, "checkpoint_diff", **arguments)
        assert (found["from_id"], found["to_id"]) == sides, arguments


def test_a_search_finds_at_most_five(tools: ToolHandlers) -> None:
    for number in range(7):
        answer(tools, "checkpoint_create", description=f"needle {number}")
    assert len(answer(tools, "checkpoint_search", query="needle")["hits"]) == 5


def test_automatic_checkpoints_are_configured_and_switched_off(tools: ToolHandlers) -> None:
    asked = {"interval_minutes": 10, "file_threshold": 3, "max_checkpoints": 12}
    on = answer(tools, "checkpoint_auto_configure", enabled=True, **asked)
    assert on["status"] == "enabled"
    assert asked.items() <= on.items()
    rules = {one["name"]: one["value"] for one in on["settings"]}["retention"]
    assert {rules[kind]["most"] for kind in ("interval", "threshold")} == {12}
    assert rules["interval"]["age"] == "7 days"
    assert answer(tools, "checkpoint_auto_configure", enabled=False)["status"] == "disabled"
    assert answer(tools, "checkpoint_stats")["auto_enabled"] is False
    again = answer(tools, "checkpoint_auto_configure", enabled=True)
    assert (again["interval_minutes"], again["file_threshold"]) == (30, 5)


def test_statistics_count_by_type_and_session(
    tools: ToolHandlers, workspace: Path, session: SessionCheckpointer
) -> None:
    answer(tools, "checkpoint_create")
    with SessionCheckpointer(workspace, "other") as other:
        other.checkpoint("theirs")
    found = answer(tools, "checkpoint_stats")
    assert (found["total_checkpoints"], found["manual_checkpoints"]) == (2, 2)
    assert (found["auto_checkpoints"], found["unique_sessions"]) == (0, 2)
    newest = answer(tools, "checkpoint_list", session_id="other")["checkpoints"][0]
    assert found["latest_checkpoint"] == newest["timestamp"]
    assert (found["auto_enabled"], found["auto_interval_minutes"]) == (True, 30)
    assert found["retention_days"] == 7


def test_a_cleanup_deletes_what_has_expired_and_nothing_else(
    tools: ToolHandlers,
    session: SessionCheckpointer,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manual = answer(tools, "checkpoint_create")["checkpoint_id"]
    fill(workspace / "notes.txt", b"by a tool\n")
    own = SessionId(session.session_id)
    tool = engine_of(session).save(own, make_intent("Before Edit"), kind=Kind.TOOL).checkpoint.id
    fill(workspace / "notes.txt", b"by hand\n")
    newest = answer(tools, "checkpoint_create")["checkpoint_id"]
    pass_days(monkeypatch, 400)
    shown = answer(tools, "checkpoint_cleanup")
    assert [one["id"] for one in shown["dropped"]] == [tool]
    assert session.get(tool) is not None, "a preview deletes nothing"
    done = answer(tools, "checkpoint_cleanup", confirm_token=shown["confirm_token"])
    assert (done["status"], done["total_dropped"]) == ("cleanup completed", 1)
    assert [one.id for one in session.summaries()] == [newest, manual]


def test_a_cleanup_is_previewed_and_completed(tools: ToolHandlers) -> None:
    answer(tools, "checkpoint_create")
    shown = answer(tools, "checkpoint_cleanup")
    assert shown["status"] == "preview"
    done = answer(tools, "checkpoint_cleanup", confirm_token=shown["confirm_token"])
    assert done["status"] == "cleanup completed"


def test_the_four_calls_of_sunwell_are_answered(tools: ToolHandlers, workspace: Path) -> None:
    said = {"reasoning": "tests pass", "name": "pre-auth", "confidence": 0.95}
    answer(tools, "checkpoint_create", **said, goal_id="g-1", task_id="t-1")
    shown = answer(tools, "checkpoint_show")
    assert (shown["goal_id"], shown["task_id"]) == ("g-1", "t-1")
    fill(workspace / "notes.txt", b"two\n")
    answer(tools, "checkpoint_create", reasoning="halfway", name="half")
    named = {"from_checkpoint": "pre-auth", "to_checkpoint": "half"}
    [change] = answer(tools, "checkpoint_diff", **named)["changes"]
    assert (change["path"], change["change"]) == ("notes.txt", "modified")
    assert "95%" in tools.call("checkpoint_history", {"limit": 10}).output
    restored(tools, checkpoint="pre-auth")
    assert (workspace / "notes.txt").read_bytes() == b"one\n"


def test_a_checkpoint_is_shown_with_the_conversation_before_it(
    tools: ToolHandlers, session: SessionCheckpointer
) -> None:
    for number in range(4):
        session.add_message("user" if number % 2 == 0 else "assistant", f"message {number}")
    answer(tools, "checkpoint_create")
    shown = answer(tools, "checkpoint_show")
    assert [one["content"] for one in shown["conversation"]] == [
        "message 1",
        "message 2",
        "message 3",
    ]
    assert "user: message 2" in tools.call("checkpoint_show").output

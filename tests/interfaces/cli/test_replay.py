"""`holdfast replay` in a pipe and as data, and what it leaves alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from tests.interfaces.cli.command_line import CommandLine, run
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.support.composition import SESSION
from tests.support.crash_server import CrashServer, Request
from tests.support.tree_hash import debris, describe
from tests.support.wrecked_workspace import Story

pytestmark = pytest.mark.requirement("SE-10")


def test_in_a_pipe_the_steps_are_plain_lines(told: CommandLine) -> None:
    out = told("replay", "second").out
    assert "\x1b" not in out
    first, *rest = out.splitlines()
    assert re.fullmatch(r"  1 checkpoint [0-9a-f]{20} first 20\S+ manual - the first one", first)
    assert "    added src/app.py" in rest
    [marked] = [line for line in rest if line.startswith(">")]
    assert marked.endswith("the second one")
    assert "    modified src/app.py" in rest
    patch = told("replay", "--patch").out
    assert "-    return 1\n+    return 2\n" in patch


def test_json_has_the_steps_as_data(told: CommandLine) -> None:
    answer = told.json("replay", "second")
    assert answer["position"] == 1
    steps = answer["steps"]
    assert [step["action"] for step in steps] == ["checkpoint"] * 3 + ["restore"]
    assert [step["index"] for step in steps] == [0, 1, 2, 3]
    assert steps[1]["reasoning"] == "the second one"
    assert steps[1]["before"] == steps[0]["id"]
    assert steps[1]["changes"] == [{"path": "src/app.py", "change": "modified"}]
    assert steps[1]["round"] == "session_1"
    assert steps[3]["restores_from"] == steps[0]["id"]
    assert steps[3]["is_head"] is True
    [change] = told.json("replay", "--patch")["steps"][1]["changes"]
    assert "+    return 2" in change["hunks"][0]["lines"]


def test_an_interrupted_restore_is_left_as_it_is(tmp_path: Path) -> None:
    story = Story(tmp_path / "project")
    with CrashServer() as server:
        request = Request(str(story.workspace), "restore", story.good)
        calls = server.ask(request).calls
        story.go_to(story.bad)
        # Far enough that the journal exists and some paths are replaced.
        assert story.ask(server, "restore", at=calls // 2, argument=story.good).died
    left, staged = describe(story.workspace, mtimes=True), debris(story.workspace)
    assert staged
    answer = run("-C", str(story.workspace), "--session", SESSION, "--json", "replay")
    assert (answer.status, answer.err) == (0, "")
    assert len(answer.json["steps"]) > 2
    assert describe(story.workspace, mtimes=True) == left
    assert debris(story.workspace) == staged
    assert story.recover() in (story.old, story.new)


@pytest.mark.parametrize(
    ("arguments", "status"), [(["nothing"], 4), (["a", "b"], 2), (["--unknown"], 2)]
)
def test_mistakes_are_named(told: CommandLine, arguments: list[str], status: int) -> None:
    answer = told("replay", *arguments)
    assert (answer.status, answer.out) == (status, "")
    assert answer.err.startswith("error: ")


def test_without_checkpoints_there_is_nothing_to_replay(cli: CommandLine) -> None:
    assert cli("replay").status == 4


def test_on_a_dumb_terminal_the_steps_are_listed(told: CommandLine) -> None:
    with Screen(told.workspace, "replay", environment={"TERM": "dumb"}) as screen:
        shown = screen.finish()
        assert screen.status == 0
    assert "the second one" in shown
    assert "\x1b" not in shown


@pytest.mark.requirement("SE-10", "AG-1")
def test_agent_states_and_memory_files_are_shown_as_they_were_then(cli: CommandLine) -> None:
    cli.json("config", "set", "agent_state", '["notes/*.md"]')
    notes = cli.workspace / "notes"
    notes.mkdir()
    (notes / "memory.md").write_text("what it knew\n")
    with SessionCheckpointer(cli.workspace, "s") as session:
        session.set_agent_state("planner", {"step": 1})
        first = session.checkpoint("first")
        (notes / "memory.md").write_text("something else\n")
        session.set_agent_state("planner", {"step": 2})
        session.checkpoint("second")
    memory = cli.json("replay", first, "--memory")
    file = {"path": str(notes / "memory.md"), "content": "what it knew\n"}
    assert memory == {"checkpoint": first, "files": [file]}
    planner = {"session_id": "s", "agent": "planner", "state": {"step": 1}}
    assert cli.json("replay", first, "--agents") == {"checkpoint": first, "agents": [planner]}
    assert cli("replay", first, "--agents").out == 'planner (s): {"step": 1}\n'
    assert cli("replay", first, "--memory").out == f"{notes}/memory.md\n    what it knew\n"
    assert (notes / "memory.md").read_text() == "something else\n"
    assert cli("replay", first, "--memory", "--agents").status == 2

"""`holdfast log --graph` and `--messages`: the timeline, drawn and as data."""

from __future__ import annotations

import re

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.story import Role
from holdfast.interfaces.cli.text_layout import cell_width
from holdfast.ports.story import NewMessage
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("SE-9", "CL-1")

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def two_ideas(cli: CommandLine) -> list[str]:
    """Two ideas tried from one beginning, the second approved; then a mistake, thrown away."""
    made = [cli.save("it begins", "--name", "start")]
    for reason, confidence in (("first idea", "0.95"), ("second idea", "0.5")):
        (cli.workspace / "README.md").write_text(reason)
        made.append(cli.save(reason, "--confidence", confidence))
        if reason == "first idea":
            cli.json("restore", "start", "--yes")
    cli.json("approve", "-m", "the second it is")
    (cli.workspace / "README.md").write_text("wreck")
    made.append(cli.save("wreck"))
    cli.json("reset", "--yes")
    return made


def test_the_graph_in_a_pipe_looks_like_this(cli: CommandLine, two_ideas: list[str]) -> None:
    start, first, second, wreck = two_ideas
    answer = cli("log", "--graph")
    assert (answer.status, answer.err) == (0, "")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", "TIME", answer.out)
    record = re.findall(r"[0-9a-f]{20}", text)
    assert text == (
        f"↩   {record[0]} TIME Reset to {second[:10]} (round 2 abandoned)\n"
        f"│ ● {wreck} TIME manual wreck\n"
        "✔ │ round 1 approved TIME the second it is\n"
        "├─╯\n"
        f"●   {second} (HEAD) (approved) TIME manual 50% second idea\n"
        f"↩   {record[3]} TIME Restored to start\n"
        f"│ ● {first} TIME manual 95% first idea\n"
        "├─╯\n"
        f"●   {start} [start] TIME manual it begins\n"
    )


@pytest.mark.requirement("CL-2")
@pytest.mark.parametrize("columns", [40, 60, 100])
def test_on_a_terminal_no_line_is_wider_than_it(
    cli: CommandLine, two_ideas: list[str], columns: int
) -> None:
    reason = "a reason so long that it fits on no terminal " * 5 + "日本語" * 30
    cli.save(reason, "--confidence", "0.75")
    environment = {"FORCE_COLOR": "1", "COLUMNS": str(columns)}
    for option in ("--graph", "--messages"):
        out = cli.process("log", option, environment=environment).out
        lines = [_COLOURS.sub("", line) for line in out.splitlines()]
        assert len(lines) >= 8
        assert all(cell_width(line) <= columns for line in lines)
        for colour in ("32", "33", "38;5;208"):  # from 90%, from 70%, below
            assert f"\x1b[{colour}m●" in out


def test_many_lines_of_work_leave_room_for_the_text(cli: CommandLine) -> None:
    cli.save("it begins", "--name", "start")
    for number in range(30):
        (cli.workspace / "README.md").write_text(str(number))
        cli.save(f"idea {number}")
        cli.json("restore", "start", "--yes")
    environment = {"FORCE_COLOR": "1", "COLUMNS": "70"}
    out = cli.process("log", "--graph", "-n", "0", environment=environment).out
    lines = [_COLOURS.sub("", line) for line in out.splitlines()]
    assert all(cell_width(line) <= 70 for line in lines)
    assert sum("manual" in line for line in lines) == 31


def test_messages_are_shown_between_the_checkpoints(cli: CommandLine) -> None:
    cli.save("it begins")
    with open_workspace(cli.workspace, create=False) as opened:
        session = opened.engine.vault.catalog.sessions()[0].id
        new = NewMessage(Role.USER, "please \x1b[31mgo on\nand on", 1 << 62)
        opened.engine.vault.story.add_messages(session, [new])
    lines = cli("log", "--messages").out.splitlines()
    assert lines[0].startswith("· user ")
    assert lines[0].endswith("please \\x1b[31mgo on")
    assert lines[1].startswith("● ")
    assert len(cli("log", "--graph").out.splitlines()) == 1
    assert len(cli("log", "--graph", "--messages").out.splitlines()) == 2


def test_the_json_is_the_timeline_and_can_be_read_page_by_page(
    cli: CommandLine, two_ideas: list[str]
) -> None:
    whole = cli.json("log", "--graph", "-n", "0")
    assert list(whole) == ["events", "lanes", "rounds", "head", "approved", "next", "warnings"]
    assert whole["lanes"] == 2
    assert whole["next"] is None
    assert whole["approved"] == two_ideas[2]
    page = cli.json("log", "--graph", "-n", "3")
    events = page["events"]
    while page["next"]:
        page = cli.json("log", "--graph", "-n", "3", "--before", page["next"])
        events += page["events"]
    assert events == whole["events"]
    assert cli("log", "--graph", "--before", "nowhere").status == 2

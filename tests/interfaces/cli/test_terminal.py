"""What people see: colours, tables, times, marks, questions; and what a pipe gets instead."""

from __future__ import annotations

import io
import unicodedata
from argparse import Namespace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.interfaces.cli.checkpoint_view import confidence_mark
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import GREEN, Terminal, visible, visible_bytes
from holdfast.interfaces.cli.text_layout import cell_width, padded, wrapped
from holdfast.interfaces.cli.wording import ago, count, duration, size
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

NOW = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.requirement("CL-2")
@given(st.text(alphabet=st.characters(), max_size=50))
def test_whatever_the_text_nothing_remains_that_a_terminal_obeys(text: str) -> None:
    for character in visible(text):
        assert unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in (
            *("LRE", "RLE", "LRO", "RLO", "PDF"),
            *("LRI", "RLI", "FSI", "PDI"),
        )


@pytest.mark.requirement("CL-2")
def test_text_from_outside_cannot_reach_the_terminal_as_a_command(cli: CommandLine) -> None:
    evil = "\x1b]0;title\x07\x1b[31mred \x9b2J \u202eright to left\r over"
    (cli.workspace / "a\x1b[2Jb").write_text("\x1b[2J\n")
    cli.save(evil, "--goal", evil)
    (cli.workspace / "a\x1b[2Jb").write_text("\x1b[3J\n")
    for arguments in (
        ("log",),
        ("show", "--files"),
        ("status",),
        ("diff",),
        ("diff", "--stat"),
        ("diff", "--name-only"),
        ("diff", "--side-by-side"),
        ("restore", "HEAD", "--dry-run"),
        ("restore", "HEAD", evil),
    ):
        answer = cli(*arguments)
        for character in (answer.out + answer.err).replace("\n", ""):
            assert character.isprintable(), (arguments, character)
    assert "\\x1b]0;title\\x07\\x1b[31mred \\x9b2J \\u202eright to left" in cli("log").out


@pytest.mark.requirement("CL-2")
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain text", "plain text"),
        ("ä 漢字 😀".encode(), "ä 漢字 😀"),
        (b"\x1b[31m", "\\x1b[31m"),
        (b"a\tb\nc\rd", "a\\tb\\nc\\rd"),
        (b"caf\xe9", "caf\\xe9"),
        ("\u202e\u009b".encode(), "\\u202e\\x9b"),
    ],
)
def test_control_characters_and_bytes_that_are_no_text_are_written_out(
    data: bytes, shown: str
) -> None:
    assert visible_bytes(data) == shown


@pytest.mark.requirement("CL-2")
@pytest.mark.parametrize(
    ("tty", "environment", "colour", "people"),
    [
        (True, {}, True, True),
        (False, {}, False, False),
        (True, {"NO_COLOR": "1"}, False, True),
        (True, {"NO_COLOR": ""}, True, True),
        (True, {"TERM": "dumb"}, False, True),
        (False, {"FORCE_COLOR": "1"}, True, True),
        (False, {"FORCE_COLOR": "0"}, False, False),
        (True, {"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, True),
    ],
)
def test_colours_follow_the_terminal_and_the_environment(
    tty: bool, environment: dict[str, str], colour: bool, people: bool
) -> None:
    stream = Tty() if tty else io.StringIO()
    terminal = Terminal(stream, stream, environment)
    assert (terminal.out_colour, terminal.for_people) == (colour, people)
    assert terminal.paint("x", GREEN) == ("\x1b[32mx\x1b[0m" if colour else "x")


@pytest.mark.requirement("CL-2")
@pytest.mark.parametrize(
    ("confidence", "code"),
    [(1.0, "32"), (0.9, "32"), (0.89, "33"), (0.7, "33"), (0.69, "38;5;208"), (0.0, "38;5;208")],
)
def test_the_mark_of_confidence_is_green_yellow_or_orange(confidence: float, code: str) -> None:
    terminal = Terminal(Tty(), Tty(), {})
    assert confidence_mark(terminal, confidence) == f"\x1b[{code}m●\x1b[0m {confidence * 100:.0f}%"


@pytest.mark.requirement("CL-2")
@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (-3, "just now"),
        (12, "12 seconds ago"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (7200, "2 hours ago"),
        (86400, "1 day ago"),
        (13 * 86400, "13 days ago"),
    ],
)
def test_times_are_shown_relative_to_now(seconds: int, words: str) -> None:
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words


@pytest.mark.parametrize("days", [14, 400, -1])
def test_a_time_long_ago_or_ahead_is_a_date(days: int) -> None:
    moment = NOW - timedelta(days=days)
    assert ago(moment, NOW) == moment.astimezone().strftime("%Y-%m-%d %H:%M")


@pytest.mark.requirement("CL-2")
@given(st.text(max_size=80), st.integers(2, 20))
def test_wrapped_text_keeps_every_word_and_fits(text: str, width: int) -> None:
    text = visible(text)
    lines = wrapped(text, width)
    assert all(cell_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_wide_characters_count_twice_and_combining_marks_not_at_all() -> None:
    assert [cell_width(text) for text in ("abc", "漢字", "e\u0301", "")] == [3, 4, 1, 0]
    assert (padded("漢", 4), padded("x", 3, right=True)) == ("漢  ", "  x")
    assert wrapped("one two 漢字漢字 x", 5) == ["one", "two", "漢字", "漢字", "x"]


def test_numbers_are_shown_as_people_say_them() -> None:
    sizes = [0, 999, 1000, 1499, 9_960, 999_499, 999_500, 5_000_000_000, 10**18]
    assert [size(number) for number in sizes] == [
        *("0 B", "999 B", "1.0 kB", "1.5 kB", "10 kB", "999 kB", "1.0 MB", "5.0 GB", "1,000 PB")
    ]
    assert [count(number, "file") for number in (0, 1, 2000)] == [
        "0 files",
        "1 file",
        "2,000 files",
    ]
    assert [duration(ms) for ms in (0.4, 12.3, 999, 1500)] == ["0 ms", "12 ms", "999 ms", "1.5 s"]


@pytest.mark.requirement("CL-2")
def test_on_a_terminal_the_log_is_a_table_with_colours_and_relative_times(cli: CommandLine) -> None:
    cli.save("the first one", "--name", "first", "--confidence", "0.95")
    cli.save("the second one", "--confidence", "0.3")
    with Screen(cli.workspace, "log") as screen:
        shown = screen.finish()
    assert screen.status == 0
    lines = screen.plain(shown)
    columns, _, total = lines[0].partition(" (")
    assert columns.split() == ["id", "when", "kind", "sure", "files", "changes", "reason"]
    assert total.strip() == "2 in total)"
    assert lines[1].startswith("▶  ")
    assert "● 30%" in lines[1]
    assert lines[2].split()[-4:] == ["first", "the", "first", "one"]
    assert "ago" in lines[2] or "just now" in lines[2]
    assert "\x1b[32m●" in shown
    assert "\x1b[38;5;208m●" in shown


def test_the_mark_in_the_log_is_where_the_work_stands(cli: CommandLine) -> None:
    cli.save("first", "--name", "first")
    cli.save("second")
    cli.json("restore", "first")
    with Screen(cli.workspace, "log") as screen:
        lines = screen.plain(screen.finish())
    assert [line.split()[-1] for line in lines if line.startswith("▶")] == ["first"]
    with Screen(cli.workspace, "log", "--records") as screen:
        lines = screen.plain(screen.finish())
    assert [line.split()[-1] for line in lines if line.startswith("▶")] == ["first"]


@pytest.mark.requirement("CL-2")
@pytest.mark.parametrize("columns", [40, 50, 65, 66, 80])
@pytest.mark.parametrize(
    "arguments", [("log",), ("diff", "-y"), ("diff",), ("undo", "--help")], ids=" ".join
)
def test_on_a_narrow_terminal_lines_fit_and_words_stay_whole(
    cli: CommandLine, columns: int, arguments: tuple[str, ...]
) -> None:
    cli.save("an extraordinary refactoring of everything", "--name", "before-that")
    (cli.workspace / "README.md").write_text("extraordinary words\n")
    with Screen(cli.workspace, *arguments, columns=columns) as screen:
        lines = screen.plain(screen.finish())
    assert screen.status == 0
    assert all(cell_width(line) <= columns for line in lines), lines
    whole = {"log": "extraordinary", "diff": "extraordinary", "undo": "workspace"}[arguments[0]]
    assert any(whole in line for line in lines)


@pytest.mark.requirement("CL-2")
def test_without_colour_a_terminal_still_gets_the_table(cli: CommandLine) -> None:
    cli.save("the first one")
    with Screen(cli.workspace, "log", environment={"NO_COLOR": "1"}) as screen:
        shown = screen.finish()
    assert "\x1b" not in shown
    assert "reason" in shown


@pytest.mark.requirement("CL-2")
def test_on_a_terminal_old_and_new_are_side_by_side_in_the_colours_of_the_language(
    cli: CommandLine,
) -> None:
    cli.save()
    (cli.workspace / "src" / "app.py").write_text("def main():\n    return 'two'\n")
    with Screen(cli.workspace, "diff", "--side-by-side", columns=80) as screen:
        shown = screen.finish()
    rows = screen.plain(shown)
    assert rows[3].split() == ["2-", "return", "1", "2+", "return", "'two'"]
    assert all(len(row) <= 80 for row in rows)
    keyword = shown[shown.index("return") - 16 : shown.index("return")]
    assert "\x1b[" in keyword
    assert "\x1b[32m 2+" in shown


@pytest.mark.requirement("RB-8")
def test_a_yes_at_the_terminal_restores(cli: CommandLine) -> None:
    cli.save("good", "--name", "good")
    (cli.workspace / "README.md").unlink()
    (cli.workspace / "run.sh").unlink()
    with Screen(cli.workspace, "restore", "good") as screen:
        question = screen.read_until("[y/N] ")
        assert "2 files created" in question
        assert not (cli.workspace / "README.md").exists()
        screen.type("y\n")
        screen.finish()
    assert screen.status == 0
    assert (cli.workspace / "README.md").read_text() == "hello\n"


@pytest.mark.requirement("RB-8", "CL-2")
def test_what_was_shown_before_the_question_is_not_shown_again(cli: CommandLine) -> None:
    for number in range(30):
        (cli.workspace / f"{number:02}").touch()
    cli.save("good", "--name", "good")
    for number in range(30):
        (cli.workspace / f"{number:02}").unlink()
    with Screen(cli.workspace, "restore", "good") as screen:
        question = screen.read_until("Restore? [y/N] ")
        assert question.count("create") == 21  # twenty of them, and the sum
        assert "… and 10 more" in question
        assert "30 paths changed since the last checkpoint" in "".join(screen.plain(question))
        assert "warning" not in question
        screen.type("y\n")
        rest = "\n".join(screen.plain(screen.finish()))
    assert rest.count("create") == 1
    assert "warning" not in rest
    with Screen(cli.workspace, "undo") as screen:
        assert "Undoing the restore to good (just now) would change this:" in screen.read_until(
            "Undo? [y/N] "
        )


@pytest.mark.requirement("RB-8")
@pytest.mark.parametrize("answer", ["\n", "n\n", "nonsense\n", "\x04"])
def test_anything_but_a_yes_changes_nothing(cli: CommandLine, answer: str) -> None:
    cli.save("good", "--name", "good")
    (cli.workspace / "README.md").unlink()
    (cli.workspace / "run.sh").unlink()
    history = cli.json("log", "--records")
    with Screen(cli.workspace, "restore", "good") as screen:
        screen.read_until("[y/N] ")
        screen.type(answer)
        rest = screen.finish()
    assert screen.status == 5
    assert "Cancelled; nothing was changed." in screen.plain(rest)
    assert "error" not in screen.plain(rest)
    assert not (cli.workspace / "README.md").exists()
    assert cli.json("log", "--records") == history


def test_the_time_in_which_a_person_decides_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([100.0, 101.0, 161.0, 163.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    options = Namespace(words=[], json=False)
    invocation = Invocation("restore", options, [], Terminal(Tty(), Tty(), {}))
    with invocation.pause_clock():
        pass
    assert invocation.elapsed_ms == 3000


def test_without_a_difference_a_terminal_says_so_and_a_pipe_nothing(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")  # its absence would be a difference
    cli.save()
    with Screen(cli.workspace, "diff") as screen:
        assert screen.plain(screen.finish()) == ["no differences"]
    assert (cli("diff").out, cli("diff").err) == ("", "")


@pytest.mark.requirement("RB-8", "CL-3")
def test_ctrl_c_at_the_question_ends_with_130(cli: CommandLine) -> None:
    cli.save()
    with Screen(cli.workspace, "delete", "HEAD") as screen:
        assert "a state worth keeping" in screen.read_until("[y/N] ")
        screen.type("\x03")
        rest = screen.finish()
    assert screen.status == 130
    assert "cancelled; nothing was changed" in rest
    assert "hint" not in rest
    assert "Traceback" not in rest
    assert len(cli.json("log")) == 1


@pytest.mark.requirement("RB-8")
def test_with_json_there_is_no_question_even_at_a_terminal(cli: CommandLine) -> None:
    cli.save()
    with Screen(cli.workspace, "delete", "HEAD", "--json") as screen:
        shown = screen.finish()
    assert screen.status == 5
    assert "needs_confirmation" in shown

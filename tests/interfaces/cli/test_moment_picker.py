"""`holdfast restore` without a reference: the moments to pick from."""

from __future__ import annotations

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.interfaces.cli.replay_viewer import Viewer

pytestmark = pytest.mark.requirement("RB-13")


@pytest.fixture
def worked(cli: CommandLine) -> CommandLine:
    """Three states of two sessions, and a change since."""
    app = cli.workspace / "src" / "app.py"
    cli.save("the first one", "--name", "first", "--session", "mine")
    app.write_text("two\n")
    cli.save("Before Bash: rm -rf src", "--session", "agent")
    app.write_text("three\n")
    (cli.workspace / "more.py").write_text("more\n")
    cli.save("the third one", "--session", "mine")
    return cli


def _screen(cli: CommandLine, columns: int = 100) -> Screen:
    return Screen(cli.workspace, "restore", columns=columns, lines=12)


def test_the_moments_of_all_sessions_are_listed_with_what_each_would_change(
    worked: CommandLine,
) -> None:
    with _screen(worked) as screen:
        lines = Viewer(screen).see("Which checkpoint do you want to restore?", "2 files  mine")
        assert lines[1].startswith("  just now")
        assert "as now" in lines[1]
        assert lines[1].endswith("mine   the third one")
        assert lines[2].startswith("▶ just now")
        assert "2 files  agent  Before Bash: rm -rf src" in lines[2]
        assert "2 files  mine   [first] the first one" in lines[3]
        screen.type("\x1b")
        assert "Nothing was changed." in screen.finish()
    assert screen.status == 0
    assert [one["kind"] for one in worked.json("log", "--records")] == ["manual"] * 3


def test_enter_restores_exactly_the_chosen_state_after_a_question(worked: CommandLine) -> None:
    with _screen(worked) as screen:
        viewer = Viewer(screen)
        viewer.see("Before Bash", "2 of 3")
        screen.type("\r")
        assert "more.py" in screen.read_until("Restore? [y/N]")
        screen.type("y\n")
        screen.finish()
    assert screen.status == 0
    assert (worked.workspace / "src" / "app.py").read_text() == "two\n"
    assert not (worked.workspace / "more.py").exists()


def test_leaving_changes_nothing(worked: CommandLine) -> None:
    with _screen(worked) as screen:
        Viewer(screen).see("Which checkpoint do you want to restore?")
        screen.type("\x1b")
        assert "Nothing was changed." in screen.finish()
        assert screen.status == 0
        assert screen.modes() == screen.modes_before
    assert (worked.workspace / "src" / "app.py").read_text() == "three\n"
    assert len(worked.json("log", "--records")) == 3


@pytest.mark.requirement("CL-3")
def test_ctrl_c_in_the_list_says_that_nothing_was_changed(worked: CommandLine) -> None:
    with _screen(worked) as screen:
        Viewer(screen).see("Which checkpoint do you want to restore?")
        screen.type("\x03")
        rest = screen.finish()
    assert screen.status == 130
    assert "cancelled; nothing was changed" in rest
    assert "hint" not in rest


def test_typing_searches_and_erasing_searches_less(worked: CommandLine) -> None:
    with _screen(worked) as screen:
        viewer = Viewer(screen)
        viewer.see("3", "2 of 3")
        lines = viewer.press("first", "search: first")
        assert "1 of 1" in lines[-2]
        assert "[first] the first one" in lines[1]
        viewer.press("zq", "search: firstzq", "nothing matches")
        viewer.press("\x7f\x7f", "1 of 1")
        lines = viewer.press("\x15agent", "search: agent")
        assert "Before Bash" in lines[1]
        screen.type("\x1b")
        screen.finish()
    assert screen.status == 0


def test_space_shows_the_difference_and_goes_back(worked: CommandLine) -> None:
    with _screen(worked) as screen:
        viewer = Viewer(screen)
        viewer.see("2 of 3")
        viewer.press(" ", "adds the lines marked -", "-two", "+three", "space back to the list")
        viewer.press(" ", "type to search", "2 of 3")
        viewer.press("\x1b[A", "1 of 3")
        viewer.press(" ", "the workspace matches this checkpoint")
        screen.type("\x1b")
        screen.finish()
    assert screen.status == 0


def test_every_letter_searches_in_whatever_script(cli: CommandLine) -> None:
    cli.save("query of the tokens")
    cli.save("文字: sécurité: done")
    with _screen(cli) as screen:
        viewer = Viewer(screen)
        viewer.see("2")
        assert "query of the tokens" in viewer.press("q", "search: q", "1 of 1")[1]
        assert "sécurité" in viewer.press("\x15té:", "search: té:", "1 of 1")[1]
        viewer.press("\x15文", "search: 文", "1 of 1")
        screen.type("\x1b")
        screen.finish()
    assert screen.status == 0


SLOWED = """
import sys, time
from holdfast.api.restores import PresentState
from holdfast.interfaces.cli.main import main
affected = PresentState.affected_files
def slowly_affected(*arguments):
    time.sleep(0.7)
    return affected(*arguments)
PresentState.affected_files = slowly_affected
sys.exit(main(["restore"]))
"""


def test_no_key_waits_until_all_rows_are_planned(cli: CommandLine) -> None:
    for number in range(9):
        (cli.workspace / "README.md").write_text(f"{number}\n")
        cli.save(f"state {number}")
    with Screen(cli.workspace, program=SLOWED, columns=80, lines=12) as screen:
        viewer = Viewer(screen)
        lines = viewer.see("2 of 9")
        assert "as now" in lines[1]
        assert "1 file" in lines[2]
        assert all("…" in line for line in lines[3:10])
        lines = viewer.press("\x1b[F", "9 of 9")
        assert any("…" in line for line in lines[3:10])
        lines = viewer.press("\x1b[H", "1 of 9")
        assert any("…" in line for line in lines[3:10])
        screen.type("\x1b")
        screen.finish()
    assert screen.status == 0


def test_enter_takes_only_a_moment_that_was_seen(cli: CommandLine) -> None:
    for number in range(4):
        (cli.workspace / "README.md").write_text(f"{number}\n")
        cli.save(f"state {number}")
    with Screen(cli.workspace, program=SLOWED, columns=80, lines=12) as screen:
        viewer = Viewer(screen)
        viewer.see("2 of 4")
        lines = viewer.press("\x1b[B\r", "3 of 4")
        assert lines[3].startswith("▶")
        screen.type("\r")
        shown = screen.finish()
    assert screen.status == 0
    assert "Chosen: " in shown
    assert "state 1" in shown[shown.index("Chosen: ") :]
    assert (cli.workspace / "README.md").read_text() == "1\n"


def test_older_moments_than_the_list_has_are_shown(worked: CommandLine) -> None:
    program = """
import sys
from holdfast.interfaces.cli.commands import restore
from holdfast.interfaces.cli.main import main
restore._MOST_MOMENTS = 2
sys.exit(main(["restore"]))
"""
    with Screen(worked.workspace, program=program, columns=80, lines=12) as screen:
        viewer = Viewer(screen)
        viewer.see("2 of 2; 1 older moment not listed: holdfast log")
        viewer.press("zzz", "nothing matches; 1 older moment not listed: holdfast search")
        screen.type("\x1b")
        screen.finish()


def test_ctrl_backslash_does_not_leave_the_terminal_taken_over(worked: CommandLine) -> None:
    with _screen(worked) as screen:
        viewer = Viewer(screen)
        viewer.see("2 of 3")
        screen.type("\x1c")
        viewer.press("\x1b[A", "1 of 3")
        screen.type("\x1b")
        screen.finish()
    assert screen.status == 0


def test_40_columns_show_the_reason_and_how_to_leave(worked: CommandLine) -> None:
    with _screen(worked, 40) as screen:
        lines = Viewer(screen).see("2 of 3")
        assert lines[1] == "  just now      as now  the third one"
        assert lines[-1] == "enter restore   esc leave   space diff"
        screen.type("\x1b")
        screen.finish()


@pytest.mark.parametrize("columns", [20, 60, 80])
def test_no_line_is_wider_than_the_screen(worked: CommandLine, columns: int) -> None:
    with _screen(worked, columns) as screen:
        lines = Viewer(screen).see("2 of 3")
        assert max(len(line) for line in lines) <= columns
        screen.type("\x1b")
        screen.finish()


def test_at_80_columns_most_of_the_line_is_the_reason(cli: CommandLine) -> None:
    reason = "Before Bash: find . -name '*.py' -delete"
    cli.save(reason, "--session", "a-session-with-a-long-name")
    with _screen(cli, 80) as screen:
        assert reason in Viewer(screen).see("Which checkpoint do you want to restore?")[1]
        screen.type("\x1b")
        screen.finish()


@pytest.mark.requirement("CP-12")
def test_files_that_a_restore_keeps_are_neither_counted_nor_shown(cli: CommandLine) -> None:
    cli.save("the first one")
    (cli.workspace / ".gitignore").write_text("")
    cli.save("nothing is ignored")
    with _screen(cli) as screen:
        viewer = Viewer(screen)
        viewer.see("2 of 2", " 1 file ")
        page = viewer.press(" ", "marked -", "-.env")
        assert not [line for line in page if "KEY" in line]
        screen.type("\x1b")
        screen.finish()


@pytest.mark.requirement("CP-12")
def test_the_content_of_ignored_files_is_not_shown(
    cli: CommandLine,
) -> None:
    cli.save("the first one")
    assert cli("config", "set", "include", ".env").status == 0
    (cli.workspace / "README.md").write_text("changed\n")
    cli.save("with the secret")
    (cli.workspace / ".env").write_text("KEY=2\n")
    with _screen(cli) as screen:
        viewer = Viewer(screen)
        lines = viewer.see("Which checkpoint do you want to restore?")
        assert "1 file " in lines[1]
        viewer.press("\x1b[A", "1 of 2")
        page = viewer.press(
            " ", "not shown: ignored by your rules; to restore it: holdfast restore"
        )
        assert not [line for line in page if "KEY=" in line]
        screen.type("\x1b")
        screen.finish()


@pytest.mark.requirement("CL-3")
def test_without_a_terminal_a_reference_is_needed(worked: CommandLine) -> None:
    for how in ((), ("--yes",), ("--dry-run",)):
        answer = worked("restore", *how, "--json")
        assert answer.status == 2
        assert answer.error["message"] == "missing REF"
        assert "holdfast restore REF" in answer.error["hint"]
    assert (worked.workspace / "src" / "app.py").read_text() == "three\n"

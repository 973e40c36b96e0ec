"""Sentences are broken between words at the width of the terminal."""

from __future__ import annotations

import pytest

from holdfast.interfaces.cli.text_layout import wrap_sentence
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

pytestmark = pytest.mark.requirement("CL-2")


def test_a_long_line_is_broken_between_words_and_goes_on_indented() -> None:
    text = "  the checkpoint was made on main and git is on another branch"
    assert wrap_sentence(text, 40) == (
        "  the checkpoint was made on main and\n    git is on another branch"
    )
    assert wrap_sentence("short", 40) == "short"
    assert wrap_sentence("label      a value that is long enough", 30, hang=11) == (
        "label      a value that is\n           long enough"
    )


def test_colours_take_no_room_and_a_long_path_stays_whole() -> None:
    painted = "\x1b[2mone two\x1b[0m three"
    assert wrap_sentence(painted, 13) == painted
    path = "/" + "x" * 60
    assert wrap_sentence(f"see {path} for more", 40) == f"see\n  {path}\n  for more"


def test_a_command_can_be_copied_from_one_row() -> None:
    line = "saved as 93196abe30; to restore them: holdfast restore 93196abe30 --refs all"
    last = wrap_sentence(line, 60).splitlines()[-1].strip()
    assert last == "holdfast restore 93196abe30 --refs all"


def test_no_word_of_a_restore_is_broken_at_80_columns(cli: CommandLine) -> None:
    cli.json("checkpoint", "a reason that takes rather many words to say what it is about")
    for number in range(6):
        (cli.workspace / f"a-file-with-a-name-{number}.txt").write_text("new\n")
    for command in (["restore", "HEAD"], ["undo"], ["show", "HEAD"], ["search", "reason"]):
        with Screen(cli.workspace, *command, columns=80) as screen:
            if command[0] in ("restore", "undo"):
                asked = screen.read_until("[y/N]")
                screen.type("y\n")
                shown = asked + screen.finish()
            else:
                shown = screen.finish()
        for line in Screen.plain(shown):
            row = line.rpartition("\r")[2]  # a progress bar was there before
            assert len(row) <= 80, (command, row)


@pytest.mark.requirement("SE-13")
def test_a_narrow_log_names_sessions_above_their_rows(cli: CommandLine) -> None:
    reason = "a reason that takes rather many words to say what it is about"
    for session in ("one", "two"):
        cli.json("checkpoint", reason, "--session", session)
        cli.json("sessions", "rename", session, f"the work on part {session} of the whole plan")
    with Screen(cli.workspace, "log", columns=80) as screen:
        rows = [row.rstrip() for row in Screen.plain(screen.finish()) if row.strip()]
    assert rows[1] == "   the work on part two of the whole plan"
    assert [row for row in rows if row.strip() == "the work on part one of the whole plan"]
    assert all(len(row) <= 80 for row in rows)
    assert len(rows) <= 7, rows
    with Screen(cli.workspace, "search", "reason", columns=120) as screen:
        assert "the work on part two of…" in screen.finish()
    assert '"the work on part two of the whole plan"' in cli("show", "HEAD").out


def test_no_word_of_the_settings_is_broken_at_80_columns(cli: CommandLine) -> None:
    cli.save()
    for command in (["config", "list"], ["stats"]):
        with Screen(cli.workspace, *command, columns=80) as screen:
            shown = screen.finish()
        for line in Screen.plain(shown):
            row = line.rpartition("\r")[2]
            longest = max(map(len, row.split()), default=0)
            assert len(row) <= 80 or longest > 60, (command, row)  # a path stays whole


def test_the_rows_of_a_diff_in_numbers_fit_80_columns(cli: CommandLine) -> None:
    cli.save()
    long = cli.workspace / "a-directory-with-a-rather-long-name" / "and-another-one-below-it"
    long.mkdir(parents=True)
    (long / "the-file-that-was-changed.py").write_text("new\n" * 200)
    with Screen(cli.workspace, "diff", "--stat", columns=80) as screen:
        rows = [line.rpartition("\r")[2] for line in Screen.plain(screen.finish())]
    assert max(map(len, rows)) <= 80, rows
    assert any("…" in row and "the-file-that-was-changed.py |" in row for row in rows), rows
    assert f"{long.relative_to(cli.workspace)}/the-file" in cli("diff", "--stat").out

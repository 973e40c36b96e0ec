"""The bar for work that takes longer than half a second."""

from __future__ import annotations

import pytest

from holdfast.interfaces.cli.progress_bar import ProgressBar
from holdfast.interfaces.cli.terminal import Terminal
from holdfast.interfaces.cli.text_layout import cell_width
from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen
from tests.interfaces.cli.test_terminal import Tty


@pytest.mark.requirement("CL-2")
def test_the_progress_bar_fills_or_while_nothing_is_known_moves() -> None:
    bar = ProgressBar(Terminal(Tty(), Tty(), {}), "saving")
    moving = [bar.text(tenth / 10) for tenth in range(40)]
    assert all(text.count("━") == 6 for text in moving)
    assert len({text.rsplit(" ", 2)[0] for text in moving}) == 19
    bar.advance("checking", 25, 100)
    assert bar.text(1.0) == "checking ━━━━━━────────────────── 25 of 100, 1.0 s"
    bar.advance("checking", 101, 100)
    assert bar.text(1.0).count("━") == 24


@pytest.mark.requirement("CL-2")
def test_work_over_half_a_second_shows_a_bar_and_wipes_it(cli: CommandLine) -> None:
    cli.save()
    with Screen(cli.workspace, program=_HOLDING) as holder:
        holder.read_until("held")
        with Screen(cli.workspace, "checkpoint", "x") as screen:
            screen.read_until("saving ")
            assert "━━━━━━" in screen.read_until(" s")
            holder.type("\n")
            rest = screen.finish()
    assert screen.status == 0
    assert "\r\x1b[K\x1b[32m✓\x1b[0m Saved" in rest


@pytest.mark.requirement("CL-2")
def test_the_bar_of_a_long_save_shows_its_share(cli: CommandLine) -> None:
    for number in range(100):
        (cli.workspace / f"{number:03}").write_text(str(number))
    with Screen(cli.workspace, program=_STOPPING) as screen:
        shown = screen.read_until("50 of 105, ")
        assert "reading files ━━━━━━━━━━━─────────────" in shown.rpartition("\r")[2]
        screen.type("\n")
        rest = screen.finish()
    assert screen.status == 0
    assert "✓" in rest
    assert cli.json("log")[0]["files"] == 106


@pytest.mark.requirement("CL-2")
@pytest.mark.parametrize("columns", ["40", "60", "100"])
def test_the_bar_never_needs_a_second_line(columns: str) -> None:
    bar = ProgressBar(Terminal(Tty(), Tty(), {"COLUMNS": columns}), "saving")
    bar.advance("replacing files", 1_234_567, 9_876_543)
    bar.transferred(12_345_678_901)
    assert "1,234,567 of 9,876,543" in bar.text(1234.5)
    assert cell_width(bar.text(1234.5)) < int(columns)
    bar.advance("verifying files", 1, None)
    assert "12 GB" not in bar.text(1.0), "each phase counts its own bytes"


# The first save of the workspace, with a bar from the start, that waits after some of the files.
_STOPPING = """
import sys
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.interfaces.cli import progress_bar
from holdfast.interfaces.cli.main import main
progress_bar._FIRST_AFTER_S = 0
whole, seen = FileCapture.capture, []
def capture(self, *arguments):
    seen.append(arguments)
    if len(seen) == 75:
        input()
    return whole(self, *arguments)
FileCapture.capture = capture
sys.exit(main(["checkpoint", "x"]))
"""


_HOLDING = """
from pathlib import Path
from holdfast.bootstrap.workspace import open_workspace
with open_workspace(Path.cwd(), create=False, purpose="a test") as opened:
    with opened.store.hold():
        print("held", flush=True)
        input()
"""

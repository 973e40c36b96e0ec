"""Long answers at a terminal go through a pager, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine
from tests.interfaces.cli.pseudo_terminal import Screen

pytestmark = pytest.mark.requirement("CL-7")


@pytest.fixture
def pager(tmp_path: Path) -> Path:
    """One that says so, and passes everything on."""
    script = tmp_path / "pager"
    script.write_text('#!/bin/sh\necho "paged with LESS=$LESS $*"\nexec cat\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("arguments", [("log",), ("diff", "first"), ("show",)], ids=" ".join)
def test_a_terminal_gets_a_pager(cli: CommandLine, pager: Path, arguments: tuple[str, ...]) -> None:
    cli.save("one", "--name", "first")
    (cli.workspace / "README.md").write_text("changed\n")
    cli.save("two")
    environment = {"HOLDFAST_PAGER": f"{pager} --own", "LESS": ""}
    with Screen(cli.workspace, *arguments, environment=environment) as screen:
        shown = screen.finish()
    assert screen.status == 0
    assert shown.startswith("paged with LESS= --own")
    assert "\x1b[" in shown
    for piped in (arguments, ("--json", *arguments)):
        assert "paged" not in cli.process(*piped, environment=environment).out
    with Screen(cli.workspace, "--json", *arguments, environment=environment) as screen:
        assert "paged" not in screen.finish()


@pytest.mark.parametrize("chosen", ["", "cat", "no-such-pager", "'"])
def test_without_a_usable_pager_the_answer_is_just_shown(cli: CommandLine, chosen: str) -> None:
    cli.save("one")
    with Screen(cli.workspace, "log", environment={"HOLDFAST_PAGER": chosen}) as screen:
        shown = screen.finish()
    assert (screen.status, "one" in shown) == (0, True)


def test_the_usual_variable_counts_where_our_own_is_not_set(
    cli: CommandLine, pager: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save("one")
    monkeypatch.delenv("HOLDFAST_PAGER")
    with Screen(cli.workspace, "log", environment={"PAGER": str(pager)}) as screen:
        assert screen.finish().startswith("paged with LESS=FRX")


def test_leaving_the_pager_early_is_no_error(cli: CommandLine) -> None:
    (cli.workspace / "large").write_text("line\n" * 200_000)
    cli.save("one")
    environment = {"HOLDFAST_PAGER": "head -n 2"}
    with Screen(cli.workspace, "show", "HEAD:large", environment=environment) as screen:
        shown = screen.finish()
    assert screen.status == 0
    assert shown.count("line") == 2


# Blocked from the start, so that Ctrl-C is not lost between the word and the wait.
PATIENT_PAGER = f"""#!{sys.executable}
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
sys.stdin.readline()
print("waiting", flush=True)
signal.sigwait([signal.SIGINT])
print("heard", flush=True)
open("/dev/tty").readline()
"""


def test_ctrl_c_in_the_pager_is_no_error(cli: CommandLine, tmp_path: Path) -> None:
    (cli.workspace / "large").write_text("line\n" * 200_000)
    cli.save("one")
    patient = tmp_path / "patient"
    patient.write_text(PATIENT_PAGER)
    patient.chmod(0o755)
    environment = {"HOLDFAST_PAGER": str(patient)}
    with Screen(cli.workspace, "show", "HEAD:large", environment=environment) as screen:
        screen.read_until("waiting")
        screen.type("\x03")
        screen.read_until("heard")
        screen.type("q\n")
        shown = screen.finish()
    assert "error" not in shown
    assert screen.status == 0

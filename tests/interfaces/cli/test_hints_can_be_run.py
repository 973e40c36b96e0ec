"""Commands that an answer or a hint suggests do what they say when they are run as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("CL-3", "SE-6")

_SUGGESTED = re.compile(r"holdfast [a-z]+(?:(?!\)$|; |, or | \(|\. |\.$| or leave).)*")
_TEMPLATE = re.compile(r"\b(REF|PATH|FILE|NAME|DIR|COMMAND)\b|…|…|\.\.\.")
ODD = "an odd name's \N{SNOWMAN}.py"

KILLED = """
import os, signal, sys
from pathlib import Path
from holdfast import SessionCheckpointer
session = SessionCheckpointer(Path(sys.argv[1]), sys.argv[2])
with session.editing(sys.argv[3:], "a big change"):
    for path in sys.argv[3:]:
        Path(sys.argv[1], path).write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def suggested(text: str) -> list[str]:
    """The commands in an output, without those that only show a form."""
    found = [m.strip() for line in text.splitlines() for m in _SUGGESTED.findall(line)]
    return [command for command in found if not _TEMPLATE.search(command)]


class Shell:
    """A shell whose `holdfast` is the one under test."""

    def __init__(self, workspace: Path, place: Path) -> None:
        place.mkdir()
        program = place / "holdfast"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n')
        program.chmod(0o755)
        self._workspace = workspace
        self._path = f"{place}:{os.environ['PATH']}"

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self._workspace,
            env={**os.environ, "PATH": self._path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def require(self, lines: Sequence[str]) -> None:
        for line in lines:
            done = self.run(line)
            assert done.returncode == 0, (line, done.stdout, done.stderr)


@pytest.fixture
def shell(cli: CommandLine, tmp_path: Path) -> Shell:
    return Shell(cli.workspace, tmp_path / "bin")


def test_an_edit_that_was_cut_off_is_put_back_by_the_line_that_status_prints(
    cli: CommandLine, shell: Shell
) -> None:
    names = ["a.py", ODD, "b\\n'\x07.py"]
    for name in names:
        (cli.workspace / name).write_text("whole")
    cli.save()
    mine = cli.json("status")["session_id"]
    for session in (mine, "an other one"):
        cli.save("here too", "--session", session)
        command = [sys.executable, "-c", KILLED, str(cli.workspace), session, *names]
        subprocess.run(command, check=False)
        assert (cli.workspace / ODD).read_text() == "half"
        told = shell.run(f"holdfast status --session '{session}'").stdout
        lines = [line for line in suggested(told) if "restore" in line or "--keep" in line]
        assert len(lines) == 2
        shell.require(lines[:1])
        assert [(cli.workspace / name).read_text() for name in names] == ["whole"] * 3
        shell.require(lines[1:])
        assert cli.json("status", "--session", session)["cut_off"] == []


def test_an_edit_that_was_cut_off_in_another_session_is_named_without_asking_for_that(
    cli: CommandLine, shell: Shell
) -> None:
    (cli.workspace / "a.py").write_text("whole")
    cli.save("theirs", "--session", "an other one")
    command = [sys.executable, "-c", KILLED, str(cli.workspace), "an other one", "a.py"]
    for has_session in (False, True):
        subprocess.run(command, check=False)
        told = shell.run("holdfast status").stdout
        # Without a session of the command line, it is the session that status is about.
        assert ("a big change (session an other one)" in told) == has_session
        assert "a big change" in told
        (found,) = cli.json("status")["cut_off"]
        assert (found["session_id"], found["paths"]) == ("an other one", ["a.py"])
        lines = [line for line in suggested(told) if "restore" in line or "--keep" in line]
        shell.require(lines[:1])
        assert (cli.workspace / "a.py").read_text() == "whole"
        shell.require(lines[1:])
        assert cli.json("status")["cut_off"] == []
        if not has_session:
            cli.save("mine")
            assert cli.json("status")["session_id"] != "an other one"


def test_the_way_back_that_is_printed_goes_back(cli: CommandLine, shell: Shell) -> None:
    for name in ("a.py", "b.py"):
        (cli.workspace / name).write_text("whole")
    cli.save()
    wreck = "holdfast attempt try -- sh -c 'echo x > a.py; echo x > b.py; exit 3'"
    failed = shell.run(wreck)
    assert failed.returncode == 3
    shell.require(suggested(failed.stderr))
    assert (cli.workspace / "a.py").read_text() == "x\n"
    approved = shell.run("holdfast approve -m good")
    for name in ("a.py", "b.py"):
        (cli.workspace / name).write_text("after it")
    [reset] = suggested(approved.stdout)
    shell.require([reset])
    assert (cli.workspace / "a.py").read_text() == "x\n"


def test_hints_of_errors_name_paths_as_a_shell_takes_them(cli: CommandLine, shell: Shell) -> None:
    (cli.workspace / ODD).write_bytes(b"\0binary\xff")
    (cli.workspace / "text.py").write_text("one\n")
    cli.save("why it is there")
    (cli.workspace / ODD).write_bytes(b"\0other\xff")
    (cli.workspace / "text.py").write_text("two\n")
    for arguments in (
        ("undo",),
        ("why", ODD),
        ("restore", "HEAD", ODD, "--hunk", "1"),
        ("restore", "HEAD", "text.py", "--hunk", "9"),
        ("restore", ODD),
        ("show", "text.py"),
        ("why", "text.py:9"),
        ("restore", "nothing-like-it"),
        ("search", "--session", "nobody"),
        ("annotate", "HEAD", "x", "--edit", "9"),
        ("approve", "surplus"),
        ("log", "--before", "x"),
        ("attempt", "--", "true"),
        ("checkpoint", "two words", "it's"),
    ):
        answer = cli(*arguments)
        assert answer.status != 0
        shell.require(
            [line for line in suggested(answer.err) if not {"attempt", "TIME"} & {*line.split()}]
        )
    assert suggested(cli("why", ODD).err)
    found = shell.run(suggested(cli("why", ODD).err)[0])
    assert "why it is there" in found.stdout


def test_what_answers_suggest_can_be_run(cli: CommandLine, shell: Shell, tmp_path: Path) -> None:
    (cli.workspace / ".gitignore").write_text("*.log\n")
    (cli.workspace / "x.log").write_text("left out")
    first = shell.run("holdfast init")
    shell.require(suggested(first.stdout))
    for line in (
        "holdfast status",
        "holdfast checkpoint more",
        "holdfast log --rounds",
        f"holdfast export '{tmp_path / 'b'}'",
        f"holdfast import '{tmp_path / 'b'}' --as-session 'an other one'",
        "holdfast status --session 'an other one'",
    ):
        done = shell.run(line)
        assert done.returncode == 0, done.stderr
        shell.require(suggested(done.stdout))

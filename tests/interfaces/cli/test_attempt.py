"""`holdfast attempt`: the exit status of a command decides whether its work is kept."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine, command

pytestmark = pytest.mark.requirement("CP-9", "CL-1")

WRECK = "import pathlib, sys; pathlib.Path('made.txt').write_text('x'); sys.exit(int(sys.argv[1]))"


def attempt(cli: CommandLine, status: int, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*options, "attempt", "try it", "--", sys.executable, "-c", WRECK, str(status)),
        cwd=cli.workspace,
        capture_output=True,
        text=True,
        check=False,
    )


def test_work_of_a_command_that_succeeds_is_kept(cli: CommandLine) -> None:
    done = attempt(cli, 0)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "kept" in done.stderr
    assert (cli.workspace / "made.txt").exists()


def test_work_of_a_command_that_fails_is_rolled_back_and_its_status_passed_on(
    cli: CommandLine,
) -> None:
    done = attempt(cli, 7)
    assert done.returncode == 7
    assert "rolled back: the command exited with 7; to get its changes back: " in done.stderr
    assert not (cli.workspace / "made.txt").exists()
    assert cli("undo", "--yes").status == 0
    assert (cli.workspace / "made.txt").exists()


def test_json_is_one_value_whatever_the_command_prints(cli: CommandLine) -> None:
    done = subprocess.run(
        command("--json", "attempt", "loud", "--", "sh", "-c", "echo noise; exit 3"),
        cwd=cli.workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"], told["kept"]) == (3, 3, False)
    assert "noise" in done.stderr


def test_a_command_that_a_signal_ended_counts_as_failed(cli: CommandLine) -> None:
    script = "echo x > made.txt; kill -TERM $$"
    done = subprocess.run(
        command("attempt", "try", "--", "sh", "-c", script), cwd=cli.workspace, check=False
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert not (cli.workspace / "made.txt").exists()


def test_ctrl_c_takes_the_attempt_back(cli: CommandLine) -> None:
    ready = cli.workspace / "ready"
    os.mkfifo(ready)
    # No shell: that one may take the signal for itself and go on with what it began meanwhile.
    script = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL);"
        "open('made.txt', 'w').close(); open('ready', 'w').close(); time.sleep(60)"
    )
    child = subprocess.Popen(
        command("attempt", "try", "--", sys.executable, "-c", script),
        cwd=cli.workspace,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        # Tests that run in the background may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        ready.read_text()
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(60) == 130
    finally:
        child.kill()
        child.wait()
    assert not (cli.workspace / "made.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("why",), 2, "missing"),
        (("--", "true"), 2, "missing"),
        (("two", "reasons", "--", "true"), 2, "one reason"),
        (
            ("why", "--", "no-such-command-anywhere"),
            127,
            "command not found: 'no-such-command-anywhere'",
        ),
        (("why", "--", "/no/such/command"), 127, "command not found: '/no/such/command'"),
        (("why", "--", "./no-such-command"), 127, "command not found: './no-such-command'"),
        (("why", "--", "/etc"), 126, "cannot run /etc: "),
        (("why", "--", "/etc/passwd"), 126, "cannot run /etc/passwd: "),
        ((" ", "--", "true"), 2, "empty"),
    ],
)
def test_a_mistake_changes_nothing(
    cli: CommandLine, arguments: tuple[str, ...], status: int, words: str
) -> None:
    answer = cli("--json", "attempt", *arguments)
    assert answer.status == status
    assert words in answer.error["message"]
    if status > 100:
        assert answer.error["hint"] == "nothing was changed or saved"
    cli.save()
    assert len(cli.json("log")) == 1
    assert cli.json("status")["cut_off"] == []


def test_a_command_that_fails_to_begin_tells_of_the_checkpoint_that_was_made(
    cli: CommandLine,
) -> None:
    script = cli.workspace / "broken"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    answer = cli("--json", "attempt", "why", "--", "./broken")
    assert answer.status == 126
    [made] = cli.json("log")
    assert made["id"][:10] in answer.error["hint"]
    assert "was saved before the command" in answer.error["hint"]
    assert cli.json("status")["cut_off"] == []
    assert cli("attempt", "why", "--", "./there", "-C", str(cli.workspace)).status == 127
    (cli.workspace / "there").write_text("#!/bin/sh\nexit 0\n")
    (cli.workspace / "there").chmod(0o755)
    assert cli("attempt", "why", "--", "./there").status == 0


@pytest.mark.requirement("SE-6")
def test_what_was_cut_off_is_reported_with_both_ways_out(cli: CommandLine) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from holdfast import SessionCheckpointer\n"
        "session = SessionCheckpointer(Path(sys.argv[1]), sys.argv[2])\n"
        "with session.editing(['made.txt'], 'a big change'):\n"
        "    Path(sys.argv[1], 'made.txt').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    cli.save()
    session = cli.json("status")["session_id"]
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program, str(cli.workspace), session], check=False)
    first, second = cli.json("status")["cut_off"]
    assert (first["kind"], first["reason"], first["paths"]) == (
        "edit",
        "a big change",
        ["made.txt"],
    )
    told = cli("status").out
    assert f"holdfast restore {first['checkpoint'][:10]} made.txt --yes\n" in told
    assert "holdfast attempt --keep" in told
    assert cli("restore", first["checkpoint"][:10], "made.txt", "--yes").status == 0
    assert not (cli.workspace / "made.txt").exists()
    assert [one["number"] for one in cli.json("status")["cut_off"]] == [second["number"]]
    assert [one["number"] for one in cli.json("attempt", "--keep")["kept"]] == [second["number"]]
    assert cli.json("status")["cut_off"] == []
    assert "no interrupted edits or attempts" in cli("attempt", "--keep").out


@pytest.mark.requirement("SE-6", "CL-1")
def test_the_way_back_leaves_out_files_that_a_dead_edit_never_made(cli: CommandLine) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from holdfast import SessionCheckpointer\n"
        "session = SessionCheckpointer(Path(sys.argv[1]), sys.argv[2])\n"
        "session.start_edit(['there.txt', 'never made.txt'])\n"
        "session.start_edit(['nothing/at-all.txt'])\n"
        "Path(sys.argv[1], 'there.txt').write_text('half')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    (cli.workspace / "there.txt").write_text("whole")
    cli.save()
    session = cli.json("status")["session_id"]
    subprocess.run([sys.executable, "-c", program, str(cli.workspace), session], check=False)
    told = cli("status").out
    first, second = cli.json("status")["cut_off"]
    assert first["paths"] == ["there.txt", "never made.txt"]
    [line] = [line for line in told.splitlines() if "roll it back" in line]
    assert "all of its files were new, and all are gone now" in told
    assert cli(*shlex.split(line.partition("holdfast ")[2])).status == 0
    assert (cli.workspace / "there.txt").read_text() == "whole"
    assert [one["number"] for one in cli.json("status")["cut_off"]] == [second["number"]]


def test_the_command_runs_where_it_was_asked_to(cli: CommandLine, tmp_path: Path) -> None:
    (cli.workspace / "sub").mkdir(exist_ok=True)
    done = subprocess.run(
        command("-C", str(cli.workspace / "sub"), "attempt", "why", "--", "sh", "-c", "pwd"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip().endswith("/sub")

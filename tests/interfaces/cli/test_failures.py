"""Everything that can go wrong has its exit status and a message with the way out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.interfaces.cli.command_line import CommandLine, command, run
from tests.support.hostile_trees import fill, noise

# Takes the lock of a store and tells so; a process that stops it blocks all others.
_HOLD_LOCK = """
import sys
from pathlib import Path
from holdfast.bootstrap.workspace import open_workspace
with open_workspace(Path(sys.argv[1]), create=False, purpose="a hung agent") as opened:
    with opened.store.hold():
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def hung(cli: CommandLine) -> Iterator[int]:
    """A stopped process that holds the store; its id."""
    cli.save()
    cli.json("config", "set", "lock_timeout", "0.2")
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD_LOCK, str(cli.workspace)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin
    assert holder.stdout
    try:
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        yield holder.pid
    finally:
        holder.send_signal(signal.SIGCONT)
        holder.communicate()


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("directory", "said"),
    [
        ("README.md", "is not a directory"),
        ("/", "is the whole file system"),
        ("/usr", "is a system directory"),
        ("/tmp", "is the directory for temporary files"),
        ("/proc/self", "is part of the system"),
    ],
)
def test_what_is_no_project_is_refused_and_nothing_is_made(
    project: Path,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    directory: str,
    said: str,
) -> None:
    monkeypatch.chdir(project)
    answer = run("checkpoint", "x", "-C", directory, "--json")
    assert answer.status == 5
    assert answer.error["code"] == "workspace_refused"
    assert said in answer.error["message"]
    assert answer.error["hint"]
    assert list(holdfast_home.iterdir()) == []


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    "arguments",
    [
        *(("checkpoint", "x"), ("init",), ("status",), ("log",), ("diff",), ("restore",)),
        *(("undo",), ("show",), ("delete", "HEAD"), ("stats",), ("check",), ("config", "list")),
        ("config", "set", "budget", "9"),
    ],
    ids=" ".join,
)
def test_a_directory_that_does_not_exist_is_not_found_whatever_the_command(
    project: Path, holdfast_home: Path, arguments: tuple[str, ...]
) -> None:
    answer = run(*arguments, "-C", str(project / "missing"), "--json")
    assert answer.status == 4
    assert answer.error["code"] == "workspace_missing"
    assert "does not exist" in answer.error["message"]
    assert answer.error["hint"]
    assert list(holdfast_home.iterdir()) == []


@pytest.mark.requirement("CL-3", "ST-3")
def test_the_home_directory_is_refused_unless_one_insists(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(cli.workspace))
    answer = cli("checkpoint", "x", "--json")
    assert answer.status == 5
    assert "is your home directory" in answer.error["message"]
    assert "--force" in answer.error["hint"]
    assert cli("checkpoint", "x", "--force").status == 0


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("verb", ["log", "undo", "status"])
def test_without_a_workspace_here_the_users_workspaces_are_listed(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    cli.save()
    monkeypatch.setenv("HOME", str(cli.workspace.parent))
    error = run(verb, "-C", str(cli.workspace.parent), "--json").error
    assert error["code"] == "workspace_refused"
    assert error["message"] == f"no workspace in {cli.workspace.parent}"
    assert f"your workspaces: {cli.workspace} (just now)" in error["hint"]
    assert "--force" not in error["hint"]


@pytest.mark.requirement("CL-3")
def test_the_store_itself_is_no_workspace_even_with_force(
    cli: CommandLine, holdfast_home: Path
) -> None:
    cli.save()
    inside = CommandLine(holdfast_home / "stores")
    assert inside("checkpoint", "x", "--force", "--json").error["code"] == "workspace_refused"


@pytest.mark.requirement("ST-3", "CL-3")
@pytest.mark.parametrize("where", [".store", "deep/below/store"])
def test_a_store_inside_the_workspace_is_refused_with_the_way_out(
    project: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    before = sorted(project.rglob("*"))
    monkeypatch.setenv("HOLDFAST_HOME", str(project / where))
    refused = run("-C", str(project), "checkpoint", "x", "--json")
    assert refused.status == 5
    assert refused.error["code"] == "workspace_refused"
    assert str(project / where) in refused.error["message"]
    assert "set HOLDFAST_HOME to a directory outside" in refused.error["hint"]
    assert sorted(project.rglob("*")) == before, "nothing was made"


@pytest.mark.requirement("CL-3")
def test_an_unreadable_workspace_is_refused(cli: CommandLine, ordinary_permissions: None) -> None:
    cli.save()
    cli.workspace.chmod(0o000)
    try:
        answer = cli("checkpoint", "x", "--json")
        assert answer.status == 5
        assert answer.error["hint"]
    finally:
        cli.workspace.chmod(0o755)
    assert len(cli.json("log")) == 1


@pytest.mark.requirement("CL-3")
def test_a_store_that_cannot_be_made_is_refused(
    cli: CommandLine,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    ordinary_permissions: None,
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(holdfast_home / "below"))
    holdfast_home.chmod(0o500)
    try:
        answer = cli("checkpoint", "x", "--json")
        assert answer.status == 5
        assert "HOLDFAST_HOME" in answer.error["hint"]
    finally:
        holdfast_home.chmod(0o700)


@pytest.mark.requirement("CL-3")
def test_a_current_directory_that_is_gone_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    answer = run("status", "--json")
    monkeypatch.chdir(project)
    assert answer.status == 4
    assert "no longer exists" in answer.error["message"]


@pytest.mark.requirement("CL-3", "ST-3")
def test_a_file_that_has_no_room_in_the_budget_is_exit_3_and_names_the_setting(
    cli: CommandLine,
) -> None:
    cli.save()
    cli.json("config", "set", "budget", "1000")
    fill(cli.workspace / "large", noise(300_000))
    answer = cli("checkpoint", "x")
    assert answer.status == 3
    assert "1 file (300 kB) does not fit into the disk budget" in answer.err + answer.out
    assert "config set budget" in answer.err + answer.out
    assert len(cli.json("log")) == 2


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("buffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "arguments",
    [("log",), ("diff",), ("diff", "--patch"), ("checkpoint", "x"), ("--help",), ("log", "--help")],
    ids=" ".join,
)
def test_an_output_that_cannot_be_written_is_reported_as_such(
    cli: CommandLine, arguments: tuple[str, ...], buffered: str
) -> None:
    cli.save()
    (cli.workspace / "README.md").write_text("changed\n")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command(*arguments, "-C", str(cli.workspace)),
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": buffered},
            check=False,
        )
    assert done.returncode == 7
    assert done.stderr == (
        b"error: cannot write the output: No space left on device\n"
        b"hint: the command itself finished; only its output is lost\n"
    )


@pytest.mark.requirement("CL-3")
def test_a_store_held_by_a_hung_process_is_exit_8_and_names_the_process(
    cli: CommandLine, hung: int
) -> None:
    answer = cli("checkpoint", "x", "--json")
    assert answer.status == 8
    assert answer.error["code"] == "busy"
    assert f"process {hung} (a hung agent)" in answer.error["message"]
    assert f"kill {hung}" in answer.error["hint"]
    assert len(cli.json("log")) == 1, "reading needs no lock"


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGINT, 130, b"interrupted"),
        (signal.SIGTERM, 143, b"interrupted by SIGTERM"),
        (signal.SIGHUP, 129, b"interrupted by SIGHUP"),
    ],
)
def test_a_signal_ends_a_command_with_its_status_and_a_short_message(
    cli: CommandLine, number: signal.Signals, status: int, said: bytes
) -> None:
    cli.save()
    program = (
        "import os, sys, threading\n"
        "from holdfast.interfaces.cli.main import main\n"
        "from holdfast.adapters.local.store_lock import StoreLock\n"
        "def held(self, *_):\n"  # the moment in which the command begins to wait for the lock
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    threading.Event().wait()\n"
        "StoreLock._acquire_file = held\n"
        f"sys.exit(main({['checkpoint', 'x', '-C', str(cli.workspace)]!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr == (
        b"error: " + said + b"\n"
        b"hint: Finished work is kept. The next command repairs anything left unfinished\n"
    )


@pytest.mark.requirement("CL-3")
def test_a_reader_that_goes_away_is_not_an_error_message(cli: CommandLine) -> None:
    cli.save()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command("log", "-C", str(cli.workspace)),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.requirement("CL-3")
def test_an_unexpected_error_is_exit_1_and_says_that_it_is_a_bug(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.save()

    def fail(invocation: object) -> int:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr("holdfast.interfaces.cli.commands.log.run", fail)
    answer = cli("log", "--json")
    assert answer.status == 1
    assert answer.error["code"] == "bug"
    assert answer.error["message"] == "unexpected RuntimeError: the sky fell"
    assert "this is a bug in Holdfast" in answer.error["hint"]
    assert "Traceback" not in cli("log").err
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    assert cli("log").err.startswith("Traceback (most recent call last):")


@pytest.mark.requirement("CL-3")
def test_commands_at_the_same_time_all_succeed(cli: CommandLine) -> None:
    cli.save()
    answers: list[int] = []
    threads = [
        Thread(target=lambda n=n: answers.append(cli.process("checkpoint", f"number {n}").status))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [0, 0, 0, 0]
    listed = cli.json("log")
    assert len(listed) == 5
    assert [one["parent"] for one in listed[:-1]] == [one["id"] for one in listed[1:]]


@pytest.mark.requirement("CL-3")
def test_a_directory_above_the_home_directory_is_not_called_a_system_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = project / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    answer = run("checkpoint", "x", "-C", str(project), "--json")
    assert answer.status == 5
    assert f"contains your home directory ({home})" in answer.error["message"]


@pytest.mark.requirement("CL-3")
def test_the_process_itself_answers_with_the_same_statuses(cli: CommandLine) -> None:
    assert cli.process("checkpoint", "x").status == 0
    assert cli.process("delete").status == 2
    assert cli.process("show", "nobody").status == 4
    assert cli.process("delete", "HEAD").status == 5
    answer = cli.process("show", "nobody", "--json")
    assert answer.error["code"] == "unknown_reference"


@pytest.mark.requirement("CL-3")
def test_after_a_restore_was_killed_the_next_command_puts_it_right_and_says_so(
    cli: CommandLine,
) -> None:
    cli.save("good", "--name", "good")
    for name in ("README.md", "run.sh"):
        (cli.workspace / name).write_text("wrecked\n")
    program = (
        "import os, signal\n"
        "from holdfast.engine.restore.executor import Executor\n"
        "from holdfast.interfaces.cli.main import main\n"
        # Everything is in place and nothing is recorded yet.
        "Executor.make_durable = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"main({['-C', str(cli.workspace), 'restore', 'good', '--yes']!r})\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    answer = cli("log", "--records")
    assert answer.status == 0
    assert answer.err == "note: Finished the interrupted restore to good: 0 files changed\n"
    assert (cli.workspace / "README.md").read_text() == "hello\n"
    assert cli("log").err == ""
    assert cli("undo", "--yes").status == 0
    assert (cli.workspace / "README.md").read_text() == "wrecked\n"


@pytest.mark.requirement("RB-3", "RB-4")
@pytest.mark.parametrize("backwards", [False, True])
def test_work_after_a_killed_restore_is_named_and_undo_brings_it_back(
    cli: CommandLine, backwards: bool
) -> None:
    cli.save("good", "--name", "good")
    (cli.workspace / "README.md").write_text("wrecked\n")
    (cli.workspace / "run.sh").write_text("wrecked\n")
    failing = (
        "def verify(*args, **names):\n    raise KeyboardInterrupt\ncarry_out.verify = verify\n"
    )
    program = (
        "import os, signal\n"
        "from holdfast.engine.restore import carry_out\n"
        "from holdfast.engine.restore.executor import Executor\n"
        "from holdfast.interfaces.cli.main import main\n"
        f"{failing if backwards else ''}"
        f"Executor.{'undo_all' if backwards else 'make_durable'} = "
        "lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"main({['-C', str(cli.workspace), 'restore', 'good', '--yes']!r})\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    written = ["README.md", *(f"note {number}" for number in range(6))]
    for name in written:
        (cli.workspace / name).write_text("written after the kill\n")
    first, saved, *listed = cli("status").err.splitlines()
    how = "Rolled back" if backwards else "Finished"
    # A restore that is rolled back changes run.sh as well.
    changed = len(written) + backwards
    assert first == f"note: {how} the interrupted restore to good: {changed} files changed"
    safety = cli.json("log", "--records", "-n", "0")[1]["id"]
    assert saved == (
        f"  7 files that had changed since then are saved in checkpoint {safety[:10]}; "
        "holdfast undo brings them back:"
    )
    assert listed == [f"    {name}" for name in written[:5]] + ["    … and 2 more"]
    assert not (cli.workspace / "note 0").exists()
    assert cli("undo", "--yes").status == 0
    for name in written:
        assert (cli.workspace / name).read_text() == "written after the kill\n"


def killed_restore(cli: CommandLine) -> None:
    """To the checkpoint "good", killed when all files are in place and nothing is recorded."""
    program = (
        "import os, signal\n"
        "from holdfast.engine.restore.executor import Executor\n"
        "from holdfast.interfaces.cli.main import main\n"
        "Executor.make_durable = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"main({['-C', str(cli.workspace), 'restore', 'good', '--yes']!r})\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL


@pytest.mark.requirement("RB-3", "CL-3")
@pytest.mark.parametrize(
    "verb", [["status"], ["checkpoint", "why"], ["restore", "good", "--yes"], ["undo", "--yes"]]
)
def test_a_recovery_is_part_of_the_next_json_object_and_of_no_other(
    cli: CommandLine, verb: list[str]
) -> None:
    cli.save("good", "--name", "good")
    (cli.workspace / "README.md").write_text("wrecked\n")
    killed_restore(cli)
    (cli.workspace / "README.md").write_text("written after the kill\n")
    assert isinstance(cli.json("log"), list)  # recovers, but has no room for it
    (cli.workspace / "new").write_text("to be saved\n")
    (recovered,) = cli.json(*verb)["recovered"]
    assert recovered["name"] == "good"
    assert recovered["overwritten"] == ["README.md"]
    assert (recovered["kind"], recovered["rolled_back"]) == ("restore", False)
    assert cli.json("show", recovered["safety_checkpoint"])["id"] == recovered["safety_checkpoint"]
    assert "recovered" not in cli.json("status")
    assert "interrupted" not in cli("status").err


@pytest.mark.requirement("RB-3", "CL-3")
def test_a_recovery_by_a_hook_is_in_its_answer_and_shown_once_by_the_next_command(
    cli: CommandLine,
) -> None:
    event = {"session_id": "s", "cwd": str(cli.workspace), "hook_event_name": "UserPromptSubmit"}

    def ask(prompt: str) -> str:
        asked = json.dumps({**event, "prompt": prompt})
        answer = cli.process("hook", "claude-code", stdin=asked)
        assert answer.status == 0
        return answer.out

    ask("begin")
    cli.save("good", "--name", "good")
    (cli.workspace / "README.md").write_text("wrecked\n")
    killed_restore(cli)
    (cli.workspace / "README.md").write_text("written after the kill\n")
    assert "1 file was restored to earlier content: README.md" in ask("continue")
    assert cli("log", "--quiet").err == ""
    first, saved, listed = cli("log").err.splitlines()
    assert first == "note: Finished the interrupted restore to good: 1 file changed"
    assert "is saved in checkpoint" in saved
    assert listed == "    README.md"
    assert cli("log").err == ""


@pytest.mark.requirement("CL-3")
def test_started_without_any_standard_stream_it_still_works_and_harms_nothing(
    cli: CommandLine,
) -> None:
    script = 'exec "$@" <&- >&- 2>&-'
    for reason in ("one", "two"):
        done = subprocess.run(
            ["sh", "-c", script, "sh", *command("checkpoint", reason, "-C", str(cli.workspace))],
            check=False,
        )
        assert done.returncode == 0
    assert [one["reasoning"] for one in cli.json("log")] == ["two", "one"]
    assert cli.json("check", "--data")["ok"] is True


@pytest.mark.requirement("CL-3", "ST-6")
@pytest.mark.parametrize("what", ["", "stores/{store}"])
@pytest.mark.parametrize(
    "command",
    ["status", "log", "checkpoint why", "restore HEAD --yes", "check", "stats", "config list"],
)
def test_a_store_of_another_user_is_refused_by_every_command(
    cli: CommandLine,
    holdfast_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    command: str,
) -> None:
    cli.save()
    (store,) = (holdfast_home / "stores").iterdir()
    if os.geteuid() == 0:
        os.chown(holdfast_home / what.format(store=store.name), 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    answer = cli("--json", *command.split())
    assert answer.status == 5
    assert "belongs to another user (uid " in answer.error["message"]
    assert "HOLDFAST_HOME" in answer.error["hint"]

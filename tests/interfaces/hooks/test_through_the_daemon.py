"""Hooks with a daemon behind them: the same results, sooner, and nothing stays behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.bootstrap.settings import trust_settings
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.daemon.client import ask
from holdfast.interfaces.daemon.hook_client import ask_about
from tests.interfaces.cli.command_line import CommandLine
from tests.support.composition import configure
from tests.support.daemon_calls import after, logged_checkpoints, send, tool_call
from tests.support.daemons import daemon_here
from tests.support.hook_process import call_hook, recorded
from tests.support.workspace_state import state_of

pytestmark = [pytest.mark.requirement("HK-3"), pytest.mark.usefixtures("runtime", "patience")]

# Beyond what an interpreter has loaded when it does nothing.
ALLOWED = {"__future__", "_signal", "_socket", "binascii", "gc", "time"} | {
    "holdfast",
    "holdfast.__main__",
    "holdfast.interfaces",
    "holdfast.interfaces.daemon",
    "holdfast.interfaces.daemon.address",
    "holdfast.interfaces.daemon.hook_client",
}


def test_the_first_event_is_saved_at_once_and_begins_the_daemon_that_answers_the_next(
    project: Path, cli: CommandLine
) -> None:
    send(project, tool_call(project, "t1"))
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "initial"]
    served = ask("status", start=True, start_s=120)[
        "requests"
    ]  # waits for the one that is being started
    (project / "src" / "app.py").write_text("changed since\n")
    send(project, tool_call(project, "t2"))
    assert ask("status")["requests"] == served + 2  # the event, and this question
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "risky", "initial"]
    assert ask("status")["workspaces"][0]["session_id"] == "s1"


@pytest.mark.requirement("AU-4")
def test_the_end_of_one_session_leaves_the_automatic_checkpoints_of_another(project: Path) -> None:
    def watched() -> str | None:
        found: str | None = ask("status")["workspaces"][0]["session_id"]
        return found

    with daemon_here():
        for session in ("s1", "s2"):
            send(project, tool_call(project, f"of {session}") | {"session_id": session})
        for session, left in (("s1", "s2"), ("s2", None)):
            ended = {"hook_event_name": "SessionEnd", "session_id": session, "cwd": str(project)}
            send(project, ended)
            assert watched() == left


def test_a_hook_that_the_daemon_answers_loads_the_thin_client_and_nothing_else(
    project: Path, cli: CommandLine
) -> None:
    program = (
        "import sys; bare = set(sys.modules); sys.argv = ['holdfast', 'hook', 'claude-code']\n"
        "import os; os._exit = sys.exit  # just to look at what is loaded by then\n"
        "from holdfast.__main__ import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "print(*set(sys.modules) - bare, file=sys.stderr)\n"
    )
    with daemon_here():
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(tool_call(project, "t1")).encode(),
            capture_output=True,
            cwd=project,
            check=True,
        )
    assert json.loads(done.stdout) == {}
    assert set(done.stderr.decode().split()) <= ALLOWED
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "initial"]


@pytest.mark.requirement("AU-1")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_session_leaves_the_same_checkpoints_with_and_without_a_daemon(
    agent: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy" / "shop"
    copy.parent.mkdir()
    subprocess.run(["cp", "-a", project, copy], check=True)
    logs = []
    for root, switch in ((project, "on"), (copy, "off")):
        configure(root, auto_files=0, auto_interval=0, end_of_day="")
        monkeypatch.setenv("HOLDFAST_DAEMON", switch)
        with daemon_here() as daemon:
            sound = state_of(root)
            events = recorded(agent, root, "rm -rf src")
            for number, event in enumerate(events):
                if number == 4:
                    subprocess.run(["rm", "-rf", "src"], cwd=root, check=True)
                call_hook(agent, event, root)
            assert (daemon.requests > 0) == (switch == "on")
        cli = CommandLine(root)
        log = [(made["kind"], made["reasoning"]) for made in cli.json("log", "-n", "100")]
        logs.append(log)
        before = next(m["id"] for m in cli.json("log", "-n", "100") if m["kind"] == "risky")
        cli.json("restore", before, "--yes")
        assert state_of(root) == sound
    assert logs[0] == logs[1]


@pytest.mark.parametrize("where", ["store", "project", "user", "environment"])
def test_the_daemon_can_be_turned_off(
    where: str, project: Path, cli: CommandLine, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_DAEMON")  # it has the last word
    if where == "store":
        configure(project, daemon="off")
    elif where == "environment":
        monkeypatch.setenv("HOLDFAST_DAEMON", "off")
    else:
        files = {"project": project / ".holdfast", "user": runtime / "holdfast-config" / "holdfast"}
        monkeypatch.setenv("XDG_CONFIG_HOME", str(runtime / "holdfast-config"))
        files[where].mkdir(parents=True, exist_ok=True)
        (files[where] / "config.toml").write_text('daemon = "off"\n')
        if where == "project":
            trust_settings(project, os.environ)
    send(project, tool_call(project, "t1"))
    assert not list(runtime.glob("holdfast/*.sock*"))  # no process was started
    with daemon_here() as daemon:
        send(project, {**tool_call(project, "t2"), "session_id": "s2"})
        assert daemon.workspaces.all() == []
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "initial"]


@pytest.mark.requirement("AG-1")
def test_components_see_the_environment_of_the_hook(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    configure(project, agent_state=["codex"])
    with daemon_here() as daemon:
        for number in (1, 2):
            home = tmp_path / f"codex{number}"
            (home / "memories").mkdir(parents=True)
            for name in ("AGENTS.md", "memories/x.md"):
                (home / name).write_text(f"remembered {number}" * number)
            answer = call_hook(
                "claude-code",
                tool_call(project, f"t{number}"),
                project,
                environment={"CODEX_HOME": str(home)},
            )
            assert answer.json == {}
        assert daemon.requests == 2
    sizes = []
    for made in cli.json("log", "--session", "s1")[:2]:
        (state,) = [
            c
            for c in cli.json("show", made["id"], "--session", "s1")["components"]
            if c["name"] == "agents"
        ]
        sizes.append(state["facts"]["bytes"])
    assert sizes[0] == 2 * sizes[1] > 0


@pytest.mark.requirement("DB-3")
def test_the_recorded_environment_is_that_of_the_hook(project: Path, cli: CommandLine) -> None:
    with daemon_here() as daemon:
        call = tool_call(project, "t1")
        call_hook("claude-code", call, project, environment={"ONLY_THE_HOOK_HAS_IT": "x"})
        assert daemon.requests == 1
    risky = cli.json("log", "--session", "s1")[0]
    shown = cli.json("show", risky["id"], "--session", "s1")["components"]
    (state,) = [one for one in shown if one["name"] == "environment"]
    assert "ONLY_THE_HOOK_HAS_IT" in state["facts"]["variables"]


@pytest.mark.requirement("AU-2")
def test_an_event_after_a_call_waits_for_a_store_that_is_in_use_and_is_saved(
    project: Path, cli: CommandLine
) -> None:
    from holdfast.bootstrap.workspace import open_workspace

    configure(project, auto_files=0, auto_interval=0, end_of_day="")
    before = tool_call(project, "t1", "make")
    with daemon_here() as daemon, ThreadPoolExecutor(1) as other:
        send(project, before)
        (project / "made").write_text("by make")
        served = daemon.requests
        with open_workspace(project, create=False) as opened, opened.store.hold():
            sent = other.submit(send, project, after(before))
            while daemon.requests == served:
                os.sched_yield()
            assert not sent.done()
            assert cli.json("log", "--session", "s1")[0]["reasoning"] == "Before Bash: make"
        sent.result()
        assert logged_checkpoints(cli)[0] == ("tool", "After Bash: make")


@pytest.mark.linux
def test_five_hundred_events_in_a_row_leave_nothing_behind_in_the_daemon(
    project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    configure(project, auto_files=0, auto_interval=0, end_of_day="")
    pid = ask("ping", start=True, start_s=120)["pid"]

    def send_both(number: int) -> None:
        (project / "src" / "app.py").write_text(f"price = {number}\n")
        event = tool_call(project, f"t{number}", f"make {number % 7}")
        for one in (event, after(event)):
            ask_about(["claude-code"], json.dumps(one).encode(), number, bool)

    for number in range(60):
        send_both(number)
    at_first = _resources(pid)
    for number in range(60, 250):
        send_both(number)
    in_the_end = _resources(pid)
    assert in_the_end["files"] <= at_first["files"] + 4
    assert in_the_end["kilobytes"] <= at_first["kilobytes"] + 12_000
    assert cli.json("status")["sessions"] == ["s1"]
    assert ask("status")["requests"] >= 500


def _resources(pid: int) -> dict[str, int]:
    """Open files and memory, when nothing is going on."""
    while ask("status")["connections"] > 1:  # besides this question
        continue
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return {
        "files": len(os.listdir(f"/proc/{pid}/fd")),
        "kilobytes": int(resident.split()[1]),
    }

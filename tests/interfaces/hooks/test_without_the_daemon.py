"""A daemon that fails, hangs, or is not the right one: the hook does the work, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.interfaces.daemon import hook_client
from holdfast.interfaces.daemon.client import ask
from holdfast.interfaces.daemon.hook_client import NoAnswer, ask_about
from tests.interfaces.cli.command_line import CommandLine, command
from tests.support.composition import configure
from tests.support.daemon_calls import logged_checkpoints, send, tool_call
from tests.support.daemons import daemon_here, wait_for
from tests.support.failing_daemon import POINTS, dying_daemon
from tests.support.hook_process import call_hook
from tests.support.real_mounts import can_mount

pytestmark = [pytest.mark.requirement("HK-3"), pytest.mark.usefixtures("runtime")]


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("point", POINTS)
def test_an_event_counts_once_when_the_daemon_is_killed_in_the_middle(
    point: str, project: Path, cli: CommandLine
) -> None:
    cli.save("something to begin with", "--session", "other")
    with dying_daemon(point) as daemon:
        send(project, tool_call(project, "t1"))
        assert daemon.wait() == -signal.SIGKILL
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "initial"]
    assert cli.json("check")["problems"] == []


def test_a_daemon_that_does_not_answer_is_given_up(
    project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    pid = ask("ping", start=True, start_s=120)["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        send(project, tool_call(project, "t1"))
        assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "initial"]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert not (holdfast_home / "hooks.log").exists()


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("version", ["0.0.1", "99.0.0", "odd"])
def test_a_daemon_of_another_version_leaves_the_event_to_the_hook(
    version: str, project: Path, cli: CommandLine
) -> None:
    with daemon_here(version=version) as daemon:
        send(project, tool_call(project, "t1"))
        assert daemon.requests == 0
        assert daemon._ended.is_set() == (version == "0.0.1")
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "initial"]


@pytest.mark.usefixtures("patience")
def test_a_plug_in_is_left_to_the_hook_whose_environment_it_may_need(
    project: Path, cli: CommandLine
) -> None:
    configure(project, components=["git", "someone-elses"])
    with daemon_here() as daemon:
        answer = call_hook("claude-code", tool_call(project, "t1"), project)
        assert daemon.workspaces.all() == []
    assert "someone-elses" in answer.json["systemMessage"]
    assert cli.json("log", "--session", "s1")[0]["partial"] is True


@pytest.mark.usefixtures("patience")
def test_a_hook_that_sees_other_directories_does_its_work_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    event = json.dumps(tool_call(project, "t1")).encode()
    monkeypatch.setattr(hook_client, "seen_from_here", lambda directory: b"1 2 3 4")
    with (
        daemon_here(handlers=None) as daemon,
        pytest.raises(NoAnswer, match="different directories") as caught,
    ):
        # The daemon looks at the same name through the function that it imported.
        ask_about(["claude-code"], event, 1, bool)
    assert not caught.value.missing
    assert daemon.workspaces.all() == []


@pytest.mark.linux
@pytest.mark.requirement("HK-2")
@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("real", [True, False] if can_mount() else [False])
def test_a_hook_with_mounts_of_its_own_saves_what_it_sees(project: Path, real: bool) -> None:
    if not real:
        assert os.fsencode(os.readlink("/proc/self/ns/mnt")) in hook_client.seen_from_here("/")
        return
    event = json.dumps(tool_call(project, "t1")).encode()
    mount = 'mount -t tmpfs own "$0/empty" && echo mine > "$0/empty/work" && exec "$@"'
    alone = ["unshare", "--mount", "sh", "-c", mount, str(project)]
    with daemon_here():
        subprocess.run(
            [*alone, *command("hook", "claude-code")], input=event, cwd=project, check=True
        )
    files = CommandLine(project).json("show", "HEAD", "--files")["entries"]
    assert "empty/work" in {entry["path"] for entry in files}


@pytest.mark.usefixtures("patience")
def test_a_hook_that_is_asked_to_end_while_the_daemon_works_is_a_yes_and_tells_what_it_left(
    project: Path, cli: CommandLine
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hook(daemon: Any, arguments: Any) -> dict[str, Any]:
        begun.set()
        go_on.wait(60)
        return {"text": "{}"}

    cli.save()
    with daemon_here(handlers={"hook": hook}):
        waiting = subprocess.Popen(
            command("hook", "claude-code"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=project,
        )
        assert waiting.stdin is not None
        waiting.stdin.write(json.dumps(tool_call(project, "t1")).encode())
        waiting.stdin.close()
        waiting.stdin = None
        assert begun.wait(60)
        waiting.send_signal(signal.SIGTERM)
        out, err = waiting.communicate()
        go_on.set()
    assert (waiting.returncode, "stopped by signal" in out.decode(), err) == (0, True, b"")
    assert [entry["tool"] for entry in cli.json("status")["unprotected"]] == ["Bash"]


@pytest.mark.usefixtures("patience")
@pytest.mark.requirement("HK-2")
def test_what_the_daemon_could_not_save_is_in_the_log_and_in_status(
    project: Path, cli: CommandLine, holdfast_home: Path
) -> None:
    cli.save()
    store = next((holdfast_home / "stores").iterdir())
    with daemon_here() as daemon:
        os.rename(store / "catalog.db", store / "catalog.away")
        assert "catalog.db" in call_hook("claude-code", tool_call(project, "t1"), project).out
        os.rename(store / "catalog.away", store / "catalog.db")
        assert daemon.requests == 1
    unprotected = cli.json("status")["unprotected"]
    assert [entry["tool"] for entry in unprotected] == ["Bash"]
    assert "catalog.db" in unprotected[0]["reason"]


def test_many_first_events_at_once_begin_one_daemon(project: Path, cli: CommandLine) -> None:
    event = json.dumps(tool_call(project, "t1")).encode()
    hooks = [
        subprocess.Popen(
            command("hook", "claude-code"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=project,
        )
        for _ in range(4)
    ]
    for hook in hooks:
        out, err = hook.communicate(event)
        assert (hook.returncode, out, err) == (0, b"{}\n", b"")
    pid = ask("ping", start=True, start_s=120)["pid"]
    assert [kind for kind, _ in logged_checkpoints(cli)] == ["risky", "initial"]
    ask("stop")
    wait_for(pid)
    with pytest.raises(NoAnswer):
        ask_about(["claude-code"], event, 1, bool)


def test_a_daemon_that_cannot_start_is_not_tried_with_every_event(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    places = tmp_path / "site"
    places.mkdir()
    counter = tmp_path / "starts"
    (places / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'daemon' in sys.orig_argv:\n"
        f"    open({str(counter)!r}, 'a').write('x')\n"
        "    os._exit(1)\n"
    )
    path = os.pathsep.join([str(places), *filter(None, [os.environ.get("PYTHONPATH")])])
    for number in range(3):
        # The pipe that the hook inherited is closed when everything it started has ended.
        answer = call_hook(
            "claude-code",
            tool_call(project, f"t{number}"),
            project,
            environment={"PYTHONPATH": path},
        )
        assert answer.json == {}
    assert counter.read_text() == "xx"


@pytest.mark.linux
def test_a_daemon_that_was_killed_while_it_started_is_tried_again_with_the_next_event(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    places = tmp_path / "site"
    places.mkdir()
    killed = tmp_path / "killed"
    (places / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        f"if 'daemon' in sys.orig_argv and not os.path.exists({str(killed)!r}):\n"
        f"    open({str(killed)!r}, 'x').close()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = os.pathsep.join([str(places), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The pipe that the hook inherited is closed when everything it started has ended or detached.
    call_hook("claude-code", tool_call(project, "t1"), project, environment={"PYTHONPATH": path})
    assert killed.exists()
    call_hook("claude-code", tool_call(project, "t2"), project, environment={"PYTHONPATH": path})
    # A process that waits for the start lock finds a daemon, and starts none itself.
    pid = ask("ping", start=True, start_s=120)["pid"]
    with open(f"/proc/{pid}/environ", "rb") as file:
        assert os.fsencode(f"PYTHONPATH={places}") in file.read()
    ask("stop")
    wait_for(pid)


@pytest.mark.parametrize(
    "message",
    [
        hook_client.MARK,
        hook_client.MARK + b"\0\0\0\x05abc",
        hook_client.pack(b"1", b"x", b"", b"hook")[4:],
        hook_client.pack(b"x", b"0.1.0", b"", b"hook", b"")[4:],
        hook_client.pack(b"1", b"\xff", b"", b"hook", b"")[4:],
    ],
)
def test_a_message_that_makes_no_sense_harms_no_other_client(message: bytes) -> None:
    from holdfast.interfaces.daemon.client import connect

    with daemon_here() as daemon:
        connection = connect(os.environ)
        assert connection is not None
        with closing(connection):
            connection.sendall(len(message).to_bytes(4, "big") + message)
            connection.settimeout(30)
            answer = b""
            while chunk := connection.recv(1 << 16):
                answer += chunk
                if hook_client.NOT_DONE in answer:
                    break
        assert hook_client.DONE not in answer.replace(hook_client.NOT_DONE, b"")
        assert ask("ping")["pid"] == os.getpid()
        assert daemon.workspaces.all() == []

"""The daemon gives the results that a process of one's own gives, and may end at any time."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer, __version__
from holdfast.bootstrap.settings import trust_settings
from holdfast.domain.checkpoints import ChangeCounts
from holdfast.interfaces.daemon import hook_client, workspaces
from holdfast.interfaces.daemon.client import NoDaemon, ask, connect
from holdfast.interfaces.daemon.handlers import HANDLERS, Arguments
from holdfast.interfaces.daemon.hook_client import NoAnswer
from holdfast.interfaces.daemon.instance import is_newer, listen
from holdfast.interfaces.daemon.server import MOST_CONNECTIONS, Daemon
from tests.behind_the_api import engine_of
from tests.support.composition import configure
from tests.support.daemons import daemon_here, kill_daemon, save_by_daemon, wait_for
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot

pytestmark = [pytest.mark.requirement("AU-6"), pytest.mark.usefixtures("patience")]

ASK = """
import json, sys
from holdfast.interfaces.daemon.client import ask
print(json.dumps(ask(sys.argv[1], json.loads(sys.argv[2]), start=True, start_s=120)))
"""


def tree_of(workspace: Path, identifier: str) -> dict[str, bytes]:
    with SessionCheckpointer(workspace, "s") as session:
        return {a.path: a.read_bytes() for a in get_snapshot(session, identifier).artifacts}


def on_disk(workspace: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(workspace)): path.read_bytes()
        for path in workspace.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }


def test_the_first_of_many_clients_starts_the_one_daemon(runtime: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", ASK, "ping", "{}"], stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    answers = {child.communicate(timeout=60)[0] for child in children}
    assert all(child.returncode == 0 for child in children)
    assert len(answers) == 1


def test_a_checkpoint_by_the_daemon_is_one_like_any_other(runtime: Path, workspace: Path) -> None:
    with daemon_here():
        first = save_by_daemon(workspace)
        fill(workspace / "part1/new", b"new")
        (workspace / "part0/file0").unlink()
        second = save_by_daemon(workspace)
        assert second.changed == ChangeCounts(added=1, modified=0, removed=1)
        assert second.parent == first.id
        assert (first.message_index, second.message_index) == (None, 0)
    assert tree_of(workspace, second.id) == on_disk(workspace)


def test_saves_by_the_daemon_and_by_others_follow_each_other(
    runtime: Path, workspace: Path
) -> None:
    with (
        daemon_here(),
        SessionCheckpointer.start(workspace, "s", agent="claude-code") as session,
    ):
        for number in range(6):
            fill(workspace / f"part{number % 3}/file{number}", f"step {number}".encode())
            if number % 2:
                identifier: str = save_by_daemon(workspace).id
            else:
                identifier = session.checkpoint("by hand")
            assert tree_of(workspace, identifier) == on_disk(workspace)
        session.restore("initial")
        assert save_by_daemon(workspace).changed.modified == 0


def test_changed_settings_are_heeded_by_the_next_save(runtime: Path, workspace: Path) -> None:
    fill(workspace / ".gitignore", b"*.log\n")
    fill(workspace / "part0/a.log", b"ignored at first")
    with daemon_here():
        assert save_by_daemon(workspace).files == 13
        configure(workspace, include=["*.log"])
        assert save_by_daemon(workspace).files == 14
        fill(workspace / ".holdfast/config.toml", b'ignore = ["part2"]\n')
        assert save_by_daemon(workspace).files == 14
        trust_settings(workspace, os.environ)
        assert save_by_daemon(workspace).files == 10


def test_a_workspace_that_was_replaced_is_saved_as_what_it_is_now(
    runtime: Path, workspace: Path
) -> None:
    with daemon_here():
        save_by_daemon(workspace)
        save_by_daemon(workspace)
        workspace.rename(workspace.with_name("moved"))
        fill(workspace / "other", b"another directory under the old name")
        made = save_by_daemon(workspace)
        assert tree_of(workspace, made.id) == on_disk(workspace)
        assert save_by_daemon(workspace.with_name("moved")).files == 12
        shutil.rmtree(workspace)
        assert save_by_daemon(workspace.with_name("moved")).files == 12


def test_a_store_that_is_lost_is_replaced_at_the_next_event(
    runtime: Path, workspace: Path, holdfast_home: Path
) -> None:
    with daemon_here():
        first = save_by_daemon(workspace)
        shutil.rmtree(holdfast_home / "stores")
        second = save_by_daemon(workspace)
    assert second.id != first.id
    assert tree_of(workspace, second.id) == on_disk(workspace)


def test_a_daemon_that_is_killed_loses_nothing_and_is_replaced(
    runtime: Path, workspace: Path, rng: random.Random
) -> None:
    kept: dict[str, dict[str, bytes]] = {}
    ended: set[int] = set()
    for number in range(6):
        pid = ask("ping", start=True, start_s=120)["pid"]
        assert pid not in ended
        last = rng.randrange(1, 8)
        asking = threading.Event()

        def kill_within(pid: int = pid, asking: threading.Event = asking) -> None:
            asking.wait()
            threading.Event().wait(rng.random() * 0.05)
            kill_daemon(pid)

        killer = threading.Thread(target=kill_within)
        killer.start()
        try:
            for step in range(10_000):
                fill(workspace / f"part{step % 3}/file{number}", os.urandom(3000))
                if step == last:
                    asking.set()
                kept[save_by_daemon(workspace).id] = on_disk(workspace)
        except NoAnswer:
            asking.set()
        killer.join()
        ended.add(pid)
    with SessionCheckpointer(workspace, "s") as session:
        left = {snapshot.id for snapshot in session.history(None)}
        newest = session.history(1)[0].id
    assert left & kept.keys()
    for identifier in [*sorted(left & kept.keys())[-5:], newest]:
        if identifier in kept:
            assert tree_of(workspace, identifier) == kept[identifier]
    ask("ping", start=True, start_s=120)
    assert tree_of(workspace, save_by_daemon(workspace).id) == on_disk(workspace)


def test_a_stale_socket_is_replaced(runtime: Path) -> None:
    first = ask("ping", start=True, start_s=120)["pid"]
    kill_daemon(first)
    assert any((runtime / "holdfast").glob("*.sock"))
    with pytest.raises(NoDaemon):
        ask("ping")
    assert ask("ping", start=True, start_s=120)["pid"] != first


def test_a_newer_client_gets_a_daemon_of_its_own_and_an_older_one_is_on_its_own(
    runtime: Path,
) -> None:
    with daemon_here(version="5.0.0") as daemon:
        with pytest.raises(NoDaemon, match=r"5\.0\.0"):
            ask("ping")
        assert ask("ping", version="5.0.0")["pid"] == os.getpid()
        with pytest.raises(NoDaemon, match=r"5\.0\.0"):
            ask("ping", version="5.0.1")
        with pytest.raises(NoDaemon, match="none is running"):
            ask("ping", version="5.0.0")
        assert daemon._ended.wait(30)
    assert ask("ping", start=True, start_s=120)["pid"] != os.getpid()


def test_an_older_daemon_is_replaced_by_one_of_the_clients_version(runtime: Path) -> None:
    with daemon_here(version="0.0.1"):
        assert ask("ping", start=True, start_s=120)["pid"] != os.getpid()


def test_a_daemon_whose_program_was_reinstalled_makes_room_though_the_version_is_the_same(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "__init__.py"
    program.write_text("old\n")
    monkeypatch.setattr("holdfast.__file__", str(program))
    with daemon_here() as daemon:
        assert ask("ping")["pid"] == os.getpid()
        fresh = tmp_path / "fresh"
        fresh.write_text("new\n")
        fresh.replace(program)
        with pytest.raises(NoDaemon, match="its program was replaced"):
            ask("ping")
        with pytest.raises(NoDaemon, match="none is running"):
            ask("ping")
        assert daemon._ended.wait(30)


def test_a_daemon_whose_source_was_edited_makes_room(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.interfaces.daemon.instance._BETWEEN_LOOKS_S", 0.0)
    (tmp_path / "engine").mkdir()
    for name in ("__init__.py", "engine/save.py"):
        (tmp_path / name).write_text("old\n")
    monkeypatch.setattr("holdfast.__file__", str(tmp_path / "__init__.py"))
    with daemon_here() as daemon:
        assert ask("ping")["pid"] == os.getpid()
        assert ask("ping")["pid"] == os.getpid()
        (tmp_path / "engine" / "save.py").write_text("edited in its place\n")
        with contextlib.suppress(NoDaemon):
            ask("ping")
        assert daemon._ended.wait(30)


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [
        ("0.10.0", "0.9.0", True),
        ("0.9.0", "0.10.0", False),
        ("1.0", "1.0", False),
        ("nonsense", "1.0", False),
        ("None", "1.0", False),
    ],
)
def test_versions_are_compared_by_number(one: str, other: str, newer: bool) -> None:
    assert is_newer(one, other) is newer


def test_other_surroundings_are_not_served(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon_here() as daemon:
        monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "elsewhere"))
        with pytest.raises(NoDaemon, match="none is running"):
            ask("ping")
        head = {"protocol": hook_client.PROTOCOL, "version": __version__, "request": "ping"}
        refused = daemon._answer(head | {"surroundings": {}, "arguments": {}})["refused"]
        assert refused == "it serves another HOLDFAST_HOME or other keys"


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x02[]",
        b"\0\0\0\x04nope",
        b'\0\0\0\x09{"a":',
        b"\0\0\0\x02{}",
        b"\0\0\0\x06\0\0\0\0\x09x",
        hook_client.pack(b"1", b"0.1.0", b""),
        hook_client.pack(b"1", b"0.1.0", b"", b"ping"),
        hook_client.pack(b"1", b"0.1.0", b"", b"ping", b"no JSON"),
        hook_client.pack(b"1", b"0.1.0", b"", b"ping", b"[" * 100_000),
        hook_client.pack(b"1", b"\xff", b"", b"ping", b"{}"),
        b"",
    ],
)
def test_nonsense_ends_its_connection_and_nothing_else(runtime: Path, garbage: bytes) -> None:
    with daemon_here():
        with contextlib.closing(connect(os.environ) or pytest.fail("no daemon")) as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            try:
                answer = connection.recv(1 << 16)
            except ConnectionResetError:  # it was ended before all was read
                answer = b""
            assert answer == b"" or b"refused" in answer
        assert ask("ping")["pid"] == os.getpid()


def test_a_message_that_is_too_large_is_not_sent(runtime: Path) -> None:
    with daemon_here():
        with pytest.raises(NoDaemon, match="bytes"):
            ask("ping", {"payload": "x" * (hook_client.LARGEST_BYTES + 1)})
        assert ask("ping", {"payload": "x" * (1 << 20)})["pid"] == os.getpid()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([(hook_client.ACCEPTED, b""), (hook_client.NOT_DONE, b"retired: too old")], "too old"),
        ([(hook_client.ACCEPTED, b"")], "ended without an answer"),
        ([(hook_client.DONE, b"[]")], "an invalid answer"),
        ([(hook_client.DONE, b"[" * 100_000)], "an invalid answer"),
        ([(b"one field",)], "did not answer"),
    ],
)
def test_a_daemon_of_another_kind_leaves_the_work_to_the_client_and_says_why(
    runtime: Path, answers: list[tuple[bytes, ...]], reason: str
) -> None:
    """One of before takes what is no JSON for a hook, and first says that it is at work."""
    with contextlib.closing(listen(os.environ)) as listener:

        def serve() -> None:
            listener.socket.setblocking(True)
            with listener.socket.accept()[0] as connection:
                hook_client.receive(connection, 30)
                for answer in answers:
                    connection.sendall(hook_client.pack(*answer))

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NoDaemon, match=reason):
            ask("ping")
        thread.join()


def _refusal() -> str:
    """Why a request is refused: those before it are taken first, so it may need a second one."""
    while True:
        try:
            ask("ping")
        except NoDaemon as refused:
            return str(refused)


def test_a_crowd_of_silent_connections_does_not_keep_the_others_out_for_good(
    runtime: Path,
) -> None:
    with daemon_here():
        silent = [connect(os.environ) for _ in range(MOST_CONNECTIONS)]
        assert all(silent)
        assert _refusal() == "too many connections at once"
        for connection in silent:
            assert connection is not None
            connection.close()
        while True:
            try:
                assert ask("ping")["pid"] == os.getpid()
                break
            except NoDaemon:
                continue


def test_requests_of_many_clients_at_once_are_all_answered(runtime: Path, workspace: Path) -> None:
    configure(workspace, max_manual_checkpoints=0)
    with daemon_here(), ThreadPoolExecutor(12) as clients:
        list(clients.map(lambda n: save_by_daemon(workspace, f"request {n}"), range(40)))
    with SessionCheckpointer(workspace, "s") as session:
        made = session.summaries(kind="message")
    assert len(made) == 40


def test_a_request_that_fails_unexpectedly_is_left_to_the_client(runtime: Path) -> None:
    def broken(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
        raise ZeroDivisionError("as it happens")

    with daemon_here(handlers={**HANDLERS, "broken": broken}):
        with pytest.raises(NoDaemon, match="as it happens"):
            ask("broken")
        with pytest.raises(NoDaemon, match="unknown request"):
            ask("unheard of")
        assert ask("ping")["pid"] == os.getpid()


def test_other_parts_add_requests_of_their_own(runtime: Path) -> None:
    def event(daemon: Daemon, arguments: Arguments) -> dict[str, Any]:
        return {"seen": arguments.get("payload", None)}

    with daemon_here(handlers={**HANDLERS, "event": event}):
        assert ask("event", {"payload": {"tool": "Bash"}}) == {"seen": {"tool": "Bash"}}


def test_it_ends_when_it_is_not_needed(runtime: Path) -> None:
    with daemon_here(idle_s=0.05) as daemon:
        assert daemon._ended.wait(30)
    with pytest.raises(NoDaemon):
        ask("ping")
    assert not any((runtime / "holdfast").glob("*.sock"))


def test_changes_that_no_checkpoint_has_are_kept_when_it_ends(
    runtime: Path, workspace: Path
) -> None:
    with daemon_here():
        first = save_by_daemon(workspace)
        fill(workspace / "part0/late", b"changed after the last request")
    with SessionCheckpointer(workspace, "s") as session:
        newest = session.history(1)[0]
        assert newest.parent == first.id
        assert engine_of(session).resolve(session._id, newest.id).kind.value == "interval"
    assert tree_of(workspace, newest.id) == on_disk(workspace)


@pytest.mark.requirement("AU-4")
def test_changes_in_a_workspace_that_makes_room_for_another_are_kept(
    runtime: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "MOST_OPEN", 1)
    other = tmp_path / "other"
    fill(other / "file", b"1")
    with daemon_here():
        first = save_by_daemon(workspace)
        fill(workspace / "part0/late", b"changed after the last request")
        save_by_daemon(other)
    with SessionCheckpointer(workspace, "s") as session:
        newest = session.history(1)[0]
    assert newest.parent == first.id
    assert tree_of(workspace, newest.id) == on_disk(workspace)


def test_a_socket_that_was_removed_does_not_leave_an_unreachable_daemon(
    runtime: Path,
) -> None:
    with daemon_here(idle_s=1000) as daemon:
        for path in (runtime / "holdfast").glob("*.sock"):
            path.unlink()
        assert not daemon._listener.is_reachable()
        os.write(daemon._wake_write, b".")
        assert daemon._ended.wait(30)


def test_a_daemon_as_a_process_stops_when_asked(runtime: Path) -> None:
    pid = ask("ping", start=True, start_s=120)["pid"]
    assert ask("stop")["pid"] == pid
    wait_for(pid)
    with pytest.raises(NoDaemon):
        ask("ping")

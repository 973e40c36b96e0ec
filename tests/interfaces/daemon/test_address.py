"""Where the socket is: private, short enough, and refused anywhere else."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path

import pytest

from holdfast.interfaces.daemon.address import (
    LONGEST_PATH_BYTES,
    NoPlace,
    candidate_directories,
    candidates,
    is_private,
    require_private,
    socket_name,
)
from holdfast.interfaces.daemon.client import NoDaemon, ask, start_daemon
from holdfast.interfaces.daemon.instance import AlreadyRunning, Listener, listen
from tests.support.daemons import daemon_here

pytestmark = pytest.mark.requirement("AU-6")


def test_the_runtime_directory_of_the_login_session_is_preferred() -> None:
    paths = list(candidates({"XDG_RUNTIME_DIR": "/run/user/7"}))
    assert paths[0].startswith("/run/user/7/holdfast/")
    assert paths[1].startswith(f"/tmp/holdfast-{os.getuid()}/")


@pytest.mark.parametrize("runtime", ["", "relative", "/" + "x" * LONGEST_PATH_BYTES])
def test_a_runtime_directory_that_cannot_hold_a_socket_is_passed_over(runtime: str) -> None:
    paths = list(candidates({"XDG_RUNTIME_DIR": runtime}))
    assert [path.startswith("/tmp/") for path in paths] == [True]


def test_what_decides_about_stores_and_keys_decides_about_the_daemon() -> None:
    names = {
        socket_name(environment)
        for environment in (
            {},
            {"HOLDFAST_HOME": "/a"},
            {"HOLDFAST_HOME": "/b"},
            {"HOLDFAST_KEY_FILE": "/a"},
            {"HOLDFAST_HOME": "/a", "EDITOR": "vi"},
        )
    }
    assert len(names) == 4


def test_socket_lock_and_directory_belong_to_the_user_alone(runtime: Path) -> None:
    with daemon_here():
        (path,) = (runtime / "holdfast").glob("*.sock")
        for each in (path, path.with_name(path.name + ".lock")):
            assert stat.S_IMODE(each.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_directory_of_another_user_is_not_used(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runtime / "holdfast").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(NoPlace, match="another user"):
        require_private(str(runtime / "holdfast"))
    assert not is_private(str(runtime / "holdfast"))


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_directory_that_others_can_enter_is_not_used(runtime: Path, mode: int) -> None:
    (runtime / "holdfast").mkdir()
    (runtime / "holdfast").chmod(mode)
    with pytest.raises(NoPlace, match="other users can access"):
        require_private(str(runtime / "holdfast"))


def test_a_link_in_its_place_is_not_followed(runtime: Path, tmp_path: Path) -> None:
    (runtime / "holdfast").symlink_to(tmp_path)
    with pytest.raises(NoPlace, match="not a directory"):
        require_private(str(runtime / "holdfast"))


def test_there_is_one_daemon_at_a_time(runtime: Path) -> None:
    listener = listen(os.environ)
    try:
        with pytest.raises(AlreadyRunning) as caught:
            listen(os.environ)
        assert caught.value.pid == os.getpid()
    finally:
        listener.close()
    listen(os.environ).close()


def test_where_nothing_can_be_made_the_client_is_notified_why(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runtime / "file").write_text("in the way")
    monkeypatch.setattr(
        "holdfast.interfaces.daemon.client.candidate_directories",
        lambda environment: iter([str(runtime / "file" / "holdfast")]),
    )
    with pytest.raises(NoDaemon, match="cannot create"):
        start_daemon(os.environ, 5)


def test_a_place_without_sockets_is_passed_over_for_the_next(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on network file systems that know no sockets."""
    other = runtime / "other"
    paths = [*[*candidates(os.environ)][:1], str(other / "x.sock")]
    monkeypatch.setattr(
        "holdfast.interfaces.daemon.instance.candidates", lambda environment: iter(paths)
    )
    bind = socket.socket.bind

    class Stubborn(socket.socket):
        def bind(self, address: str) -> None:  # type: ignore[override]
            if address == paths[0]:
                raise OSError(95, "Operation not supported")
            bind(self, address)

    monkeypatch.setattr(socket, "socket", Stubborn)
    listener = listen(os.environ)
    try:
        assert listener.path == paths[1]
    finally:
        listener.close()


def test_a_place_that_other_machines_see_is_the_last_resort(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a home on NFS: a daemon on another machine would hold the lock for all."""
    paths = [*[*candidates(os.environ)][:1], str(runtime / "local/x.sock")]
    monkeypatch.setattr(
        "holdfast.interfaces.daemon.instance.candidates", lambda environment: iter(paths)
    )
    shared = [str(runtime / "holdfast")]
    monkeypatch.setattr(
        "holdfast.adapters.local.mounts.is_on_a_network", lambda path: str(path) in shared
    )
    listener = listen(os.environ)
    assert listener.path == paths[1]
    listener.close()
    shared.append(str(runtime / "local"))
    listener = listen(os.environ)
    assert listener.path == paths[0]
    listener.close()


def test_the_type_of_a_file_system_is_reported_by_the_mount_table(tmp_path: Path) -> None:
    from holdfast.adapters.local import mounts as places

    assert not places.is_on_a_network(tmp_path / "not/there/yet")
    assert not places.is_on_a_network(Path("/proc"))


@pytest.mark.parametrize("name", ["a\rb", "a\u2028b", "a\x85b", "a\x0bb", "a\udcffb"])
def test_a_mount_of_any_name_does_not_keep_a_daemon_from_starting(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from holdfast.adapters.local import mounts as places

    table = tmp_path / "mounts"
    (tmp_path / name).mkdir()
    lines = "1 0 0:1 / / rw - ext4 /dev/a rw\n"
    lines += f"2 1 0:2 / {tmp_path}/{name} rw - nfs4 server:/x rw\n"
    table.write_bytes(os.fsencode(lines))
    monkeypatch.setattr(places, "TABLE", table)
    with contextlib.closing(listen(os.environ)) as listener:
        assert listener.path.startswith(str(runtime))
    assert places.is_on_a_network(tmp_path / name / "stores")


def test_a_listener_that_is_closed_twice_closes_nothing_else(runtime: Path) -> None:
    listener = Listener(next(candidates(os.environ)))
    listener.close()
    read, write = os.pipe()
    listener.close()
    os.write(write, b"still open")
    assert os.read(read, 20) == b"still open"
    os.close(read)
    os.close(write)


def test_nothing_is_asked_of_a_socket_in_a_directory_of_others(runtime: Path) -> None:
    with daemon_here():
        (runtime / "holdfast").chmod(0o755)
        with pytest.raises(NoDaemon, match="none is running"):
            ask("ping")
        (runtime / "holdfast").chmod(0o700)
        assert ask("ping")["pid"] == os.getpid()


def test_every_place_is_absolute() -> None:
    assert all(os.path.isabs(path) for path in candidate_directories({"XDG_RUNTIME_DIR": "x"}))

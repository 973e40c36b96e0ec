"""The real file system behind its port: the few calls that Python does not offer by themselves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.local import linux_calls
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.live_database import LiveDatabases
from holdfast.testing.filesystem_contract import FilesystemContract
from holdfast.testing.intercepted_filesystem import (
    Disk,
    InterceptedFilesystem,
    RecordingFilesystem,
)


@pytest.fixture(params=["the system's call", "without it"])
def fs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Filesystem:
    """With `renameat2` and, as on systems that lack it, with the steps that replace it."""
    if request.param == "without it":
        monkeypatch.setattr(linux_calls, "_renameat2", None)
    return LocalFilesystem()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_rename_new_moves_to_a_free_name(fs: Filesystem, tmp_path: Path, directory: int) -> None:
    (tmp_path / "a").write_bytes(b"a")
    fs.rename_new(b"a", b"b", src_dir_fd=directory, dst_dir_fd=directory)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"b": b"a"}


@pytest.mark.parametrize("kind", ["file", "directory", "broken link"])
def test_rename_new_never_replaces(
    fs: Filesystem, tmp_path: Path, directory: int, kind: str
) -> None:
    (tmp_path / "a").write_bytes(b"a")
    target = tmp_path / "b"
    if kind == "file":
        target.write_bytes(b"b")
    elif kind == "directory":
        target.mkdir()
    else:
        target.symlink_to("nowhere")
    before = target.lstat()
    with pytest.raises(FileExistsError):
        fs.rename_new(b"a", b"b", src_dir_fd=directory, dst_dir_fd=directory)
    assert (tmp_path / "a").read_bytes() == b"a"
    assert target.lstat().st_ino == before.st_ino


def test_exchange_swaps_two_names(fs: Filesystem, tmp_path: Path, directory: int) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    fs.exchange(b"a", b"b", src_dir_fd=directory, dst_dir_fd=directory)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"b", "b": b"a"}


def test_exchange_needs_both_names(fs: Filesystem, tmp_path: Path, directory: int) -> None:
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(FileNotFoundError):
        fs.exchange(b"a", b"b", src_dir_fd=directory, dst_dir_fd=directory)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"a"}


@pytest.mark.requirement("RL-7")
def test_times_and_modes_are_set_on_a_link_itself_or_not_at_all(
    tmp_path: Path, directory: int
) -> None:
    fs: Filesystem = LocalFilesystem()
    target = tmp_path / "target"
    target.write_bytes(b"")
    target.chmod(0o640)
    os.utime(target, ns=(5, 5))
    (tmp_path / "link").symlink_to("target")
    fs.set_times(b"link", 1_000_000_007, dir_fd=directory)
    assert (tmp_path / "link").lstat().st_mtime_ns == 1_000_000_007
    with contextlib.suppress(OSError):  # some kernels refuse; all that matters is the target
        fs.set_mode(b"link", 0o777, dir_fd=directory)
    assert target.stat().st_mtime_ns == 5
    assert target.stat().st_mode & 0o7777 == 0o640


@pytest.mark.usefixtures("ordinary_permissions")
def test_the_mode_of_an_unreadable_file_can_be_set(tmp_path: Path, directory: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(0)
    LocalFilesystem().set_mode(b"file", 0o4751, dir_fd=directory)
    assert path.stat().st_mode & 0o7777 == 0o4751


def test_names_that_are_not_text_are_listed_as_they_are(tmp_path: Path, directory: int) -> None:
    names = {b"plain", b"\xff\xfe", b"new\nline"}
    for name in names:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    assert set(LocalFilesystem().list_names(directory)) == names


def test_everything_can_be_synced_and_free_space_be_asked(tmp_path: Path, directory: int) -> None:
    fs: Filesystem = LocalFilesystem()
    fs.sync_all(directory)
    assert fs.free_bytes(os.fsencode(tmp_path)) > 0


def test_the_testing_kit_passes_every_member_of_the_port_on() -> None:
    ports = (Filesystem, LiveDatabases)
    members = {name for port in ports for name in vars(port) if not name.startswith("_")}
    assert members <= set(vars(InterceptedFilesystem))
    fs: Disk = InterceptedFilesystem(LocalFilesystem())
    assert fs.may_chown() == (os.geteuid() == 0)


class TestLocalFilesystem(FilesystemContract):
    def filesystem(self) -> Filesystem:
        return LocalFilesystem()


class TestWithoutRenameFlags(FilesystemContract):
    """As on systems that lack `renameat2`."""

    @pytest.fixture(autouse=True)
    def without_flags(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(linux_calls, "_renameat2", None)

    def filesystem(self) -> Filesystem:
        return LocalFilesystem()


class TestRecordingFilesystem(FilesystemContract):
    def filesystem(self) -> Filesystem:
        return RecordingFilesystem(LocalFilesystem())

"""Asking about many names at once: the same answers as for each alone, or none."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.local import linux_calls
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.engine.scan.directory_state import numbers_of

pytestmark = pytest.mark.requirement("PF-1")

FS = LocalFilesystem()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def _by_itself(names: list[bytes], fd: int) -> list[tuple[int, ...]]:
    return [numbers_of(FS.stat(name, dir_fd=fd, follow_symlinks=False)) for name in names]


def test_the_numbers_are_those_of_each_name_alone(tmp_path: Path, directory: int) -> None:
    top = os.fsencode(tmp_path)
    (tmp_path / "plain").write_bytes(b"plain")
    (tmp_path / "private").write_bytes(b"")
    (tmp_path / "private").chmod(0o4600)
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("plain")
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    with open(top + b"/\xff\xfe", "wb") as file:
        file.truncate(5 << 32)
    os.utime(tmp_path / "private", ns=(1, -1_500_000_001))
    os.utime(tmp_path / "plain", ns=(1, 4_000_000_000_123_456_789))
    names = [b"plain", b"private", b"below", b"link", b"broken", b"fifo", b"\xff\xfe"]
    told = FS.stat_all(names, dir_fd=directory)
    assert told is not None
    assert list(FS.stat_numbers(told)) == _by_itself(names, directory)


def test_no_names_have_no_numbers(directory: int) -> None:
    assert FS.stat_all([], dir_fd=directory) == b""
    assert list(FS.stat_numbers(b"")) == []


@pytest.mark.parametrize("count", [255, 256, 257, 700])
def test_any_number_of_names_is_answered(tmp_path: Path, directory: int, count: int) -> None:
    names = [b"%d" % number for number in range(count)]
    for number in range(count):
        (tmp_path / str(number)).write_bytes(bytes(number))
    told = FS.stat_all(names, dir_fd=directory)
    assert told is not None
    assert list(FS.stat_numbers(told)) == _by_itself(names, directory)


@pytest.mark.parametrize("place", [0, 1, 255, 256, 299])
def test_one_name_that_is_missing_leaves_no_answer(
    tmp_path: Path, directory: int, place: int
) -> None:
    names = [b"%d" % number for number in range(300)]
    for number in range(300):
        (tmp_path / str(number)).touch()
    assert FS.stat_all(names, dir_fd=directory) is not None
    (tmp_path / str(place)).unlink()
    assert FS.stat_all(names, dir_fd=directory) is None


def test_threads_do_not_get_each_others_answers(tmp_path: Path) -> None:
    turns = 200
    wrong: list[str] = []

    def ask(number: int) -> None:
        place = tmp_path / str(number)
        place.mkdir()
        names = [b"%d" % n for n in range(20)]
        for name in names:
            (place / os.fsdecode(name)).write_bytes(bytes(number))
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            expected = _by_itself(names, fd)
            for _ in range(turns):
                told = FS.stat_all(names, dir_fd=fd)
                if told is None or list(FS.stat_numbers(told)) != expected:
                    wrong.append(place.name)
        finally:
            os.close(fd)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("lacking", ["the call", "a layout", "the right layout"])
def test_a_system_that_answers_otherwise_is_not_asked(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    (tmp_path / "plain").touch()
    if lacking == "the call":
        monkeypatch.setattr(linux_calls, "_fstatat", None)
    elif lacking == "a layout":
        monkeypatch.setattr(linux_calls, "_layout", struct.Struct("<"))
    else:
        shifted = struct.Struct("<16xQI20xQ32xqqqq24x")
        monkeypatch.setattr(linux_calls, "_layout", shifted)
    monkeypatch.setattr(linux_calls, "_room", linux_calls._Room())
    assert FS.stat_all([b"plain"], dir_fd=directory) is None
    assert FS.stat_all([b"plain"], dir_fd=directory) is None

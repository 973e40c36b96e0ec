"""Where the two processes of a helped first save come near each other, or near a database."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.objects import writer
from holdfast.adapters.local.reading_process import ReadingProcess, reading_job
from holdfast.domain.ids import Digest
from holdfast.domain.settings.schema import make_settings
from holdfast.engine.scan import aided_walk
from holdfast.engine.scan.aided_walk import BackwardWalker, WalksMet
from holdfast.engine.scan.file_capture import FileCapture
from holdfast.engine.scan.policy import CapturePolicy
from holdfast.engine.scan.scan_meter import DiscardingWriter
from tests.support.aided_saves import OLD_ENOUGH_S, opened_new, read_all, require_as_if_alone, save
from tests.support.hostile_trees import fill, noise

pytestmark = [
    pytest.mark.requirement("PF-2", "CP-1", "RL-5"),
    pytest.mark.usefixtures("aided_from_the_first_file"),
]


class CountingStream(DiscardingWriter):
    """Counts the contents that it is given."""

    contents = 0

    def add(self, digest: Digest, data: bytes, *, similar_to: Digest | None = None) -> bool:
        self.contents += 1
        return super().add(digest, data, similar_to=similar_to)


@pytest.mark.parametrize("suffix", ["-journal", "-shm", "-wal"])
def test_what_belongs_to_a_database_is_found_where_rules_would_leave_it_out(
    tmp_path: Path, ahead: list[Callable[[], None]], adopted: list[bytes], suffix: str
) -> None:
    """Without its journal, a database in the middle of a transaction is lost."""
    root = tmp_path / "project"
    fill(root / ".gitignore", b"*" + os.fsencode(suffix))
    fill(root / "first", b"so that the help begins here")
    fill(root / "one/inside/data", b"SQLite format 3\0" + bytes(4080))
    fill(root / f"one/inside/data{suffix}", b"how to take it back")
    threading.Event().wait(OLD_ENOUGH_S)
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    assert b"one/inside" in adopted


def test_the_second_process_lists_the_uppermost_directory_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopted: list[bytes]
) -> None:
    """With one position in it for both, each would miss what the other has just read."""
    root = tmp_path / "project"
    fill(root / "first", b"so that the help begins here")
    fill(root / "one/file")
    begin = ReadingProcess.begin

    def begin_in_the_middle(self: ReadingProcess, root_fd: int, started_ns: int) -> None:
        with os.scandir(root_fd) as listed:
            next(listed)
            begin(self, root_fd, started_ns)
            read_all(self)

    monkeypatch.setattr(ReadingProcess, "begin", begin_in_the_middle)
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    assert adopted == [b"one"]


@pytest.mark.requirement("ST-1")
def test_contents_that_came_long_ago_are_not_stored_again(
    tmp_path: Path, ahead: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PREPARE_AT_OBJECTS", 4)
    root = tmp_path / "project"
    for number in range(40):
        fill(root / f"a/{number:02}", noise(20_000, number))
        fill(root / f"b/{number:02}", noise(20_000, number))
        fill(root / f"c/{number:02}", noise(20_000, number))
    threading.Event().wait(OLD_ENOUGH_S)
    monkeypatch.setattr(aided_walk, "_WORTH_AID_FILES", 41)  # when all contents are there
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
        assert opened.engine.vault.space.size_bytes() < 2 * 800_000


def test_the_second_process_stops_in_the_middle_of_a_directory(tmp_path: Path) -> None:
    """The first one waits for it, and has read the directory itself by then."""
    for number in range(10):
        fill(tmp_path / f"one/{number}")
    told: list[bytes] = []
    read = CountingStream()
    started_ns = time.time_ns()
    capture = FileCapture(LocalFilesystem(), read, started_ns)
    walker = BackwardWalker(
        LocalFilesystem(),
        capture,
        CapturePolicy(make_settings({}), tmp_path),
        started_ns,
        lambda path, state: told.append(path),
        lambda: read.contents >= 3,
    )
    root_fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with pytest.raises(WalksMet):
            walker.walk(root_fd, None, None)
    finally:
        os.close(root_fd)
    assert (read.contents, told) == (3, [])


@pytest.mark.parametrize(
    "refusal",
    [
        BlockingIOError(errno.EAGAIN, "too many processes"),
        OSError(errno.ENFILE, "too many files"),
        RuntimeError("can't fork at interpreter shutdown"),
    ],
)
def test_a_second_process_that_cannot_be_started_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adopted: list[bytes], refusal: Exception
) -> None:
    refused: list[object] = []

    def refuse(*given: object, **_: object) -> None:
        refused.append(given)
        raise refusal

    root = tmp_path / "project"
    fill(root / "first")
    fill(root / "one/file")
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    assert (len(refused), adopted) == (1, [])


def test_a_second_process_of_another_version_is_done_without(
    tmp_path: Path,
    ahead: list[Callable[[], None]],
    adopted: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that runs for days may find a later one in the place that it was started from."""
    take = ReadingProcess._take

    def take_from_another(self: ReadingProcess, kind: bytes, first: bytes, second: bytes) -> None:
        take(self, kind, first, second.replace(b"HFS1", b"HFS9"))

    monkeypatch.setattr(ReadingProcess, "_take", take_from_another)
    root = tmp_path / "project"
    fill(root / "first")
    fill(root / "one/file")
    with opened_new(root) as opened:
        require_as_if_alone(opened, save(opened))
    assert adopted == [b"one"]


def test_the_job_names_a_place_in_the_same_bytes_in_every_locale(tmp_path: Path) -> None:
    own_data = "Größe".encode() + b"\xff"
    job = json.dumps(reading_job(make_settings({}), tmp_path, own_data))
    program = "import json, sys\nfrom holdfast.adapters.local.reading_process import opened_job\n"
    program += "print(opened_job(json.loads(sys.argv[1]))[2].hex())"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    answer = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", program, job],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert answer.stdout.strip() == own_data.hex().encode()

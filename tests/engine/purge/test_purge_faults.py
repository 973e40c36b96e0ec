"""A purge that dies or fails anywhere leaves a sound store, and running it again finishes it."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.errors import HoldfastError, NotFound
from holdfast.engine.purge.plan import PurgeRequest
from holdfast.engine.purge.purge import purge
from holdfast.engine.repair.check import run_checks
from holdfast.engine.stored_objects import entry_at, list_files, read_content
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from holdfast.testing.faulty_filesystem import Fail, FaultyFilesystem, SqliteFaults
from tests.support.composition import composed
from tests.support.crash_server import CrashServer, Request
from tests.support.hostile_trees import fill
from tests.support.raw_search import places_of
from tests.support.strides import strides
from tests.support.tree_hash import describe

pytestmark = [pytest.mark.requirement("ST-5", "RL-1", "RL-3"), pytest.mark.in_memory]

SECRET = b"token-9f8e7d6c5b4a39281706abcdef"
VERSIONS = [SECRET, SECRET + b"\nmore-of-it-5a5a5a5a", b"another-secret-77aa55ee"]
NEEDLES = [SECRET, b"more-of-it-5a5a5a5a", b"another-secret-77aa55ee"]
PATH = b"config/.env"
REQUEST = PurgeRequest((PATH,))


@pytest.fixture(scope="module")
def server() -> Iterator[CrashServer]:
    with CrashServer() as server:
        yield server


class Secretive:
    """A workspace whose history has a secret, and what every checkpoint holds besides."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.states: dict[str, dict[bytes, bytes]] = {}
        text = [b"line %d\n" % n for n in range(200)]
        for number, secret in enumerate(VERSIONS):
            fill(workspace / "config/.env", secret)
            text[number * 9] = b"edited %d\n" % number
            fill(workspace / "text", b"".join(text))
            with composed(workspace) as opened:
                made = opened.save(f"version {number}").id
                self.store = opened.store.directory
            self.states[made] = {b"text": b"".join(text)}

    def has_the_secret(self) -> bool:
        """In all checkpoints or in none; everything else is as it was, and the store is sound."""
        with composed(self.workspace) as opened:
            vault = opened.engine.vault
            problems = list(run_checks(vault, data=True, progress=NoProgress()))
            assert problems == [], problems
            found = set()
            for row in all_checkpoints(vault.catalog):
                found.add(entry_at(vault.load_tree, row.tree, PATH) is not None)
                others = {
                    path: b"".join(read_content(vault.objects, entry))
                    for path, entry in list_files(vault.load_tree, row.tree)
                    if path != PATH
                }
                assert others == self.states[row.id]
        assert len(found) == 1, "some have it and some do not"
        return found.pop()

    def finish(self) -> None:
        with composed(self.workspace) as opened:
            try:
                assert purge(opened.engine, REQUEST).proof.traces == ()
            except NotFound:
                assert opened.store.purge_note.read() is None
        assert places_of(self.store, NEEDLES) == []
        assert not self.has_the_secret()
        assert not (self.store / "purge").exists()


def _purge(server: CrashServer, story: Secretive, **options: object) -> tuple[bool, str | None]:
    request = Request(str(story.workspace), "purge", None, (PATH.decode(),), **options)  # type: ignore[arg-type]
    answer = server.ask(request)
    assert answer.error is None, answer
    return answer.died, answer.made


@strides(7)
def test_a_purge_killed_at_any_call_is_finished_by_the_next(
    server: CrashServer, tmp_path: Path, stride: int
) -> None:
    counted = server.ask(
        Request(str(Secretive(tmp_path / "0").workspace), "purge", None, (PATH.decode(),))
    )
    assert counted.made == "proven"
    assert 20 < counted.calls < 300
    seen = set()
    for at in range(1, counted.calls + 1, stride):
        story = Secretive(tmp_path / str(at))
        before = describe(story.workspace)
        died, made = _purge(server, story, at=at)
        assert died or made == "proven"
        seen.add(story.has_the_secret())
        story.finish()
        assert describe(story.workspace) == before
    assert seen == {True, False}


def _killed_at_instants(
    server: CrashServer, tmp_path: Path, rng: random.Random, times: int
) -> None:
    for number in range(times):
        story = Secretive(tmp_path / f"instant-{number}")
        for _ in range(3):
            died, _ = _purge(server, story, after_s=rng.uniform(0.001, 0.05))
            if not died or not story.has_the_secret():  # it was done before its time had come
                break
        story.finish()


def test_a_purge_killed_at_random_instants_is_finished_by_the_next(
    server: CrashServer, tmp_path: Path, rng: random.Random
) -> None:
    _killed_at_instants(server, tmp_path, rng, 12)


@pytest.mark.torture
def test_a_purge_killed_at_many_instants_is_finished_by_the_next(
    server: CrashServer, tmp_path: Path, rng: random.Random, torture_seconds: float
) -> None:
    _killed_at_instants(server, tmp_path, rng, max(10, int(torture_seconds / 2)))


@pytest.mark.parametrize(
    ("code", "lasting", "step"),
    # What fails is the same for all; the others show that the kind of error does not matter.
    [
        (errno.EIO, False, 1),
        (errno.ENOSPC, False, 4),
        (errno.EIO, True, 3),
        (errno.ENOSPC, True, 3),
    ],
)
@strides(7)
def test_a_purge_on_a_failing_disk_says_so_and_is_finished_later(
    code: int, lasting: bool, step: int, tmp_path: Path, stride: int
) -> None:
    counted = FaultyFilesystem(LocalFilesystem(), {})
    with composed(Secretive(tmp_path / "0").workspace, fs=counted) as opened:
        purge(opened.engine, REQUEST)
    # A close that fails has closed anyway, and nothing can be done about it.
    numbers = [call.number for call in counted.calls if call.name != "close"]
    for number in numbers[:: step * stride]:
        story = Secretive(tmp_path / str(number))
        fs = FaultyFilesystem(LocalFilesystem(), {number: Fail(code, lasting=lasting)})
        try:
            with composed(story.workspace, fs=fs) as opened:
                purge(opened.engine, REQUEST)
        except HoldfastError:
            story.has_the_secret()
        story.finish()


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
@strides(13)
def test_a_purge_whose_databases_fail_at_any_write_is_finished_later(
    error: type[apsw.Error], tmp_path: Path, stride: int
) -> None:
    story = Secretive(tmp_path / "0")
    with SqliteFaults(0) as counting, composed(story.workspace) as opened:
        purge(opened.engine, REQUEST)
    assert counting.changes > 20
    for number in range(1, counting.changes + 1, stride):
        story = Secretive(tmp_path / str(number))
        try:
            with SqliteFaults(number, error), composed(story.workspace) as opened:
                purge(opened.engine, REQUEST)
        except HoldfastError:
            pass
        story.has_the_secret()
        story.finish()

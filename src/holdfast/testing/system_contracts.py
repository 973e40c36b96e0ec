"""The contracts of `holdfast.ports.system`, `.progress` and `.scan_hints`, as tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager, closing
from pathlib import Path

from holdfast.domain.ids import CHECKPOINT_ID_LENGTH
from holdfast.ports.objects import ObjectStore
from holdfast.ports.progress import TransferProgress
from holdfast.ports.scan_hints import ReadingAid, SecondReader, StatCache
from holdfast.ports.system import Clock, IdSource, Processes
from holdfast.testing.samples import incompressible, store_objects


class ClockContract:
    """Subclass it, and define which clock to test."""

    def clock(self) -> Clock:
        raise NotImplementedError

    def test_the_wall_clock_counts_nanoseconds_since_1970(self) -> None:
        assert self.clock().now_ns() > 1_500_000_000 * 1_000_000_000

    def test_the_monotonic_clock_never_goes_back(self) -> None:
        clock = self.clock()
        read = [clock.monotonic_ns() for _ in range(100)]
        assert read == sorted(read)


class IdSourceContract:
    """Subclass it, and define which source to test."""

    def ids(self) -> IdSource:
        raise NotImplementedError

    def test_each_id_is_new_lower_case_hexadecimal(self) -> None:
        ids = self.ids()
        made = {ids.new_id() for _ in range(1000)}
        assert len(made) == 1000
        assert all(len(one) == CHECKPOINT_ID_LENGTH for one in made)
        assert set("".join(made)) <= set("0123456789abcdef")


_SAY_WHO = "import os; print(os.getpid(), flush=True); input()"


_START_ONE = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import os; print(os.getpid(), flush=True); input()"])
"""


class ProcessesContract:
    """Subclass it, and define what to test."""

    def processes(self) -> Processes:
        raise NotImplementedError

    def test_this_process_has_one_identity_and_lives(self) -> None:
        processes = self.processes()
        own = processes.own_identity()
        assert own == processes.own_identity()
        assert own.partition(" ")[0] == str(os.getpid())
        assert processes.is_alive(own)

    def test_a_number_that_another_process_had_is_not_the_same_process(self) -> None:
        processes = self.processes()
        assert not processes.is_alive(f"{os.getpid()} at another time")

    def test_text_that_is_no_identity_matches_no_process(self) -> None:
        processes = self.processes()
        for text in ("", " ", "x", "-1 x", "0 x", f"{1 << 70} x"):
            assert not processes.is_alive(text)

    def test_the_program_above_a_process_lives_until_it_ends(self) -> None:
        processes = self.processes()
        child = subprocess.Popen(
            [sys.executable, "-c", _SAY_WHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert child.stdout is not None
            above = processes.agent_above(int(child.stdout.readline()))
            assert above == processes.own_identity()
        finally:
            child.communicate()
        assert processes.agent_above(child.pid) is None

    def test_only_that_very_process_is_asked_to_end(self) -> None:
        processes = self.processes()
        parent = subprocess.Popen(
            [sys.executable, "-c", _START_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert parent.stdout is not None
            identity = processes.agent_above(int(parent.stdout.readline()))
            assert identity is not None
            for other in (
                f"{parent.pid} at another time",
                str(parent.pid),
                "",
                "x",
                f"{1 << 70} x",
            ):
                assert processes.ask_to_end(other, wait_s=0) is None
            assert processes.is_alive(identity)
            assert processes.ask_to_end(identity, wait_s=30) is True
            assert processes.ask_to_end(identity, wait_s=0) is None
            assert parent.wait() == -signal.SIGTERM
        finally:
            parent.kill()
            parent.communicate()

    def test_a_process_does_not_end_itself_or_one_that_started_it(self) -> None:
        processes = self.processes()
        assert processes.ask_to_end(processes.own_identity(), wait_s=0) is None
        above = processes.agent_above(os.getpid())
        assert above is None or processes.ask_to_end(above, wait_s=0) is None


class ProgressContract:
    """Subclass it, and define what to test."""

    def progress(self) -> TransferProgress:
        raise NotImplementedError

    def test_no_report_raises_whatever_the_numbers_are(self) -> None:
        progress = self.progress()
        for done, total in ((0, None), (0, 0), (3, 10), (11, 10), (1 << 62, 1 << 62)):
            progress.advance("saving \N{SNOWMAN}\n", done, total)
            progress.transferred(done)
        progress.advance("", 0, None)


class SecondReaderContract:
    """Subclass it, and define how to open a new store and its second reader for a workspace."""

    def open_reader(
        self, workspace: Path
    ) -> AbstractContextManager[tuple[SecondReader, ObjectStore]]:
        raise NotImplementedError

    def begin(self, workspace: Path, aid: ReadingAid | None) -> ReadingAid:
        assert aid is not None
        root_fd = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY)
        try:
            aid.begin(root_fd, workspace.stat().st_mtime_ns)
        finally:
            os.close(root_fd)
        return aid

    def make_workspace(self, place: Path) -> Path:
        for number in range(40):
            (place / f"workspace/part{number % 4}").mkdir(parents=True, exist_ok=True)
            path = place / f"workspace/part{number % 4}/{number}"
            path.write_bytes(incompressible(str(number), 500))
        return place / "workspace"

    def test_a_store_with_contents_gets_no_aid(self, tmp_path: Path) -> None:
        with self.open_reader(self.make_workspace(tmp_path)) as (reader, store):
            store_objects(store, [b"known"])
            writer = store.writer()
            assert reader.aid_for(writer) is None
            writer.abandon()

    def test_contents_that_are_complete_are_sound(self, tmp_path: Path) -> None:
        workspace = self.make_workspace(tmp_path)
        with self.open_reader(workspace) as (reader, store):
            writer = store.writer()
            with closing(self.begin(workspace, reader.aid_for(writer))) as aid:
                aid.receive()
                assert aid.directory(b"never there") is None
                aid.stop()
                complete = aid.finish()
            if complete:
                writer.commit()
            else:
                writer.abandon()
            assert list(store.check(data=True)) == []

    def test_an_aid_that_is_closed_early_leaves_nothing(self, tmp_path: Path) -> None:
        workspace = self.make_workspace(tmp_path)
        with self.open_reader(workspace) as (reader, store):
            writer = store.writer()
            self.begin(workspace, reader.aid_for(writer)).close()
            writer.abandon()
            assert store.count() == 0


ENTRIES: dict[bytes, bytes | None] = {
    b"": b"root",
    b"a": b"entry of a",
    b"a/b": incompressible("a/b", 300),
    b"a.b": b"sorts between a and a/b",
    b"a0": b"sorts behind a/b",
    b"\xff\n": b"",
}


class StatCacheContract:
    """Subclass it, and define how to open a cache in a directory."""

    def open_cache(self, directory: Path) -> StatCache:
        raise NotImplementedError

    def test_a_new_cache_is_empty(self, tmp_path: Path) -> None:
        with closing(self.open_cache(tmp_path)) as cache:
            assert cache.load("1") == {}

    def test_entries_are_replaced_and_dropped_with_all_below_them(self, tmp_path: Path) -> None:
        with closing(self.open_cache(tmp_path)) as cache:
            cache.update("1", ENTRIES.items())
            assert cache.load("1") == ENTRIES
            cache.update("1", [(b"a", None), (b"", b"new root")])
            left = {path: entry for path, entry in ENTRIES.items() if path not in (b"a", b"a/b")}
            assert cache.load("1") == left | {b"": b"new root"}
            again: list[tuple[bytes, bytes | None]] = [(b"a", None), (b"a", b"made again")]
            cache.update("1", [*again, (b"never there", None)])
            assert cache.load("1")[b"a"] == b"made again"
            cache.update("1", [(b"", None)])
            assert cache.load("1") == {}

    def test_entries_of_another_generation_are_not_used(self, tmp_path: Path) -> None:
        with closing(self.open_cache(tmp_path)) as cache:
            cache.update("1", ENTRIES.items())
            assert cache.load("2") == {}
            assert cache.load("1") == ENTRIES
            cache.update("2", [(b"new", b"entry")])
            assert cache.load("2") == {b"new": b"entry"}
            assert cache.load("1") == {}

    def test_an_erased_cache_is_empty_and_can_be_used(self, tmp_path: Path) -> None:
        with closing(self.open_cache(tmp_path)) as cache:
            cache.update("1", ENTRIES.items())
            cache.erase()
            assert cache.load("1") == {}
            cache.update("1", [(b"a", b"again")])
            assert cache.load("1") == {b"a": b"again"}

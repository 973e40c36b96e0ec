"""The contracts of `holdfast.ports.store`, and of pack maintenance, as tests.

Damage is not covered: an adapter's own tests know which bytes to damage, and what remains.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Generic, TypeVar

import pytest

from holdfast.domain.errors import Busy, ObjectMissing
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import ObjectStore, PackMaintenance, all_digests
from holdfast.ports.store import (
    AgentStates,
    ExternalPaths,
    Hints,
    NamedPaths,
    NestedRepositories,
    PurgeNote,
    Quarantine,
    RestoreJournal,
    SpaceMeter,
    StoreFiles,
    WriterLock,
)
from holdfast.testing.samples import compressible, expect_error, store_objects

Store = TypeVar("Store", bound=ObjectStore)


class WriterLockContract:
    """Subclass it, and define how to open the same store, once or more often."""

    def open_lock(self, directory: Path) -> AbstractContextManager[WriterLock]:
        raise NotImplementedError

    def test_one_holder_at_a_time(self, tmp_path: Path) -> None:
        with self.open_lock(tmp_path) as one, self.open_lock(tmp_path) as other:
            with one.hold():
                with pytest.raises(Busy), other.hold(wait=False):
                    raise AssertionError
                with pytest.raises(Busy), other.hold(wait=False, read_only=True):
                    raise AssertionError
            with other.hold(wait=False):
                pass

    def test_the_holder_may_take_it_again(self, tmp_path: Path) -> None:
        with self.open_lock(tmp_path) as one, self.open_lock(tmp_path) as other, one.hold():
            with one.hold(), one.hold(read_only=True):
                pass
            with pytest.raises(Busy), other.hold(wait=False):
                raise AssertionError

    def test_another_thread_of_the_holder_waits(self, tmp_path: Path) -> None:
        with self.open_lock(tmp_path) as lock:
            refused: list[bool] = []

            def ask() -> None:
                try:
                    with lock.hold(wait=False):
                        refused.append(False)
                except Busy:
                    refused.append(True)

            with lock.hold():
                asking = threading.Thread(target=ask)
                asking.start()
                asking.join()
            assert refused == [True]

    def test_an_error_in_the_block_releases_it(self, tmp_path: Path) -> None:
        with self.open_lock(tmp_path) as one, self.open_lock(tmp_path) as other:
            with pytest.raises(ZeroDivisionError), one.hold():
                raise ZeroDivisionError
            with other.hold(wait=False):
                pass


class RestoreJournalContract:
    """Subclass it, and define how to open a store's journal."""

    def open_journal(self, directory: Path) -> AbstractContextManager[RestoreJournal]:
        raise NotImplementedError

    def test_the_journal_is_there_until_it_is_removed(self, tmp_path: Path) -> None:
        with self.open_journal(tmp_path) as journal:
            assert journal.read() is None
            journal.write(b"one")
            journal.write(b"two")
        with self.open_journal(tmp_path) as journal:
            assert journal.read() == b"two"
            journal.remove()
            journal.remove()
            assert journal.read() is None

    def test_a_journal_in_quarantine_is_not_read(self, tmp_path: Path) -> None:
        with self.open_journal(tmp_path) as journal:
            journal.write(b"unusable")
            journal.quarantine("today")
            assert journal.read() is None

    def test_the_note_is_not_the_journal(self, tmp_path: Path) -> None:
        with self.open_journal(tmp_path) as journal:
            journal.write_note(b"note")
            assert (journal.read(), journal.read_note()) == (None, b"note")
            journal.write(b"journal")
            journal.remove_note()
            journal.remove_note()
            assert (journal.read(), journal.read_note()) == (b"journal", None)

    def test_the_report_stays_until_it_is_removed(self, tmp_path: Path) -> None:
        with self.open_journal(tmp_path) as journal:
            assert journal.read_report() is None
            journal.write_report(b"report")
            journal.write(b"journal")
            journal.remove()
            assert (journal.read_note(), journal.read_report()) == (None, b"report")
            journal.remove_report()
            journal.remove_report()
            assert journal.read_report() is None


class SpaceMeterContract:
    """Subclass it, and define how to open a store's meter, and how to put a file there."""

    def open_meter(self, directory: Path) -> AbstractContextManager[SpaceMeter]:
        raise NotImplementedError

    def fill(self, meter: SpaceMeter, size_bytes: int) -> None:
        raise NotImplementedError

    def test_the_size_grows_with_what_is_there(self, tmp_path: Path) -> None:
        with self.open_meter(tmp_path) as meter:
            before = meter.size_bytes()
            self.fill(meter, 100_000)
            assert meter.size_bytes() >= before + 100_000
            assert meter.free_bytes() > 0
            assert meter.others_bytes(before) == 0

    def test_facts_about_upkeep_are_added_to(self, tmp_path: Path) -> None:
        with self.open_meter(tmp_path) as meter:
            assert meter.read_upkeep() == {}
            meter.note_upkeep(a=1, b=2)
            meter.note_upkeep(b=3)
        with self.open_meter(tmp_path) as meter:
            assert meter.read_upkeep() == {"a": 1, "b": 3}

    def test_a_store_in_order_has_no_debris(self, tmp_path: Path) -> None:
        with self.open_meter(tmp_path) as meter:
            meter.fold_logs()
            assert meter.remove_debris(1 << 62) == ()


class StoreFilesContract:
    """Subclass it, and define how to open a store's files."""

    def open_files(self, directory: Path) -> AbstractContextManager[StoreFiles]:
        raise NotImplementedError

    def test_a_new_store_is_in_order(self, tmp_path: Path) -> None:
        with self.open_files(tmp_path) as files:
            assert list(files.problems()) == []
            assert files.path_inside_workspace() is None
            files.erase_leftovers()


class PurgeNoteContract:
    """Subclass it, and define how to open a store's purge note."""

    def open_note(self, directory: Path) -> PurgeNote:
        raise NotImplementedError

    def test_the_purge_note_is_there_until_it_is_removed(self, tmp_path: Path) -> None:
        note = self.open_note(tmp_path)
        assert note.read() is None
        note.write(b"paths")
        note = self.open_note(tmp_path)
        assert note.read() == b"paths"
        note.remove()
        note.remove()
        assert note.read() is None


class HintsContract:
    """Subclass it, and define how to open a store's hints."""

    def open_hints(self, directory: Path) -> Hints:
        raise NotImplementedError

    def is_sealed(self) -> bool:
        return False

    def test_a_hint_is_read_as_it_was_last_written(self, tmp_path: Path) -> None:
        hints = self.open_hints(tmp_path)
        assert hints.read("main-branches") is None
        assert hints.write("main-branches", b"a hint")
        assert hints.write("main-branches", b"another hint")
        hints = self.open_hints(tmp_path)
        assert hints.read("main-branches") == b"another hint"
        assert hints.read("hook-events") is None
        shown = [path.read_bytes() for path in tmp_path.rglob("main-branches")]
        assert not (self.is_sealed() and b"another hint" in shown)


class NamedPathsContract:
    """Subclass it, and define how to open a store's named paths."""

    def open_named(self, directory: Path) -> NamedPaths:
        raise NotImplementedError

    def test_named_paths_keep_their_order_and_bytes(self, tmp_path: Path) -> None:
        named = self.open_named(tmp_path)
        assert named.load() == ()
        named.replace([b"b", b"a\xff", b"c"])
        named = self.open_named(tmp_path)
        assert named.load() == (b"b", b"a\xff", b"c")


class QuarantineContract:
    """Subclass it, and define how to open a store's quarantine."""

    def open_quarantine(self, directory: Path) -> Quarantine:
        raise NotImplementedError

    def is_sealed(self) -> bool:
        return False

    def test_every_occasion_has_a_directory_of_its_own(self, tmp_path: Path) -> None:
        quarantine = self.open_quarantine(tmp_path)
        first = quarantine.new_directory("today")
        assert first != quarantine.new_directory("today")
        quarantine.add_note("today", "note", b"content")
        (note,) = tmp_path.rglob("note")
        assert (note.read_bytes() != b"content") == self.is_sealed()


class AgentStatesContract:
    """Subclass it, and define how to open a store's agent states."""

    def open_states(self, directory: Path) -> AgentStates:
        raise NotImplementedError

    def test_states_are_there_until_they_are_replaced(self, tmp_path: Path) -> None:
        states = self.open_states(tmp_path)
        assert not states.exist()
        assert states.load() == {}
        states.replace({"s": {"agent": {"step": 1, "words": ["\u00e4", None]}}})
        states = self.open_states(tmp_path)
        assert states.exist()
        assert states.load() == {"s": {"agent": {"step": 1, "words": ["\u00e4", None]}}}
        states.replace({"t": {}})
        assert states.load() == {"t": {}}


class ExternalPathsContract:
    """Subclass it, and define how to open a store's external paths."""

    def open_paths(self, directory: Path) -> ExternalPaths:
        raise NotImplementedError

    def test_a_path_that_is_named_again_is_the_newest(self, tmp_path: Path) -> None:
        paths = self.open_paths(tmp_path)
        assert not paths.exist()
        assert paths.load() == []
        paths.add([b"/a", b"/b\xff", b"/a"])
        assert paths.load() == [b"/a", b"/b\xff"]
        paths.add([b"/a", b"/c"])
        paths = self.open_paths(tmp_path)
        assert paths.exist()
        assert paths.load() == [b"/b\xff", b"/a", b"/c"]

    def test_a_dropped_path_goes_with_all_below_it(self, tmp_path: Path) -> None:
        paths = self.open_paths(tmp_path)
        paths.add([b"/a", b"/a/b", b"/ab", b"/c"])
        paths.drop([b"/a", b"/never named"])
        assert paths.load() == [b"/ab", b"/c"]


class NestedRepositoriesContract:
    """Subclass it, and define how to open a store's nested repositories."""

    def open_repositories(self, directory: Path) -> NestedRepositories:
        raise NotImplementedError

    def test_each_repository_is_noted_once(self, tmp_path: Path) -> None:
        repositories = self.open_repositories(tmp_path)
        assert repositories.load() == []
        repositories.add([b"b/.git", b"a\xff/.git"])
        repositories.add([b"b/.git"])
        assert sorted(self.open_repositories(tmp_path).load()) == [b"a\xff/.git", b"b/.git"]


class PackMaintenanceContract(Generic[Store]):
    """Subclass it, and define how to open a store and its maintenance."""

    def open_store(self, place: Path) -> Store:
        """A writable store that keeps its files in the directory `place`."""
        raise NotImplementedError

    def maintenance_of(self, store: Store) -> PackMaintenance:
        raise NotImplementedError

    def test_a_sound_store_has_no_damaged_packs_to_mend(self, tmp_path: Path) -> None:
        contents = [b"a", compressible("b", 9000)]
        with closing(self.open_store(tmp_path)) as store:
            packs = self.maintenance_of(store)
            assert packs.damaged_packs() == {}
            digests = store_objects(store, contents)
            assert packs.damaged_packs() == {}
            assert packs.mend_packs("nothing") == 0
            assert [store.read(digest) for digest in digests] == contents

    def test_an_object_that_was_never_stored_has_no_stored_form(self, tmp_path: Path) -> None:
        with closing(self.open_store(tmp_path)) as store:
            store_objects(store, [b"present"])
            with expect_error(ObjectMissing):
                self.maintenance_of(store).stored_form(digest_of(b"absent"))

    def test_what_is_not_needed_is_erased_even_if_a_needed_version_was_stored_against_it(
        self, tmp_path: Path
    ) -> None:
        lines = compressible("source", 20_000).splitlines(keepends=True)
        with closing(self.open_store(tmp_path)) as store:
            packs = self.maintenance_of(store)
            versions: list[Digest] = []
            contents: dict[Digest, bytes] = {}
            for number in range(12):
                lines[number * 7] = b"edited in version %d\n" % number
                data = b"".join(lines)
                writer = store.writer()
                previous = versions[-1] if versions else None
                writer.add(digest_of(data), data, similar_to=previous)
                writer.commit()
                versions.append(digest_of(data))
                contents[versions[-1]] = data
            needed = set(versions[1::3])
            assert packs.stored_form(versions[1])
            generation = store.generation()
            packs.erase_all_but(needed)
            assert store.generation() != generation
            assert set(all_digests(store)) == needed
            assert all(store.read(digest) == contents[digest] for digest in needed)
            with expect_error(ObjectMissing):
                store.read(versions[0])
            assert list(store.check(data=True)) == []
            assert packs.erase_all_but(needed) == 0
            assert packs.erase_all_but(set()) > 0
            assert store.count() == 0
            store_objects(store, [b"and it goes on"])
            assert store.read(digest_of(b"and it goes on")) == b"and it goes on"

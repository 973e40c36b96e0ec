"""The contract of `holdfast.ports.objects`, as tests.

`ObjectStoreContract` is for any adapter, even one that forgets everything when it is closed.
`DurableObjectStoreContract` adds tests for one that keeps its content.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from holdfast.domain.errors import NoSpace, ObjectMissing
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import ObjectStore, WriteTotals, all_digests
from holdfast.testing.samples import (
    compressible,
    expect_error,
    incompressible,
    store_objects,
)


class ObjectStoreContract:
    """Subclass it, and define how to open a store."""

    def open_store(self, place: Path) -> ObjectStore:
        """A writable store that keeps its files in the directory `place`."""
        raise NotImplementedError

    def reopened(self, store: ObjectStore, place: Path) -> ObjectStore:
        """The same store with nothing left in memory, if it keeps content at all."""
        return store

    def test_committed_objects_of_every_size_read_back_exactly(self, tmp_path: Path) -> None:
        contents = [b"", b"\0", b"x" * 47, b"x" * 48, b"x" * 49, incompressible("small", 100)]
        contents += [compressible("page", 4096), incompressible("page", 4097)]
        contents += [compressible("large", 3 << 20), incompressible("large", (2 << 20) + 1)]
        with closing(self.open_store(tmp_path)) as store:
            digests = store_objects(store, contents)
            for digest, data in zip(digests, contents, strict=True):
                assert store.read(digest) == data
                assert store.read(digest) == data, "the second time as well"

    def test_an_object_that_was_never_stored_is_missing(self, tmp_path: Path) -> None:
        absent = digest_of(b"absent")
        with closing(self.open_store(tmp_path)) as store:
            store_objects(store, [b"present"])
            assert not store.contains(absent)
            with expect_error(ObjectMissing):
                store.read(absent)

    def test_objects_appear_with_the_commit_of_their_batch_and_not_before(
        self, tmp_path: Path
    ) -> None:
        data = compressible("later", 10_000)
        digest = digest_of(data)
        with closing(self.open_store(tmp_path)) as store:
            writer = store.writer()
            writer.add(digest, data)
            assert not store.contains(digest)
            assert store.count() == 0
            with expect_error(ObjectMissing):
                store.read(digest)
            writer.commit()
            assert store.contains(digest)
            assert store.read(digest) == data

    def test_add_tells_new_objects_from_known_ones(self, tmp_path: Path) -> None:
        with closing(self.open_store(tmp_path)) as store:
            store_objects(store, [b"known"])
            writer = store.writer()
            assert not writer.add(digest_of(b"known"), b"known")
            assert writer.add(digest_of(b"new"), b"new")
            assert not writer.add(digest_of(b"new"), b"new"), "known within the batch"
            writer.commit()
            assert store.count() == 2

    def test_totals_say_what_was_stored_and_what_was_there_already(self, tmp_path: Path) -> None:
        known, fresh = incompressible("known", 5000), incompressible("fresh", 7000)
        with closing(self.open_store(tmp_path)) as store:
            store_objects(store, [known])
            writer = store.writer()
            for data in (known, fresh, fresh):
                writer.add(digest_of(data), data)
            totals = writer.commit()
            assert totals.objects == 1
            assert totals.deduplicated_bytes == len(known) + len(fresh)
            assert len(fresh) <= totals.stored_bytes <= len(fresh) + 512

    def test_an_empty_batch_stores_nothing(self, tmp_path: Path) -> None:
        with closing(self.open_store(tmp_path)) as store:
            assert store.writer().commit() == WriteTotals()
            assert store.count() == 0

    def test_an_abandoned_batch_leaves_no_object_and_takes_no_space(self, tmp_path: Path) -> None:
        kept, dropped = incompressible("kept", 3000), incompressible("dropped", 3 << 20)
        with closing(self.open_store(tmp_path)) as store:
            (digest,) = store_objects(store, [kept])
            before = store.size_bytes()
            for _ in range(3):
                writer = store.writer()
                writer.add(digest_of(dropped), dropped)
                writer.add(digest, kept)
                writer.abandon()
            assert store.size_bytes() == before
            assert not store.contains(digest_of(dropped))
            assert store.read(digest) == kept
            store_objects(store, [dropped])
            assert store.read(digest_of(dropped)) == dropped

    def test_what_is_missing_can_be_asked_for_many_at_once(self, tmp_path: Path) -> None:
        contents = [b"%d" % number for number in range(500)]
        with closing(self.open_store(tmp_path)) as store:
            held = set(store_objects(store, contents[::2]))
            wanted = [digest_of(data) for data in contents]
            assert store.missing(wanted) == set(wanted) - held
            assert store.missing(iter(wanted * 2)) == set(wanted) - held
            assert store.missing([]) == set()

    def test_digests_lists_each_object_once(self, tmp_path: Path) -> None:
        with closing(self.open_store(tmp_path)) as store:
            held = store_objects(store, [b"a", b"b", b"c"]) + store_objects(store, [b"d"])
            store_objects(store, [b"a", b"d"])
            assert sorted(all_digests(store)) == sorted(held)
            assert store.count() == len(held)

    def test_digests_come_in_ascending_pages(self, tmp_path: Path) -> None:
        with closing(self.open_store(tmp_path)) as store:
            assert list(store.digests(limit=10)) == []
            held = sorted(store_objects(store, [b"%d" % number for number in range(25)]))
            assert list(store.digests(limit=10)) == held[:10]
            assert list(store.digests(after=held[9], limit=10)) == held[10:20]
            assert list(store.digests(after=held[19], limit=10)) == held[20:]
            assert list(store.digests(after=held[-1], limit=10)) == []

    def test_many_objects_are_read_at_once(self, tmp_path: Path) -> None:
        contents = [b"small %d" % number for number in range(300)]
        contents += [compressible(f"page {number}", 6000) for number in range(20)]
        contents += [incompressible("large", 3 << 20), b""]
        with closing(self.open_store(tmp_path)) as store:
            digests = [d for data in contents for d in store_objects(store, [data])]
            found = list(store.read_many(iter(digests[::-1])))
            assert len(found) == len(contents)
            assert dict(found) == dict(zip(digests, contents, strict=True))
            assert list(store.read_many([])) == []

    def test_one_of_many_that_is_missing_is_reported_or_left_out(self, tmp_path: Path) -> None:
        absent = digest_of(b"absent")
        with closing(self.open_store(tmp_path)) as store:
            first, second = store_objects(store, [b"first", b"second"])
            with expect_error(ObjectMissing):
                list(store.read_many([first, absent, second]))
            found = dict(store.read_many([first, absent, second], skip_unreadable=True))
            assert found == {first: b"first", second: b"second"}

    def test_size_grows_by_what_is_stored(self, tmp_path: Path) -> None:
        data = incompressible("big", 1 << 20)
        with closing(self.open_store(tmp_path)) as store:
            before = store.size_bytes()
            store_objects(store, [data])
            assert store.size_bytes() >= before + len(data)

    def test_versions_stored_as_similar_to_each_other_all_read_back(self, tmp_path: Path) -> None:
        lines = compressible("source", 20_000).splitlines(keepends=True)
        with closing(self.open_store(tmp_path)) as store:
            versions: list[bytes] = []
            previous: Digest | None = None
            for number in range(40):
                lines[number * 7] = b"edited in version %d\n" % number
                versions.append(b"".join(lines))
                writer = store.writer()
                writer.add(digest_of(versions[-1]), versions[-1], similar_to=previous)
                writer.commit()
                previous = digest_of(versions[-1])
            for data in versions:
                assert store.read(digest_of(data)) == data

    def test_a_hint_at_an_object_that_is_not_there_does_no_harm(self, tmp_path: Path) -> None:
        data, other = compressible("data", 5000), compressible("other", 5000)
        with closing(self.open_store(tmp_path)) as store:
            writer = store.writer()
            writer.add(digest_of(data), data, similar_to=digest_of(b"nowhere"))
            writer.add(digest_of(other), other, similar_to=digest_of(data))
            writer.commit()
            assert store.read(digest_of(data)) == data
            assert store.read(digest_of(other)) == other

    def test_a_hint_at_an_object_of_any_size_does_no_harm(self, tmp_path: Path) -> None:
        bases = [incompressible("base", size) for size in (0, 1, 7, 8, 9, 100, (2 << 20) + 1)]
        with closing(self.open_store(tmp_path)) as store:
            store_objects(store, bases)
            contents = [compressible("grown", 5000) + base for base in bases]
            writer = store.writer()
            for base, data in zip(bases, contents, strict=True):
                writer.add(digest_of(data), data, similar_to=digest_of(base))
            writer.commit()
            assert [store.read(digest_of(data)) for data in contents] == contents

    def test_a_batch_beyond_its_limit_is_refused_and_leaves_nothing(self, tmp_path: Path) -> None:
        small, large = incompressible("small", 1000), incompressible("large", 50_000)
        with closing(self.open_store(tmp_path)) as store:
            writer = store.writer(limit_bytes=10_000)
            writer.add(digest_of(small), small)
            with expect_error(NoSpace):
                writer.add(digest_of(large), large)
                writer.commit()
            writer.abandon()
            assert store.count() == 0
            store_objects(store, [small, large])
            assert store.count() == 2

    def test_objects_that_are_held_already_do_not_count_against_the_limit(
        self, tmp_path: Path
    ) -> None:
        known, fresh = incompressible("known", 50_000), incompressible("fresh", 1000)
        with closing(self.open_store(tmp_path)) as store:
            store_objects(store, [known])
            writer = store.writer(limit_bytes=10_000)
            writer.add(digest_of(known), known)
            writer.add(digest_of(fresh), fresh)
            assert writer.commit().objects == 1

    def test_a_sound_store_has_no_problems(self, tmp_path: Path) -> None:
        with closing(self.open_store(tmp_path)) as store:
            store_objects(store, [compressible("a", 9000), incompressible("b", 9000), b""])
            assert list(store.check(data=False)) == []
            assert list(store.check(data=True)) == []

    def test_what_is_needed_survives_when_the_rest_is_forgotten(self, tmp_path: Path) -> None:
        contents = [incompressible(f"object {number}", 5000) for number in range(20)]
        with closing(self.open_store(tmp_path)) as store:
            digests = store_objects(store, contents)
            before, generation = store.size_bytes(), store.generation()
            freed = store.retain_only(set(digests[:5]))
            assert [store.read(digest) for digest in digests[:5]] == contents[:5]
            assert store.missing(digests) <= set(digests[5:])
            assert freed >= 0
            if store.missing(digests):
                assert store.generation() != generation
                assert store.size_bytes() < before
            assert list(store.check(data=True)) == []
            store_objects(store, contents)
            assert [store.read(digest) for digest in digests] == contents

    def test_nothing_is_forgotten_when_everything_is_needed(self, tmp_path: Path) -> None:
        with closing(self.open_store(tmp_path)) as store:
            digests = store_objects(store, [b"a", b"b", incompressible("c", 5000)])
            generation = store.generation()
            assert store.retain_only(set(digests)) == 0
            assert store.missing(digests) == set()
            assert store.generation() == generation

    def test_a_version_that_is_needed_keeps_what_it_was_stored_against(
        self, tmp_path: Path
    ) -> None:
        base = incompressible("base", 20_000)
        versions = [base + b"version %d" % number for number in range(6)]
        others = [incompressible(f"other {number}", 20_000) for number in range(6)]
        with closing(self.open_store(tmp_path)) as store:
            previous: Digest | None = None
            for data, other in zip(versions, others, strict=True):
                writer = store.writer()
                writer.add(digest_of(data), data, similar_to=previous)
                writer.add(digest_of(other), other)
                writer.commit()
                previous = digest_of(data)
            store.retain_only({digest_of(versions[-1])})
        with closing(self.reopened(store, tmp_path)) as store:
            assert store.read(digest_of(versions[-1])) == versions[-1]
            assert list(store.check(data=True)) == []

    def test_threads_read_while_another_one_writes(self, tmp_path: Path) -> None:
        first = [compressible(f"first {number}", 3000) for number in range(20)]
        with closing(self.open_store(tmp_path)) as store:
            digests = store_objects(store, first)

            def read_all() -> bool:
                return all(
                    store.read(digest) == data and store.missing([digest]) == set()
                    for digest, data in zip(digests, first, strict=True)
                )

            with ThreadPoolExecutor(max_workers=4) as pool:
                reads = [pool.submit(read_all) for _ in range(16)]
                for number in range(10):
                    store_objects(store, [compressible(f"batch {number}", 3000)])
                assert all(read.result() for read in reads)
            assert store.count() == len(first) + 10


class DurableObjectStoreContract(ObjectStoreContract):
    """For stores that keep content: opening the same `place` again finds it."""

    def reopened(self, store: ObjectStore, place: Path) -> ObjectStore:
        return self.open_store(place)

    def test_committed_objects_are_there_after_reopening(self, tmp_path: Path) -> None:
        contents = [compressible("a", 9000), incompressible("b", 9000), b""]
        with closing(self.open_store(tmp_path)) as store:
            digests = store_objects(store, contents)
            size = store.size_bytes()
        with closing(self.open_store(tmp_path)) as store:
            assert [store.read(digest) for digest in digests] == contents
            assert sorted(all_digests(store)) == sorted(digests)
            assert store.size_bytes() == size
            assert not store.writer().add(digests[0], contents[0])

    def test_a_batch_that_was_never_finished_does_not_hinder_the_next(self, tmp_path: Path) -> None:
        kept, lost = incompressible("kept", 9000), incompressible("lost", 3 << 20)
        with closing(self.open_store(tmp_path)) as store:
            (digest,) = store_objects(store, [kept])
            store.writer().add(digest_of(lost), lost)  # and then the process ends
        with closing(self.open_store(tmp_path)) as store:
            assert store.read(digest) == kept
            store_objects(store, [lost, b"more"])
            assert store.read(digest_of(lost)) == lost
            assert store.read(digest_of(b"more")) == b"more"

    def test_each_commit_adds_to_what_earlier_ones_stored(self, tmp_path: Path) -> None:
        contents = [incompressible(f"commit {number}", 700) for number in range(12)]
        for data in contents:
            with closing(self.open_store(tmp_path)) as store:
                store_objects(store, [data])
        with closing(self.open_store(tmp_path)) as store:
            assert [store.read(digest_of(data)) for data in contents] == contents
            assert list(store.check(data=True)) == []

"""What every pack maintenance must do: the contract of `holdfast.ports.objects`, as tests.

Damage is no part of it: which bytes to damage, and what is then left, the tests of an adapter know.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.domain.errors import ObjectMissing
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.objects import ObjectStore, PackMaintenance, all_digests
from holdfast.testing.expectations import compressible, expect_error, store_objects

Store = TypeVar("Store", bound=ObjectStore)


class PackMaintenanceContract(Generic[Store]):
    """Subclass, say how to open a store and its maintenance, and every test below runs."""

    def open_store(self, place: Path) -> Store:
        """A store that keeps what it needs in the directory `place`, ready to be written to."""
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
            assert {digest: store.read(digest) for digest in needed} == {
                digest: contents[digest] for digest in needed
            }
            with expect_error(ObjectMissing):
                store.read(versions[0])
            assert list(store.check(data=True)) == []
            assert packs.erase_all_but(needed) == 0
            assert packs.erase_all_but(set()) > 0
            assert store.count() == 0
            store_objects(store, [b"and it goes on"])
            assert store.read(digest_of(b"and it goes on")) == b"and it goes on"

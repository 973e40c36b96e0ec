"""What every stat cache must do: the contract of `holdfast.ports.scan_hints`, as tests."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from holdfast.ports.scan_hints import StatCache
from holdfast.testing.expectations import incompressible

ENTRIES: dict[bytes, bytes | None] = {
    b"": b"root",
    b"a": b"entry of a",
    b"a/b": incompressible("a/b", 300),
    b"a.b": b"sorts between a and a/b",
    b"a0": b"sorts behind a/b",
    b"\xff\n": b"",
}


class StatCacheContract:
    """Subclass it, and say how a cache is opened in a directory."""

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

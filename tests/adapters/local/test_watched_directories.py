"""The directories under watch, as a tree: right whatever comes and goes, and small."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.local.inotify_watch import WatchedDirectories

pytestmark = pytest.mark.requirement("AU-6")

NAMES = st.sampled_from([b"a", b"b", b"c"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)


@given(st.lists(st.tuples(st.sampled_from(["enter", "replace"]), PATHS), max_size=40))
@settings(deadline=None)
def test_what_is_known_is_what_was_entered_and_has_not_gone(deeds: list[tuple[str, bytes]]) -> None:
    known = WatchedDirectories()
    expected = {b""}
    for deed, path in deeds:
        parts = path.split(b"/")
        if deed == "enter":
            assert known.node(path).path == path
            expected |= {b"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
            continue
        above = b"/".join(parts[:-1])
        if above not in expected:
            continue
        gone = known.replace(known.node(above), parts[-1])
        lost = {each for each in expected if each == path or each.startswith(path + b"/")}
        assert {node.path for node in gone.below()} == lost if gone is not None else not lost
        expected -= lost
    assert {node.path for node in known.root.below()} == expected


@given(st.sets(PATHS, max_size=20), st.sets(PATHS, max_size=20))
@settings(deadline=None)
def test_what_the_last_scan_did_not_see_is_taken_out(first: set[bytes], second: set[bytes]) -> None:
    known = WatchedDirectories()
    for scan, paths in ((1, first), (2, second)):
        known.root.scan = scan
        for path in paths:
            for depth, _ in enumerate(path.split(b"/"), 1):
                known.node(b"/".join(path.split(b"/")[:depth])).scan = scan
    before = {node.path for node in known.root.below()}
    gone = {node.path for node in known.sweep(2)}
    left = {node.path for node in known.root.below()}
    assert left | gone == before
    assert left == {b""} | {
        b"/".join(path.split(b"/")[:depth])
        for path in second
        for depth in range(1, path.count(b"/") + 2)
    }


@pytest.mark.parametrize(
    ("below", "most_bytes"), [(b"%d", 260), (b"%d/only", 160)], ids=["leaves", "only children"]
)
def test_a_directory_costs_little_while_it_is_watched(below: bytes, most_bytes: int) -> None:
    """With its name; the table of their common directory is part of it."""
    number = 2_000
    paths = [b"d/" + below % n for n in range(number)]
    nodes = number * (below.count(b"/") + 1)
    known = WatchedDirectories()
    tracemalloc.start()
    try:
        for path in paths:
            known.node(path)
        used_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used_bytes / nodes < most_bytes

"""The index is cut into parts: the newest are asked first, and older ones while there is effort."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest

from holdfast.adapters.local.search.expressions import Place, first_of_part
from holdfast.adapters.local.search.sqlite import SqliteSearchIndex
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.system import SystemClock
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.search.hits import Field
from holdfast.domain.search.query import parse_query
from holdfast.ports.search import CheckpointText, Cursors, Findings, IndexBatch, MessageText

pytestmark = pytest.mark.requirement("SE-8")

S = SessionId("s")
PARTS = 4
DAY_NS = 86_400 * 1_000_000_000


def _message(part: int, text: str, offset: int = 1) -> MessageText:
    sequence = first_of_part(Place.SAID, part) + offset
    return MessageText(sequence, S, sequence, (part + 1) * DAY_NS, {Field.MESSAGE: [text]})


def _checkpoint(part: int, text: str) -> CheckpointText:
    sequence = first_of_part(Place.KEPT, part) + 1
    texts = {Field.REASONING: [text]}
    owner = CheckpointId(f"c{part}")
    at_ns = (part + 1) * DAY_NS
    return CheckpointText(sequence, owner, S, Kind.MANUAL, at_ns, None, (), (), texts)


@contextmanager
def _index(
    directory: Path, *, clock_ns: Callable[[], int] | None = None
) -> Iterator[SqliteSearchIndex]:
    """Each part says "always"; only the oldest one says "once" and "oncePerRun"."""
    lock = StoreLock(directory / "lock", SystemClock(), purpose="search")
    clock = (lambda: 0) if clock_ns is None else clock_ns
    with closing(SqliteSearchIndex(directory / "search.db", lock, clock_ns=clock)) as index:
        batch = IndexBatch(
            Cursors(1, 1, "x", 1, 1, "y"),
            checkpoints=[_checkpoint(part, f"always kept{part}") for part in range(PARTS)],
            messages=[
                _message(part, f"always said{part}" + ("" if part else " once oncePerRun"))
                for part in range(PARTS)
            ],
        )
        with index.exclusive():
            index.ingest(batch)
        yield index


def _find(index: SqliteSearchIndex, query: str, session_id: SessionId | None = S) -> Findings:
    asked = parse_query(query, now_ns=100 * DAY_NS)
    return index.find(asked, session_id=session_id, limit=20)


def _days(answer: Findings) -> list[int]:
    return [one.at_ns // DAY_NS for one in answer.found if one.message_index is not None]


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("always", [4, 3, 2, 1]),
        ("alw*", [4, 3, 2, 1]),
        ("alway*", [4, 3, 2, 1]),
        ("said2", [3]),
        ("once", [1]),
        ("onceP*", [1]),
        ('"always said1"', [2]),
        ("always once", [1]),
    ],
)
def test_every_part_is_looked_at_as_long_as_there_is_effort(
    tmp_path: Path, query: str, days: list[int]
) -> None:
    with _index(tmp_path) as index:
        answer = _find(index, query)
    assert _days(answer) == days
    assert answer.back_to_ns is None


def test_a_query_that_costs_too_much_is_answered_from_the_newest_and_says_so(
    tmp_path: Path,
) -> None:
    with _index(tmp_path, clock_ns=count(step=DAY_NS).__next__) as index:
        answer = _find(index, "once")
        assert answer.found == []
        assert answer.back_to_ns == PARTS * DAY_NS
        older = _find(index, f"once before:1970-01-0{PARTS + 1}")
        assert older.back_to_ns == (PARTS - 1) * DAY_NS
        oldest = _find(index, "once before:1970-01-02T12:00:00Z")
        assert (_days(oldest), oldest.back_to_ns) == ([1], None)


def test_what_is_found_often_enough_needs_no_older_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.adapters.local.search.sqlite.RANKED_AT_MOST", 20)
    with _index(tmp_path, clock_ns=count(step=DAY_NS).__next__) as index:
        newest = [_message(PARTS, f"always again {n}", n) for n in range(20)]
        kept = [_checkpoint(PARTS, "always")]
        with index.exclusive():
            index.ingest(IndexBatch(Cursors(2, 2, "x", 2, 2, "y"), kept, newest))
        asked = parse_query("always is:message", now_ns=100 * DAY_NS)
        answer = index.find(asked, session_id=None, limit=20)
    assert answer.back_to_ns is None
    assert len(answer.found) == 20


def test_a_checkpoint_of_an_older_part_is_replaced_and_taken_out(tmp_path: Path) -> None:
    with _index(tmp_path) as index:
        with index.exclusive():
            index.ingest(IndexBatch(Cursors(2, 2, "x", 2, 2, "y"), [_checkpoint(1, "renamed")]))
        assert [one.checkpoint_id for one in _find(index, "renamed").found] == ["c1"]
        assert _find(index, "kept1").found == []
        with index.exclusive():
            gone = IndexBatch(Cursors(3, 3, "x", 3, 3, "y"), gone=[CheckpointId("c1")])
            index.ingest(gone)
        assert _find(index, "renamed").found == []
        assert [one.checkpoint_id for one in _find(index, "kept0").found] == ["c0"]


def test_an_index_of_an_earlier_format_makes_way(tmp_path: Path) -> None:
    import apsw

    from holdfast.ports.search import IndexLost

    with _index(tmp_path):
        pass
    with closing(apsw.Connection(str(tmp_path / "search.db"))) as db:
        db.execute("UPDATE facts SET value='1' WHERE key='format'")
    lock = StoreLock(tmp_path / "lock", SystemClock(), purpose="search")
    with closing(SqliteSearchIndex(tmp_path / "search.db", lock)) as index:
        with pytest.raises(IndexLost):
            index.cursors()
        assert index.cursors() == Cursors()
        assert _find(index, "always").found == ()
    assert {path.name for path in tmp_path.iterdir()} - {"lock"} <= {
        "search.db",
        "search.db-wal",
        "search.db-shm",
    }

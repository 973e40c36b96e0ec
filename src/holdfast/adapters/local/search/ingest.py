"""Adding texts to the search index, and removing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import apsw

from holdfast.adapters.local.search.expressions import (
    BLOCK_BITS,
    BOUNDARY,
    COLUMNS_OF,
    PLAIN,
    SCOPE,
    SPOKEN,
    WHOLE,
    Place,
    index_of,
    joined,
    kind_mark,
    make_index,
    part_of,
    session_mark,
    state_mark,
    stem_mark,
    tag_mark,
    title_mark,
)
from holdfast.domain.checkpoints import RECORD_KINDS
from holdfast.domain.ids import CheckpointId
from holdfast.domain.search.hits import LONGEST_TEXT, Field
from holdfast.domain.search.words import LONGEST_WORD, Name, names, stem
from holdfast.ports.search import CheckpointText, Cursors, IndexBatch, MessageText

_ERA = """
INSERT INTO eras VALUES (?,?,?,?) ON CONFLICT DO UPDATE
SET first_ns=min(first_ns, excluded.first_ns), last_ns=max(last_ns, excluded.last_ns)
"""


def write_batch(db: apsw.Connection, batch: IndexBatch) -> None:
    """Called inside the caller's transaction."""
    for checkpoint_id in (*batch.gone, *(text.id for text in batch.checkpoints)):
        _forget(db, checkpoint_id)
    for place, texts in ((Place.KEPT, batch.checkpoints), (Place.SAID, batch.messages)):
        for part in sorted({part_of(place, text.sequence) for text in texts}):
            db.execute(make_index(place, part))
    numbers = _session_numbers(db, chain(batch.checkpoints, batch.messages))
    for checkpoint in batch.checkpoints:
        _add_checkpoint(db, checkpoint, numbers[checkpoint.session_id])
    for message in batch.messages:
        _add_message(db, message, numbers[message.session_id])
    _widen_eras(db, Place.KEPT, batch.checkpoints)
    _widen_eras(db, Place.SAID, batch.messages)
    write_cursors(db, batch.cursors)


def write_cursors(db: apsw.Connection, cursors: Cursors) -> None:
    facts = ((name, str(getattr(cursors, name))) for name in Cursors.__dataclass_fields__)
    db.executemany("INSERT OR REPLACE INTO facts VALUES (?,?)", facts)


def read_cursors(db: apsw.Connection) -> Cursors:
    rows: list[Any] = db.execute("SELECT key, value FROM facts").fetchall()
    facts: dict[str, str] = dict(rows)
    if "checkpoint" not in facts:
        return Cursors()
    return Cursors(
        int(facts["checkpoint"]),
        int(facts["operation"]),
        facts["operation_mark"],
        int(facts["message"]),
        int(facts["annotation"]),
        facts["story"],
    )


def _forget(db: apsw.Connection, checkpoint_id: CheckpointId) -> None:
    for (sequence,) in db.execute("SELECT sequence FROM kept WHERE id=?", (checkpoint_id,)):
        _drop(db, Place.KEPT, sequence)
        db.execute("DELETE FROM kept WHERE sequence=?", (sequence,))


def _session_numbers(
    db: apsw.Connection, texts: Iterable[CheckpointText | MessageText]
) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for session_id in {text.session_id for text in texts}:
        db.execute("INSERT INTO sessions(id) VALUES (?) ON CONFLICT DO NOTHING", (session_id,))
        rows: list[Any] = db.execute(
            "SELECT number FROM sessions WHERE id=?", (session_id,)
        ).fetchall()
        numbers[session_id] = rows[0][0]
    return numbers


def _add_checkpoint(db: apsw.Connection, text: CheckpointText, session: int) -> None:
    # A restore record describes another moment than the one it was made at.
    spoken = None if text.kind in RECORD_KINDS else text.message_index
    row = (text.sequence, text.id, session, text.at_ns, spoken)
    db.execute("INSERT OR REPLACE INTO kept VALUES (?,?,?,?,?)", row)
    marks = [session_mark(session), kind_mark(text.kind), *map(tag_mark, text.tags)]
    marks += [state_mark(state) for state in text.states]
    if text.kind not in RECORD_KINDS:
        marks.append(PLAIN)
    for title in (*text.texts.get(Field.NAME, ()), *text.texts.get(Field.TAG, ())):
        marks.append(BOUNDARY)
        for name in names(title):
            marks += [title_mark(word.text) for word in name.words]
        marks += [title_mark(name.whole[:LONGEST_WORD]) for name in names(title) if name.whole]
        marks += [title_mark(mark) for name in names(title) for mark in _stem_marks(name)]
    _add(db, Place.KEPT, text, marks)


def _add_message(db: apsw.Connection, text: MessageText, session: int) -> None:
    row = (text.sequence, session, text.index, text.at_ns)
    db.execute("INSERT OR REPLACE INTO said VALUES (?,?,?,?)", row)
    _drop(db, Place.SAID, text.sequence)
    _add(db, Place.SAID, text, [session_mark(session), SPOKEN])


def _drop(db: apsw.Connection, place: Place, sequence: int) -> None:
    table = index_of(place, part_of(place, sequence))
    db.execute(f"DELETE FROM {table} WHERE rowid=?", (sequence,))


def _add(
    db: apsw.Connection, place: Place, text: CheckpointText | MessageText, marks: Sequence[str]
) -> None:
    columns = COLUMNS_OF[place]
    table = index_of(place, part_of(place, text.sequence))
    named = ("rowid", *columns, WHOLE, SCOPE)
    statement = f"INSERT INTO {table}({', '.join(named)}) VALUES ({', '.join('?' * len(named))})"
    db.execute(statement, _columns(text.sequence, columns, text.texts, marks))


def _columns(
    sequence: int,
    columns: Mapping[str, Field],
    texts: Mapping[Field, Sequence[str]],
    marks: Sequence[str],
) -> tuple[int | str, ...]:
    columns_of_words: list[str] = []
    whole: dict[str, None] = {}
    for field in columns.values():
        found = [list(names(text[:LONGEST_TEXT])) for text in texts.get(field, ())]
        whole |= {name.whole[:LONGEST_WORD]: None for text in found for name in text if name.whole}
        stems = dict.fromkeys(mark for text in found for name in text for mark in _stem_marks(name))
        said = [[word.text for name in text for word in name.words] for text in found]
        columns_of_words.append(joined([*said, list(stems)] if stems else said))
    return (sequence, *columns_of_words, " ".join(whole), " ".join(marks))


def _stem_marks(name: Name) -> Iterator[str]:
    """For words that are not their own stem, and for the name."""
    for word in name.words:
        if (found := stem(word.text)) != word.text:
            yield stem_mark(found)
    if name.whole is not None and name.stem != name.whole[:LONGEST_WORD]:
        yield stem_mark(name.stem)


def _widen_eras(
    db: apsw.Connection, place: Place, texts: Sequence[CheckpointText | MessageText]
) -> None:
    spans: dict[int, tuple[int, int]] = {}
    for text in texts:
        block = text.sequence >> BLOCK_BITS
        first, last = spans.get(block, (text.at_ns, text.at_ns))
        spans[block] = (min(first, text.at_ns), max(last, text.at_ns))
    db.executemany(_ERA, ((place.value, block, *span) for block, span in spans.items()))

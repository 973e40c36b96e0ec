"""The story in one SQLite file beside the catalog: the embedded default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.story.migrations import GENERATION, OF_THE_STORY
from holdfast.adapters.local.story.rows import (
    COLUMNS,
    INSERT,
    activity_from_row,
    activity_to_row,
    annotation_from_row,
    fact_of,
    has_source,
    message_count,
    message_from_row,
    message_to_row,
    next_number,
    query_number,
    require_sealed,
    rollback_from_row,
    rollback_to_row,
    sealed,
    set_fact,
)
from holdfast.adapters.local.story.story_file import StoryFile
from holdfast.adapters.local.system import RandomIds
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.paths import is_within
from holdfast.domain.purges import TextReplacement
from holdfast.domain.story import (
    Activity,
    ActivityStatus,
    Annotation,
    Marks,
    Message,
    NewActivity,
    Rollback,
    rolled_back_by,
)
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.story import NewMessage, no_annotation
from holdfast.ports.system import Clock

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher

_SELECT = {table: f"SELECT {columns} FROM {table} WHERE" for table, columns in COLUMNS.items()}
_NEWEST = (
    " AND revision=(SELECT max(revision) FROM annotations other"
    " WHERE other.session_id=annotations.session_id"
    " AND other.checkpoint=annotations.checkpoint AND other.number=annotations.number)"
)
_BEGUN = (
    " ORDER BY (SELECT min(sequence) FROM annotations other"
    " WHERE other.session_id=annotations.session_id"
    " AND other.checkpoint=annotations.checkpoint AND other.number=annotations.number), revision"
)

T = TypeVar("T")


class SqliteStory:
    """See `holdfast.ports.story.Story` for the contract of each member."""

    def __init__(self, file: StoryFile) -> None:
        self._file = file

    def add_messages(
        self,
        session_id: SessionId,
        new: Sequence[NewMessage],
        *,
        fact: tuple[str, str] | None = None,
    ) -> Sequence[Message]:
        added: list[Message] = []
        with self._file.writing() as db:
            count = message_count(db, session_id)
            number = next_number(db, "messages")
            for message in new:
                key = message.source_key
                if key is not None and has_source(db, session_id, key):
                    continue
                row = message_to_row(
                    number + len(added), session_id, count + len(added), message, key
                )
                db.execute(INSERT["messages"], row)
                added.append(message_from_row(row))
            if fact is not None:
                set_fact(db, session_id, *fact)
        return added

    def message_count(self, session_id: SessionId) -> int:
        with self._file.reading() as db:
            return 0 if db is None else message_count(db, session_id)

    def messages(
        self, session_id: SessionId, *, first: int = 0, limit: int | None = None
    ) -> Sequence[Message]:
        query = f"{_SELECT['messages']} session_id=? AND position>=? ORDER BY position LIMIT ?"
        rows = self._rows(query, session_id, max(first, 0), -1 if limit is None else limit)
        return [message for _, message in self._messages(rows)]

    def messages_after(self, sequence: int, limit: int) -> Sequence[tuple[int, Message]]:
        query = f"{_SELECT['messages']} sequence>? ORDER BY sequence LIMIT ?"
        return self._messages(self._rows(query, sequence, limit))

    def has_source(self, session_id: SessionId, source_key: str) -> bool:
        with self._file.reading() as db:
            return db is not None and has_source(db, session_id, source_key)

    def annotate(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId,
        text: str,
        *,
        author: str | None,
        at_ns: int,
        number: int | None = None,
    ) -> Annotation:
        with self._file.writing() as db:
            place = (session_id, checkpoint_id)
            if number is None:
                query = "SELECT max(number) FROM annotations WHERE session_id=? AND checkpoint=?"
                number, revision = (query_number(db, query, *place) or 0) + 1, 1
            else:
                query = (
                    "SELECT revision, author FROM annotations"
                    " WHERE session_id=? AND checkpoint=? AND number=?"
                    " ORDER BY revision DESC LIMIT 1"
                )
                newest = db.execute(query, (*place, number)).fetchone()
                if newest is None:
                    raise no_annotation(checkpoint_id, number)
                revision, author = newest[0] + 1, author or newest[1]
            values = (next_number(db, "annotations"), *place, number, revision, text, author, at_ns)
            row = sealed("annotations", values)
            db.execute(INSERT["annotations"], row)
        return annotation_from_row(row)

    def annotations(
        self,
        session_id: SessionId,
        checkpoint_id: CheckpointId | None = None,
        *,
        revisions: bool = False,
    ) -> Sequence[Annotation]:
        query = f"{_SELECT['annotations']} session_id=?"
        values: tuple[Any, ...] = (session_id,)
        if checkpoint_id is not None:
            query, values = f"{query} AND checkpoint=?", (session_id, checkpoint_id)
        query += ("" if revisions else _NEWEST) + _BEGUN
        return self._values(annotation_from_row, query, *values)

    def annotations_after(self, sequence: int, limit: int) -> Sequence[Annotation]:
        query = f"{_SELECT['annotations']} sequence>? ORDER BY sequence LIMIT ?"
        return self._values(annotation_from_row, query, sequence, limit)

    def rollbacks(self, session_id: SessionId) -> Sequence[Rollback]:
        query = f"{_SELECT['rollbacks']} session_id=? ORDER BY operation"
        return self._values(rollback_from_row, query, session_id)

    def add_rollback(self, session_id: SessionId, rollback: Rollback) -> bool:
        with self._file.writing() as db:
            newest = query_number(
                db, "SELECT max(operation) FROM rollbacks WHERE session_id=?", session_id
            )
            if newest is not None and newest >= rollback.operation:
                return False
            values = (next_number(db, "rollbacks"), *rollback_to_row(session_id, rollback))
            db.execute(INSERT["rollbacks"], sealed("rollbacks", values))
            return True

    def fact(self, session_id: SessionId, name: str) -> str | None:
        with self._file.reading() as db:
            return None if db is None else self._proven(lambda: fact_of(db, session_id, name))

    def set_fact(
        self, session_id: SessionId, name: str, value: str, *, expected: str | None
    ) -> bool:
        with self._file.writing() as db:
            if self._proven(lambda: fact_of(db, session_id, name)) != expected:
                return False
            set_fact(db, session_id, name, value)
            return True

    def begin(self, new: NewActivity) -> Activity:
        with self._file.writing() as db:
            row = sealed(
                "activities", (next_number(db, "activities", "number"), *activity_to_row(new))
            )
            db.execute(INSERT["activities"], row)
        return activity_from_row(row)

    def settle(
        self,
        number: int,
        status: ActivityStatus,
        *,
        at_ns: int,
        outcome: str | None = None,
        diff: bytes | None = None,
    ) -> Activity | None:
        with self._file.writing() as db:
            query = f"{_SELECT['activities']} number=?"
            rows = db.execute(query, (number,)).fetchall()
            found = self._proven(lambda: [activity_from_row(row) for row in rows])
            if not found or found[0].status is not ActivityStatus.OPEN:
                return None
            ended = sealed("activities", (*rows[0][:9], status.value, at_ns, outcome, diff))
            db.execute(
                "UPDATE activities SET status=?, ended_at_ns=?, outcome=?, diff=?, checksum=?"
                " WHERE number=?",
                (*ended[9:], number),
            )
        return activity_from_row(ended)

    def record_edit(self, new: NewActivity, *, at_ns: int, diff: bytes) -> Activity:
        with self._file.writing() as db:
            number = next_number(db, "activities", "number")
            begun = activity_to_row(new)[:-4]
            ended = (ActivityStatus.KEPT.value, at_ns, None, diff)
            row = sealed("activities", (number, *begun, *ended))
            db.execute(INSERT["activities"], row)
        return activity_from_row(row)

    def activity(self, number: int) -> Activity | None:
        found = self._values(activity_from_row, f"{_SELECT['activities']} number=?", number)
        return found[0] if found else None

    def activities(
        self, session_id: SessionId, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Activity]:
        query = f"{_SELECT['activities']} session_id=? AND number>? ORDER BY number LIMIT ?"
        most = -1 if limit is None else limit
        return self._values(activity_from_row, query, session_id, after, most)

    def activities_after(self, number: int, limit: int) -> Sequence[Activity]:
        query = f"{_SELECT['activities']} number>? ORDER BY number LIMIT ?"
        return self._values(activity_from_row, query, number, limit)

    def open_activities(self, session_id: SessionId | None = None) -> Sequence[Activity]:
        query = f"{_SELECT['activities']} status='open'"
        values = () if session_id is None else (session_id,)
        query += "" if session_id is None else " AND session_id=?"
        return self._values(activity_from_row, f"{query} ORDER BY number", *values)

    def diff_of(self, number: int) -> bytes | None:
        rows = self._rows(f"{_SELECT['activities']} number=?", number)
        return self._proven(lambda: require_sealed("activities", rows[0])[12]) if rows else None

    def import_rows(self, messages: Sequence[Message], annotations: Sequence[Annotation]) -> int:
        from holdfast.adapters.local.story.rows import import_rows  # only imports need it

        with self._file.writing() as db:
            return import_rows(db, messages, annotations)

    def named_checkpoints(self) -> set[CheckpointId]:
        query = "SELECT checkpoint FROM annotations UNION SELECT checkpoint FROM activities"
        return {CheckpointId(checkpoint) for (checkpoint,) in self._rows(query)}

    def forget_checkpoints(self, checkpoint_ids: Sequence[CheckpointId]) -> int:
        gone = 0
        for start in range(0, len(checkpoint_ids), 500):
            some = checkpoint_ids[start : start + 500]
            marks = ",".join("?" * len(some))
            both = ("annotations", "activities")
            gone += self._remove(both, f"checkpoint IN ({marks})", *some)
        return gone

    def forget_session(self, session_id: SessionId) -> int:
        tables = ("messages", "annotations", "activities", "rollbacks", "facts")
        return self._remove(tables, "session_id=?", session_id)

    def forget_paths(self, paths: Sequence[bytes]) -> int:
        gone = 0
        for found in self._values(activity_from_row, f"{_SELECT['activities']} paths<>'[]'"):
            if any(is_within(path, removed) for path in found.paths for removed in paths):
                gone += self._remove(("activities",), "number=?", found.number)
        return gone

    def replace_text(
        self, replacement: TextReplacement, diff: Callable[[bytes], bytes]
    ) -> Mapping[str, int]:
        from holdfast.adapters.local.story.rows import (
            replace_text,  # only a purge needs it
        )

        with self._file.writing() as db:
            changed = self._proven(lambda: replace_text(db, replacement, diff))
            if changed:
                set_fact(db, SessionId(OF_THE_STORY), GENERATION, RandomIds.new_id())
        return changed

    def generation(self) -> str:
        return self.fact(SessionId(OF_THE_STORY), GENERATION) or ""

    def erase_traces(self) -> None:
        self._file.erase_traces()

    def size_bytes(self) -> int:
        return self._file.size_bytes()

    def check(self) -> Iterator[str]:
        from holdfast.adapters.local.verify import story_problems  # late: rarely needed

        yield from story_problems(self._file)

    def close(self) -> None:
        self._file.close()

    def _remove(self, tables: Sequence[str], where: str, *values: Any) -> int:
        """Permanently, and from all of them at once: an index must not return purged texts, and no
        reader must find half of what belongs together."""
        asked = (f"SELECT 1 FROM {table} WHERE {where} LIMIT 1" for table in tables)
        if not any(self._rows(sql, *values) for sql in asked):
            return 0
        gone = 0
        with self._file.writing() as db:
            for table in tables:
                db.execute(f"DELETE FROM {table} WHERE {where}", values)
                gone += db.changes()
            set_fact(db, SessionId(OF_THE_STORY), GENERATION, RandomIds.new_id())
        return gone

    def _messages(self, rows: list[Any]) -> list[tuple[int, Message]]:
        marks: dict[str, Marks] = {}
        for session_id in {row[1] for row in rows}:
            history = self.rollbacks(session_id)
            marks[session_id] = history[-1].after if history else ()
        return self._proven(lambda: [(row[0], _message(row, marks[row[1]])) for row in rows])

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._file.reading() as db:
            if db is None:
                return []
            try:
                return db.execute(query, values).fetchall()
            except UnicodeEncodeError:
                return []  # no row contains text that cannot be stored

    def _values(
        self, from_row: Callable[[tuple[Any, ...]], T], query: str, *values: Any
    ) -> list[T]:
        rows = self._rows(query, *values)
        return self._proven(lambda: [from_row(row) for row in rows])

    @staticmethod
    def _proven(read: Callable[[], T]) -> T:
        try:
            return read()
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreDamaged(
                f"a row of story.db cannot be read: {error}", hint="run: holdfast repair"
            ) from error


def _message(row: tuple[Any, ...], marks: Marks) -> Message:
    return message_from_row(require_sealed("messages", row), rolled_back_by(marks, row[2]))


def open_story(
    fs: Filesystem,
    layout: StoreLayout,
    clock: Clock,
    lock_timeout_s: Callable[[], float],
    *,
    patience_s: Callable[[], float | None] = lambda: None,
    cipher: Cipher | None = None,
) -> SqliteStory:
    lock = StoreLock(layout.story_lock, clock, purpose="holdfast")
    return SqliteStory(
        StoryFile(
            fs,
            layout.story,
            lock,
            lock_timeout_s=lock_timeout_s,
            patience_s=patience_s,
            cipher=cipher,
        )
    )

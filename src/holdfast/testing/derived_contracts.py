"""The contracts of `holdfast.ports.search` and `holdfast.ports.event_log`, as tests: both are
derived from catalog and story."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from holdfast.domain.checkpoints import Kind
from holdfast.domain.events import Event, EventType, NewEvent
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.search.hits import Field
from holdfast.domain.search.query import State, parse_query
from holdfast.ports.event_log import EventCursors, EventLog
from holdfast.ports.search import (
    CheckpointText,
    Cursors,
    Findings,
    IndexBatch,
    MessageText,
    SearchIndex,
)

ONE, TWO = SessionId("one"), SessionId("two")


def checkpoint_text(
    sequence: int,
    reasoning: str,
    *,
    name: str | None = None,
    session_id: SessionId = ONE,
    kind: Kind = Kind.MANUAL,
    tags: tuple[str, ...] = (),
    paths: Sequence[str] = (),
    states: Sequence[State] = (),
    message_index: int | None = None,
) -> CheckpointText:
    texts: dict[Field, Sequence[str]] = {Field.REASONING: [reasoning], Field.PATH: paths}
    texts[Field.TAG] = tags
    if name is not None:
        texts[Field.NAME] = [name]
    return CheckpointText(
        sequence,
        CheckpointId(f"c{sequence}"),
        session_id,
        kind,
        sequence * 1000,
        message_index,
        tags,
        states,
        texts,
    )


def message_text(sequence: int, content: str, *, index: int = 0) -> MessageText:
    return MessageText(sequence, ONE, index, sequence * 1000, {Field.MESSAGE: [content]})


class SearchIndexContract:
    """Subclass it, and define how to open an index in a directory."""

    def open_index(self, directory: Path) -> SearchIndex:
        raise NotImplementedError

    def filled(
        self,
        directory: Path,
        checkpoints: Sequence[CheckpointText] = (),
        messages: Sequence[MessageText] = (),
    ) -> SearchIndex:
        index = self.open_index(directory)
        with index.exclusive():
            index.ingest(IndexBatch(Cursors(1), checkpoints, messages))
        return index

    def test_a_new_index_is_empty_and_was_read_nowhere(self, tmp_path: Path) -> None:
        with closing(self.open_index(tmp_path)) as index:
            assert index.cursors() == Cursors()
            assert ids(find(index, "anything")) == []
            assert list(index.near_words("anything", 3)) == []

    def test_where_sources_were_read_to_is_kept_with_the_texts(self, tmp_path: Path) -> None:
        reached = Cursors(5, 6, "mark", 7, 8, "story")
        with closing(self.open_index(tmp_path)) as index:
            with index.exclusive():
                index.ingest(IndexBatch(reached, [checkpoint_text(5, "login")]))
            assert index.cursors() == reached
            assert ids(find(index, "login")) == ["c5"]

    def test_all_words_are_wanted_in_any_form_and_case(self, tmp_path: Path) -> None:
        texts = [
            checkpoint_text(1, "Refreshing the tokens of a login"),
            checkpoint_text(2, "a login without any"),
            checkpoint_text(3, "refreshTokens in code"),
        ]
        with closing(self.filled(tmp_path, texts)) as index:
            assert sorted(ids(find(index, "refresh token"))) == ["c1", "c3"]
            assert sorted(ids(find(index, "LOGIN"))) == ["c1", "c2"]
            assert ids(find(index, "login nowhere")) == []
            assert ids(find(index, '"a login"')) == ["c2", "c1"]
            assert ids(find(index, '"refresh"')) == ["c3"], "a quoted word has no other forms"
            assert sorted(ids(find(index, "refr*"))) == ["c1", "c3"]
            assert ids(find(index, "refreshtok*")) == ["c3"]

    def test_the_better_match_comes_first_and_the_newer_of_equals(self, tmp_path: Path) -> None:
        texts = [
            checkpoint_text(1, "nothing of it", name="login"),
            checkpoint_text(2, "about login"),
            checkpoint_text(3, "about login"),
        ]
        with closing(self.filled(tmp_path, texts)) as index:
            assert ids(find(index, "login")) == ["c1", "c3", "c2"]
            assert ids(find(index, "login", limit=1)) == ["c1"]
            assert find(index, "login").found[0].fields == {Field.NAME}

    def test_filters_narrow_what_is_found(self, tmp_path: Path) -> None:
        texts = [
            checkpoint_text(1, "work", kind=Kind.TOOL, tags=("Release-1",)),
            checkpoint_text(2, "work", session_id=TWO, paths=["src/login.py"]),
            checkpoint_text(3, "work", name="before merge", states=[State.NAMED]),
        ]
        with closing(self.filled(tmp_path, texts)) as index:
            assert ids(find(index, "work kind:tool")) == ["c1"]
            assert ids(find(index, "tag:release-1")) == ["c1"]
            assert ids(find(index, "tag:rel*")) == ["c1"]
            assert ids(find(index, "tag:rel")) == []
            assert ids(find(index, "path:login")) == ["c2"]
            assert find(index, "path:login").found[0].fields == {Field.PATH}
            assert ids(find(index, "session:two")) == ["c2"]
            assert ids(find(index, "name:merge")) == ["c3"]
            assert ids(find(index, "is:named")) == ["c3"]
            assert ids(find(index, "kind:tool kind:message work")) == ["c1"]
            assert ids(find(index, "work", session_id=TWO)) == ["c2"]
            assert ids(find(index, "session:two", session_id=ONE)) == []
            assert ids(find(index, "...")) == []

    def test_records_are_found_when_they_are_asked_for(self, tmp_path: Path) -> None:
        texts = [
            checkpoint_text(1, "plain"),
            checkpoint_text(2, "plain", kind=Kind.SAFETY, paths=["lost.txt"]),
            checkpoint_text(3, "plain", kind=Kind.RESTORE, states=[State.ANNOTATED]),
        ]
        with closing(self.filled(tmp_path, texts)) as index:
            assert sorted(ids(find(index, "plain"))) == ["c1", "c3"]
            assert ids(find(index, "kind:safety")) == ["c2"]
            assert ids(find(index, "path:lost.txt")) == ["c2"]

    def test_a_message_leads_to_the_checkpoint_it_was_said_at(self, tmp_path: Path) -> None:
        texts = [
            checkpoint_text(1, "first", message_index=2),
            checkpoint_text(2, "second", message_index=4),
        ]
        messages = [
            message_text(1, "hello", index=0),
            message_text(2, "why not", index=3),
            message_text(3, "so be it", index=9),
        ]
        with closing(self.filled(tmp_path, texts, messages)) as index:
            for words, checkpoint, position in [
                ("hello", "c1", 0),
                ('"why not"', "c1", 3),
                ('"so be it"', "c2", 9),
            ]:
                (found,) = find(index, words).found
                assert (found.checkpoint_id, found.message_index) == (checkpoint, position)
                assert found.fields == {Field.MESSAGE}
            assert len(find(index, "is:message").found) == 3
            assert ids(find(index, "hello kind:manual")) == []

    def test_a_checkpoint_is_replaced_and_goes(self, tmp_path: Path) -> None:
        texts = [checkpoint_text(1, "before"), checkpoint_text(2, "stays")]
        with closing(self.filled(tmp_path, texts)) as index:
            with index.exclusive():
                index.ingest(IndexBatch(Cursors(2), [checkpoint_text(1, "afterwards")]))
            assert ids(find(index, "before")) == []
            assert ids(find(index, "afterwards")) == ["c1"]
            with index.exclusive():
                index.ingest(IndexBatch(Cursors(3), gone=[CheckpointId("c1")]))
            assert ids(find(index, "afterwards")) == []
            assert ids(find(index, "stays")) == ["c2"]

    def test_it_tells_whether_anything_would_be_found(self, tmp_path: Path) -> None:
        texts = [checkpoint_text(1, "refresh the login"), checkpoint_text(2, "another login")]
        with closing(self.filled(tmp_path, texts)) as index:
            for query in ("login", "refresh login", "log*", "refresh another", "zyzzyva", "..."):
                parsed = parse_query(query, now_ns=0)
                found = bool(index.find(parsed, session_id=None, limit=5).found)
                assert index.has(parsed, session_id=None) == found, query
            assert not index.has(parse_query("login", now_ns=0), session_id=SessionId("none"))

    def test_words_that_are_near_are_proposed(self, tmp_path: Path) -> None:
        texts = [checkpoint_text(1, "refresh the login"), checkpoint_text(2, "another")]
        with closing(self.filled(tmp_path, texts)) as index:
            assert list(index.near_words("logni", 3)) == ["login"]
            assert list(index.near_words("refesh", 1)) == ["refresh"]

    def test_recreated_and_erased_it_is_empty(self, tmp_path: Path) -> None:
        with closing(self.filled(tmp_path, [checkpoint_text(1, "login")])) as index:
            with index.exclusive():
                index.recreate()
            assert index.cursors() == Cursors()
            assert ids(find(index, "login")) == []
            with index.exclusive():
                index.ingest(IndexBatch(Cursors(1), [checkpoint_text(1, "login")]))
            index.erase()
            assert ids(find(index, "login")) == []


def find(
    index: SearchIndex, words: str, *, session_id: SessionId | None = None, limit: int = 10
) -> Findings:
    return index.find(parse_query(words, now_ns=0), session_id=session_id, limit=limit)


def ids(findings: Findings) -> list[str]:
    return [str(found.checkpoint_id) for found in findings.found]


def new_event(number: int) -> NewEvent:
    return NewEvent(
        f"key {number}",
        EventType.CHECKPOINT,
        number,
        SessionId("one"),
        CheckpointId(f"{number:020x}"),
        {"operation": number, "kind": "checkpoint"},
    )


class EventLogContract:
    """Subclass it, and define how to open a log in a directory."""

    def open_log(self, directory: Path) -> EventLog:
        raise NotImplementedError

    def test_a_new_log_is_empty_and_was_read_nowhere(self, tmp_path: Path) -> None:
        with closing(self.open_log(tmp_path)) as log:
            assert list(log.after(0, 10)) == []
            assert log.cursors() == EventCursors()
            assert log.newest() > 0

    def test_events_get_rising_numbers_and_say_what_was_given(self, tmp_path: Path) -> None:
        with closing(self.open_log(tmp_path)) as log:
            below = log.newest()
            with log.exclusive():
                log.ingest([new_event(1), new_event(2)], EventCursors(operation=2))
                log.ingest([NewEvent("x", EventType.SETTINGS, 3)], EventCursors(operation=3))
            first, second, third = found = log.after(0, 10)
            assert below < first.number < second.number < third.number == log.newest()
            given = new_event(1)
            assert first == Event(
                first.number,
                given.type,
                given.at_ns,
                given.session_id,
                given.checkpoint,
                given.about,
            )
            assert (third.session_id, third.checkpoint, third.about) == (None, None, {})
            assert list(log.after(first.number, 1)) == [second]
            assert list(log.after(first.number, 10)) == list(found)[1:]
            assert list(log.after(third.number, 10)) == []

    def test_a_key_is_recorded_once(self, tmp_path: Path) -> None:
        with closing(self.open_log(tmp_path)) as log:
            with log.exclusive():
                log.ingest([new_event(1)], EventCursors(operation=1))
                log.ingest([new_event(1), new_event(2)], EventCursors(operation=2))
            assert [event.at_ns for event in log.after(0, 10)] == [1, 2]

    def test_where_sources_were_read_to_is_kept(self, tmp_path: Path) -> None:
        reached = EventCursors(
            5, "mark", "story", 6, 7, 8, (1, 2), {"one": "active"}, {"budget": "abc"}
        )
        with closing(self.open_log(tmp_path)) as log:
            with log.exclusive():
                log.ingest([], reached)
            assert log.cursors() == reached

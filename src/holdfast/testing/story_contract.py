"""The contract of `holdfast.ports.story`, as tests.

`StoryContract` is for any adapter, even one that forgets everything when it is closed.
`DurableStoryContract` adds tests for one that keeps its rows.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from holdfast.domain.errors import NotFound
from holdfast.domain.purges import TextReplacement
from holdfast.domain.story import (
    Activity,
    ActivityKind,
    ActivityStatus,
    Annotation,
    Message,
    NewActivity,
    Role,
    Rollback,
    Stretch,
)
from holdfast.ports.story import NewMessage, Story
from holdfast.testing.samples import ONE, TWO, checkpoint_id, expect_error


class StoryOpening:
    """How the tests open a story. The suites build on this; adapters subclass those."""

    def open_story(self, place: Path) -> Story:
        """A story that keeps its files in the directory `place`."""
        raise NotImplementedError


def said(text: str, *, key: str | None = None, role: Role = Role.USER) -> NewMessage:
    return NewMessage(role, text, at_ns=len(text), source_key=key)


def edit(number: int = 1, *paths: bytes) -> NewActivity:
    return NewActivity(
        ONE, ActivityKind.EDIT, "why", checkpoint_id(number), 5, "process 1", paths, 3
    )


class StoryContract(StoryOpening):
    """Subclass it, and define how to open a story."""

    def test_a_fresh_story_is_empty_and_sound(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            assert everything(story) == {}
            assert story.message_count(ONE) == 0
            assert story.fact(ONE, "name") is None
            assert story.activity(1) is None
            assert story.diff_of(1) is None
            assert not story.has_source(ONE, "key")
            assert list(story.check()) == []

    def test_messages_get_the_next_index_of_their_session(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            story.add_messages(ONE, [said("a"), said("b")])
            story.add_messages(TWO, [said("other")])
            (third,) = story.add_messages(ONE, [said("c")])
            assert third.index == 2
            assert [m.content for m in story.messages(ONE)] == ["a", "b", "c"]
            assert [m.index for m in story.messages(ONE)] == [0, 1, 2]
            assert [m.content for m in story.messages(ONE, first=1, limit=1)] == ["b"]
            assert story.message_count(ONE) == 3
            assert story.message_count(TWO) == 1

    def test_every_field_of_a_message_comes_back(self, tmp_path: Path) -> None:
        new = NewMessage(
            Role.ASSISTANT,
            "text: \N{SNOWMAN}\n\t'quotes' and \x00 too",
            -5,
            ("Bash(ls)", {"name": "Edit", "input": {"path": "ä", "n": [1, None, 2.5]}}),
            "source:1",
        )
        with closing(self.open_story(tmp_path)) as story:
            (added,) = story.add_messages(ONE, [new])
            assert list(story.messages(ONE)) == [added]
            assert added == Message(
                ONE, 0, Role.ASSISTANT, new.content, -5, new.tool_calls, "source:1"
            )

    def test_a_message_that_the_session_has_is_not_added_again(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            story.add_messages(ONE, [said("a", key="1"), said("b", key="2")])
            added = story.add_messages(
                ONE, [said("b", key="2"), said("c", key="3"), said("c again", key="3"), said("d")]
            )
            assert [(m.index, m.content) for m in added] == [(2, "c"), (3, "d")]
            story.add_messages(TWO, [said("a", key="1")])
            assert story.message_count(TWO) == 1
            assert story.has_source(ONE, "3")
            assert not story.has_source(TWO, "3")

    def test_a_fact_is_noted_together_with_messages(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            story.add_messages(ONE, [said("a")], fact=("cursor", "10"))
            story.add_messages(ONE, [], fact=("cursor", "20"))
            assert story.fact(ONE, "cursor") == "20"
            assert story.fact(TWO, "cursor") is None

    def test_an_index_catches_up_with_all_sessions_in_order(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            for session_id, text in ((ONE, "a"), (TWO, "b"), (ONE, "c")):
                story.add_messages(session_id, [said(text)])
            first = story.messages_after(0, 2)
            assert [m.content for _, m in first] == ["a", "b"]
            rest = story.messages_after(first[-1][0], 10)
            assert [(m.session_id, m.index, m.content) for _, m in rest] == [(ONE, 1, "c")]
            numbers = [number for number, _ in [*first, *rest]]
            assert numbers == sorted(set(numbers))

    def test_an_edited_annotation_keeps_its_earlier_words(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            for text in ("first", "second"):
                story.annotate(ONE, checkpoint_id(1), text, author="ada", at_ns=1)
            other = story.annotate(ONE, checkpoint_id(2), "elsewhere", author=None, at_ns=2)
            edited = story.annotate(
                ONE, checkpoint_id(1), "first, better", author=None, at_ns=3, number=1
            )
            assert (edited.number, edited.revision, other.number) == (1, 2, 1)
            assert edited.author == "ada"
            here = story.annotations(ONE, checkpoint_id(1))
            assert [(a.number, a.text) for a in here] == [(1, "first, better"), (2, "second")]
            texts = [a.text for a in story.annotations(ONE, checkpoint_id(1), revisions=True)]
            assert texts == ["first", "first, better", "second"]
            assert len(story.annotations(ONE)) == 3
            assert list(story.annotations(TWO)) == []
            after = story.annotations_after(other.sequence, 10)
            assert list(after) == [edited]
            story.annotate(ONE, checkpoint_id(1), "by another", author="bo", at_ns=4, number=1)
            history = story.annotations(ONE, checkpoint_id(1), revisions=True)
            assert [a.author for a in history] == ["ada", "ada", "bo", "ada"]

    def test_an_annotation_that_is_not_there_cannot_be_edited(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            story.annotate(ONE, checkpoint_id(1), "text", author=None, at_ns=1)
            for place in ((ONE, checkpoint_id(1), 2), (ONE, checkpoint_id(2), 1)):
                with expect_error(NotFound):
                    story.annotate(place[0], place[1], "x", author=None, at_ns=2, number=place[2])
            assert [a.text for a in story.annotations(ONE, revisions=True)] == ["text"]

    def test_messages_show_what_rolled_them_back(self, tmp_path: Path) -> None:
        one = Rollback(7, 3, 3, (), (Stretch(2, 3, 7),))
        two = Rollback(9, 4, 4, one.after, ())
        with closing(self.open_story(tmp_path)) as story:
            story.add_messages(ONE, [said(text) for text in "abcde"])
            story.add_messages(TWO, [said(text) for text in "abcde"])
            assert story.add_rollback(ONE, one)
            marks = [m.rolled_back_by for m in story.messages(ONE)]
            assert marks == [None, None, 7, 7, None]
            assert {m.rolled_back_by for m in story.messages(TWO)} == {None}
            assert {m.rolled_back_by for _, m in story.messages_after(0, 99)} == {None, 7}
            assert not story.add_rollback(ONE, one)
            assert story.add_rollback(ONE, two)
            assert not story.add_rollback(ONE, replace(two, operation=8))
            assert list(story.rollbacks(ONE)) == [one, two]
            assert {m.rolled_back_by for m in story.messages(ONE)} == {None}

    def test_of_two_who_note_a_fact_the_one_with_the_right_expectation_wins(
        self, tmp_path: Path
    ) -> None:
        with closing(self.open_story(tmp_path)) as story:
            assert not story.set_fact(ONE, "told", "1", expected="0")
            assert story.set_fact(ONE, "told", "1", expected=None)
            assert not story.set_fact(ONE, "told", "2", expected=None)
            assert story.set_fact(ONE, "told", "2", expected="1")
            assert story.fact(ONE, "told") == "2"

    def test_an_activity_is_open_until_it_is_settled_once(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            first = story.begin(edit(1, b"a.py", b"\xff"))
            second = story.begin(replace(edit(2), session_id=TWO, kind=ActivityKind.ATTEMPT))
            assert first == Activity(
                first.number,
                ONE,
                ActivityKind.EDIT,
                "why",
                checkpoint_id(1),
                5,
                "process 1",
                (b"a.py", b"\xff"),
                3,
            )
            assert list(story.open_activities()) == [first, second]
            assert list(story.open_activities(ONE)) == [first]
            ended = story.settle(
                first.number, ActivityStatus.KEPT, at_ns=9, outcome="done", diff=b"\0diff"
            )
            assert ended is not None
            assert ended == replace(
                first, status=ActivityStatus.KEPT, ended_at_ns=9, outcome="done", has_diff=True
            )
            assert story.settle(first.number, ActivityStatus.PUT_BACK, at_ns=10) is None
            assert story.settle(999, ActivityStatus.KEPT, at_ns=10) is None
            assert story.activity(first.number) == ended
            assert story.diff_of(first.number) == b"\0diff"
            assert story.diff_of(second.number) is None
            assert list(story.open_activities()) == [second]
            assert list(story.activities(ONE)) == [ended]
            assert list(story.activities(ONE, after=ended.number)) == []
            assert list(story.activities_after(0, 10)) == [ended, second]
            assert list(story.activities_after(0, 1)) == [ended]
            assert list(story.activities_after(ended.number, 10)) == [second]

    def test_an_edit_that_is_over_is_recorded_at_once(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            recorded = story.record_edit(edit(1, b"a.py"), at_ns=11, diff=b"new")
            assert (recorded.status, recorded.ended_at_ns) == (ActivityStatus.KEPT, 11)
            assert story.activity(recorded.number) == recorded
            assert story.diff_of(recorded.number) == b"new"
            assert not story.open_activities()

    def test_what_belongs_to_a_removed_checkpoint_goes_and_the_generation_changes(
        self, tmp_path: Path
    ) -> None:
        with closing(self.open_story(tmp_path)) as story:
            for number in (1, 2):
                story.annotate(ONE, checkpoint_id(number), "text", author=None, at_ns=1)
                story.begin(edit(number))
            story.add_messages(ONE, [said("a")])
            before = story.generation()
            assert story.named_checkpoints() == {checkpoint_id(1), checkpoint_id(2)}
            assert story.forget_checkpoints([checkpoint_id(9)]) == 0
            assert story.generation() == before
            assert story.forget_checkpoints([checkpoint_id(1)]) == 2
            assert story.generation() != before
            assert [a.checkpoint_id for a in story.annotations(ONE)] == [checkpoint_id(2)]
            assert [a.checkpoint for a in story.activities(ONE)] == [checkpoint_id(2)]
            assert story.message_count(ONE) == 1
            story.erase_traces()
            assert len(story.annotations(ONE)) == 1

    def test_everything_of_a_removed_session_goes_and_nothing_of_another(
        self, tmp_path: Path
    ) -> None:
        with closing(self.open_story(tmp_path)) as story:
            for session in (ONE, TWO):
                story.add_messages(session, [said("a")])
                story.annotate(session, checkpoint_id(1), "text", author=None, at_ns=1)
                story.set_fact(session, "told", "7", expected=None)
            story.begin(edit(1))
            before = story.generation()
            assert story.forget_session(ONE) == 4
            assert story.generation() != before
            assert story.message_count(ONE) == 0
            assert list(story.annotations(ONE)) == []
            assert list(story.activities(ONE)) == []
            assert story.fact(ONE, "told") is None
            assert story.message_count(TWO) == 1
            assert len(story.annotations(TWO)) == 1
            assert story.fact(TWO, "told") == "7"

    def test_what_is_about_a_removed_path_goes(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            story.begin(edit(1, b"src/a.py"))
            kept = story.begin(edit(1, b"srcs/a.py"))
            before = story.generation()
            assert story.forget_paths([b"src"]) == 1
            assert list(story.activities(ONE)) == [kept]
            assert story.generation() != before

    def test_a_text_is_replaced_in_everything_that_was_said(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            story.add_messages(ONE, [said("the wish"), said("other", key="1")])
            story.annotate(ONE, checkpoint_id(1), "a wish", author="wish", at_ns=1)
            number = story.begin(edit(1, b"wish.py")).number
            story.settle(number, ActivityStatus.KEPT, at_ns=9, diff=b"wish", outcome="a wish")
            before = story.generation()
            replacement = TextReplacement("wish")
            changed = story.replace_text(replacement, lambda diff: diff.replace(b"wish", b"-"))
            assert changed == {"messages": 1, "annotations": 1, "edits": 1}
            assert [m.content for m in story.messages(ONE)] == ["the [purged]", "other"]
            assert story.has_source(ONE, "1")
            (note,) = story.annotations(ONE)
            assert (note.text, note.author) == ("a [purged]", "[purged]")
            (done,) = story.activities(ONE)
            assert (done.outcome, done.paths) == ("a [purged]", (b"[purged].py",))
            assert story.diff_of(number) == b"-"
            assert story.generation() != before
            assert list(story.check()) == []
            now = story.generation()
            assert story.replace_text(replacement, lambda diff: diff) == {}
            assert story.generation() == now

    def test_numbers_are_not_given_out_twice(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            first = story.annotate(ONE, checkpoint_id(1), "text", author=None, at_ns=1)
            begun = story.begin(edit(1))
            story.forget_checkpoints([checkpoint_id(1)])
            again = story.annotate(ONE, checkpoint_id(2), "text", author=None, at_ns=1)
            assert again.sequence > first.sequence
            assert story.begin(edit(2)).number > begun.number

    def test_rows_of_another_story_are_imported_once(self, tmp_path: Path) -> None:
        messages = [
            Message(ONE, index, Role.USER, f"m{index}", index, (), f"k{index}", 7)
            for index in range(3)
        ]
        notes = [
            Annotation(99, ONE, checkpoint_id(1), 1, revision, f"r{revision}", "ada", 5)
            for revision in (1, 2)
        ]
        with closing(self.open_story(tmp_path)) as story:
            assert story.import_rows(messages[:1], notes[:1]) == 2
            assert story.import_rows(messages, notes) == 3
            assert story.import_rows(messages, notes) == 0
            assert list(story.messages(ONE)) == [replace(m, rolled_back_by=None) for m in messages]
            found = story.annotations(ONE, revisions=True)
            assert [a.text for a in found] == ["r1", "r2"]
            gap = replace(messages[2], index=9)
            assert story.import_rows([gap], []) == 0


class DurableStoryContract(StoryContract):
    """For stories that keep rows: opening the same `place` again finds them."""

    def test_everything_is_there_after_reopening(self, tmp_path: Path) -> None:
        with closing(self.open_story(tmp_path)) as story:
            story.add_messages(ONE, [said("a", key="1"), said("b")], fact=("cursor", "2"))
            story.annotate(ONE, checkpoint_id(1), "text", author="ada", at_ns=1)
            number = story.begin(edit(1, b"a.py")).number
            story.settle(number, ActivityStatus.KEPT, at_ns=9, diff=b"diff")
            story.add_rollback(ONE, Rollback(7, 3, 1, (), (Stretch(1, 1, 7),)))
            before, generation = everything(story), story.generation()
        with closing(self.open_story(tmp_path)) as story:
            assert everything(story) == before
            assert story.generation() == generation
            assert story.fact(ONE, "cursor") == "2"
            assert story.diff_of(number) == b"diff"
            assert list(story.check()) == []

    def test_another_connection_sees_what_was_written(self, tmp_path: Path) -> None:
        with (
            closing(self.open_story(tmp_path)) as writing,
            closing(self.open_story(tmp_path)) as reading,
        ):
            assert reading.message_count(ONE) == 0
            writing.add_messages(ONE, [said("a")])
            assert reading.message_count(ONE) == 1
            reading.add_messages(ONE, [said("b")])
            assert [m.content for m in writing.messages(ONE)] == ["a", "b"]


def everything(story: Story) -> dict[str, object]:
    """All rows of the sample sessions; empty for an empty story."""
    counts = {
        "messages": list(story.messages_after(0, 1000)),
        "annotations": list(story.annotations_after(0, 1000)),
        "activities": [a for s in (ONE, TWO) for a in story.activities(s)],
        "rollbacks": [r for s in (ONE, TWO) for r in story.rollbacks(s)],
    }
    return {name: found for name, found in counts.items() if found}

"""Annotations of checkpoints: written, edited, listed, and refused when they cannot be kept."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import NotFound, UsageError
from tests.support.session_states import line_end

pytestmark = [pytest.mark.requirement("SE-7"), pytest.mark.both_stores]


@pytest.fixture
def session(tmp_path: Path) -> SessionCheckpointer:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("0")
    session = SessionCheckpointer(workspace, "s")
    session.checkpoint("one", name="first")
    return session


def test_an_edited_note_keeps_its_earlier_revisions(session: SessionCheckpointer) -> None:
    with session:
        noted = session.annotate("first", "tests pass", "ada")
        session.annotate("HEAD", "reviewed")
        edited = session.annotate("first", "only unit tests pass", number=noted.number)
        assert (edited.number, edited.revision, edited.author) == (1, 2, "ada")
        assert [a.text for a in session.annotations("first")] == [
            "only unit tests pass",
            "reviewed",
        ]
        every = session.annotations("first", revisions=True)
        assert [(a.text, a.author) for a in every] == [
            ("tests pass", "ada"),
            ("only unit tests pass", "ada"),
            ("reviewed", None),
        ]
        again = session.annotate("first", "none pass", "bo", number=noted.number)
        assert again.author == "bo"
        assert [a.author for a in session.annotations("first", revisions=True)] == [
            "ada",
            "ada",
            "bo",
            None,
        ]
        session.checkpoint("two")
        assert session.annotations("HEAD") == []
        assert len(session.annotations()) == 2


def test_records_of_restores_can_be_annotated_too(session: SessionCheckpointer) -> None:
    with session:
        (session.workspace / "a.txt").write_text("1")
        outcome = session.restore_checkpoint("first")
        session.annotate(outcome.safety, "the version with the bug")
        assert [a.text for a in session.annotations(outcome.safety)] == ["the version with the bug"]


@pytest.mark.parametrize(
    ("reference", "text", "author", "number", "error", "words"),
    [
        ("nothing", "x", None, None, NotFound, "no checkpoint 'nothing'"),
        ("first", "x", None, 7, NotFound, "no annotation 7"),
        ("first", "x", None, 1 << 80, UsageError, "must be 1 or more"),
        ("first", "  ", None, None, UsageError, "empty"),
        ("first", "ä" * 60_000, None, None, UsageError, "120000 bytes; the limit is 100000"),
        ("first", "x" * 1_000_000, None, None, UsageError, "1000000 bytes"),
        ("first", "x", "two\nlines", None, UsageError, "author"),
        ("first", "x", "x" * 201, None, UsageError, "201 characters"),
        ("first", "x", None, 0, UsageError, "annotation number 0 must be 1"),
        ("first", "x", None, "1", UsageError, "annotation number '1' must be 1"),
        ("first", "x", None, True, UsageError, "annotation number True must be 1"),
        ("first", "x", None, 1 << 70, UsageError, "must be 1 or more"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(
    session: SessionCheckpointer,
    reference: str,
    text: str,
    author: str | None,
    number: int | None,
    error: type[Exception],
    words: str,
) -> None:
    with session:
        with pytest.raises(error, match=words):
            session.annotate(reference, text, author, number=number)
        assert session.annotations() == []


def test_a_number_of_another_type_leaves_the_story_whole(session: SessionCheckpointer) -> None:
    with session:
        session.annotate("first", "tests pass")
        with pytest.raises(UsageError):
            session.annotate("first", "edited", number="1")  # type: ignore[arg-type]
        assert [a.text for a in session.annotations()] == ["tests pass"]


class Team(StrEnum):
    ADA = "ada"


@pytest.mark.requirement("SE-2")
def test_members_of_enumerations_are_taken_as_the_texts_they_are(
    session: SessionCheckpointer,
) -> None:
    with SessionCheckpointer(session.workspace, Team.ADA) as hers:
        hers.checkpoint("one")
        hers.add_message("user", "hello")
        hers.annotate("HEAD", "tests pass", Team.ADA)
        assert [m.content for m in hers.messages()] == ["hello"]
        assert [a.author for a in hers.annotations()] == ["ada"]
    with SessionCheckpointer(session.workspace, "ada") as again:
        assert [m.content for m in again.messages()] == ["hello"]


def test_of_another_session_nothing_can_be_annotated(session: SessionCheckpointer) -> None:
    with session, SessionCheckpointer(session.workspace, "t") as other:
        head = str(line_end(session))
        with pytest.raises(NotFound):
            other.annotate(head, "x")

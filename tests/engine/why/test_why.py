"""`why`: what a session tells about the lines of a file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import Kind
from holdfast.domain.diff.line_origins import Explanation, LineState
from holdfast.domain.errors import (
    LimitReached,
    NotFound,
    ObjectMissing,
    Refused,
    UnknownReference,
    UsageError,
)
from holdfast.domain.ids import SessionId
from holdfast.domain.paths import InvalidPath
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.why import versions
from holdfast.engine.why.why import why
from tests.behind_the_api import engine_of
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("BX-1"), pytest.mark.both_stores]


def _told(explanation: Explanation) -> list[tuple[bytes, str | None]]:
    """Each line with the reason of the checkpoint that has it first."""
    return [
        (line.text, line.origin.checkpoint.intent.reasoning if line.origin.checkpoint else None)
        for line in explanation.lines
    ]


def test_each_line_names_its_checkpoint(session: SessionCheckpointer, app: Path) -> None:
    first = session.checkpoint("how it began")
    fill(app, b"one\ntwo\n")
    second = session.checkpoint("add two", tool_calls=["Edit"], name="second")
    fill(app, b"zero\none\ntwo\n")
    told = session.why("src/app.py")
    assert (told.path, told.of, told.total_lines, told.warnings) == (b"src/app.py", None, 3, ())
    assert [line.number for line in told.lines] == [1, 2, 3]
    unsaved, initial, written = (line.origin for line in told.lines)
    assert (unsaved.state, unsaved.checkpoint) == (LineState.UNSAVED, None)
    assert initial.state is LineState.INITIAL
    assert initial.checkpoint is not None
    assert initial.checkpoint.id == first
    assert written.state is LineState.WRITTEN
    assert written.checkpoint is not None
    assert (written.checkpoint.id, written.before) == (second, first)
    assert (written.reasoning, written.tool_calls) == ("add two", ("Edit",))


def test_one_line_or_an_older_state_can_be_asked_for(
    session: SessionCheckpointer, app: Path
) -> None:
    first = session.checkpoint("how it began")
    fill(app, b"two\none")
    session.checkpoint("add two")
    assert _told(session.why("src/app.py", 1)) == [(b"two", "add two")]
    assert _told(session.why("src/app.py", 2)) == [(b"one", "how it began")]
    old = session.why("src/app.py", ref="HEAD~1")
    assert (_told(old), old.of) == ([(b"one", "how it began")], first)
    app.unlink()
    assert _told(session.why("src/app.py", 1, "HEAD")) == [(b"two", "add two")]


def test_restores_are_looked_through(session: SessionCheckpointer, app: Path) -> None:
    session.checkpoint("how it began", name="good")
    fill(app, b"one\ntwo\n")
    session.checkpoint("add two", name="two")
    fill(app, b"broken\n")
    session.checkpoint("break it")
    session.restore("two")
    both = [(b"one", "how it began"), (b"two", "add two")]
    assert _told(session.why("src/app.py")) == both
    session.undo()
    assert _told(session.why("src/app.py")) == [(b"broken", "break it")]
    session.restore_checkpoint("two", ["src/app.py"])
    assert _told(session.why("src/app.py")) == both
    fill(app, b"one\ntwo\nthree\n")
    session.checkpoint("go on")
    assert _told(session.why("src/app.py")) == [*both, (b"three", "go on")]


def test_what_only_a_safety_checkpoint_had_is_known_after_an_undo(
    session: SessionCheckpointer, app: Path
) -> None:
    session.checkpoint("how it began", name="good")
    fill(app, b"one\nunsaved\n")
    session.restore("good")
    session.undo()
    _, line = session.why("src/app.py").lines
    assert line.origin.checkpoint is not None
    assert line.origin.checkpoint.kind is Kind.SAFETY


def test_a_file_that_was_renamed_keeps_its_story(
    session: SessionCheckpointer, workspace: Path, app: Path
) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(20))
    fill(app, lines)
    session.checkpoint("how it began")
    moved = workspace / "lib" / "moved.py"
    moved.parent.mkdir()
    app.rename(moved)
    session.checkpoint("move it")
    assert {reason for _, reason in _told(session.why("lib/moved.py"))} == {"how it began"}
    other = workspace / "other.py"
    moved.rename(other)
    fill(other, lines.replace(b"line 7\n", b"line seven\n"))
    # Not saved yet, renamed and edited at once.
    told = _told(session.why("other.py"))
    assert told[7] == (b"line seven", None)
    assert {reason for _, reason in told[:7] + told[8:]} == {"how it began"}
    session.checkpoint("move and edit it")
    told = _told(session.why("other.py"))
    assert told[7] == (b"line seven", "move and edit it")
    assert {reason for _, reason in told[:7] + told[8:]} == {"how it began"}
    assert session.why("other.py", 1).lines[0].origin.path == b"src/app.py"


def test_a_copy_and_a_new_file_are_no_renames(
    session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("how it began")
    fill(workspace / "copy.py", b"one\n")
    session.checkpoint("copy it")
    assert _told(session.why("copy.py")) == [(b"one", "copy it")]
    fill(workspace / "new.py", b"new\n")
    assert _told(session.why("new.py")) == [(b"new", None)]


def test_the_end_of_the_last_line_makes_no_new_line(
    session: SessionCheckpointer, app: Path
) -> None:
    session.checkpoint("how it began")
    fill(app, b"one")
    session.checkpoint("without a line end")
    assert _told(session.why("src/app.py")) == [(b"one", "how it began")]
    fill(app, b"")
    session.checkpoint("empty")
    assert session.why("src/app.py").lines == ()
    with pytest.raises(UsageError, match="0 lines"):
        session.why("src/app.py", 1)


def test_before_the_first_checkpoint_everything_is_unsaved(session: SessionCheckpointer) -> None:
    (line,) = session.why("src/app.py").lines
    assert line.origin.state is LineState.UNSAVED
    with pytest.raises(UnknownReference):
        session.why("src/app.py", ref="HEAD")


def test_what_has_no_lines_is_said_to_have_none(
    session: SessionCheckpointer, workspace: Path, app: Path
) -> None:
    fill(workspace / "data.bin", b"a\0b")
    (workspace / "link").symlink_to("src/app.py")
    (workspace / "way").symlink_to("src")
    os.mkfifo(workspace / "pipe")
    session.checkpoint("how it began")
    for reference in (None, "HEAD"):
        with pytest.raises(Refused, match="is a binary file"):
            session.why("data.bin", ref=reference)
        with pytest.raises(Refused, match="is a directory"):
            session.why("src", ref=reference)
        with pytest.raises(Refused, match="is a link"):
            session.why("link", ref=reference)
        with pytest.raises(NotFound, match="nowhere"):
            session.why("nowhere", ref=reference)
    with pytest.raises(Refused, match="is a link, or one of its parents"):
        session.why("way/app.py")
    with pytest.raises(Refused, match="not a regular file"):
        session.why("pipe")
    for wrong in ("", "..", "../x", "/etc/passwd", ".git/config", "a//b", "nul\0"):
        with pytest.raises(InvalidPath):
            session.why(wrong)
    for number in (0, -1, 2, True, "1"):
        with pytest.raises(UsageError, match="no line"):
            session.why("src/app.py", number)  # type: ignore[arg-type]


def test_a_file_that_is_too_large_is_refused_and_not_read(
    session: SessionCheckpointer, workspace: Path, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (workspace / "huge").open("wb") as huge:
        huge.truncate(200_000_000)
    with pytest.raises(LimitReached, match="200,000,000 bytes"):
        session.why("huge")
    (workspace / "huge").unlink()
    fill(app, b"x" * 100 + b"\none\n")
    session.checkpoint("once it was large")
    fill(app, b"one\n")
    session.checkpoint("now it is small")
    monkeypatch.setattr(versions, "LARGEST_BYTES", 50)
    told = session.why("src/app.py")
    assert told.lines[0].origin.state is LineState.OLDER
    assert "too large" in told.warnings[0]


def test_what_was_binary_then_has_no_lines_in_common(
    session: SessionCheckpointer, app: Path
) -> None:
    fill(app, b"one\n\0")
    session.checkpoint("binary")
    fill(app, b"one\n")
    session.checkpoint("text")
    assert _told(session.why("src/app.py")) == [(b"one", "text")]


def test_a_version_that_is_damaged_ends_the_search_and_is_named(
    session: SessionCheckpointer, app: Path
) -> None:
    fill(app, b"damaged\none\n")
    session.checkpoint("how it began")
    fill(app, b"one\ntwo\n")
    session.checkpoint("two")
    vault = engine_of(session).vault
    whole = vault.objects.read
    began = vault.catalog.first_checkpoint(SessionId("agent"))
    assert began is not None
    entry = entry_at(vault.load_tree, began.tree, b"src/app.py")
    assert isinstance(entry, FileEntry)
    lost = entry.digest

    class Lossy:
        def __getattr__(self, name: str) -> object:
            return getattr(vault.objects, name)

        def read(self, digest: bytes) -> bytes:
            if digest == lost:
                raise ObjectMissing("it is lost")
            return whole(digest)  # type: ignore[arg-type]

    broken = replace(vault, objects=Lossy())  # type: ignore[arg-type]
    told = why(broken, SessionId("agent"), b"src/app.py")
    assert [line.origin.state for line in told.lines] == [LineState.OLDER, LineState.OLDER]
    assert any("it is lost" in warning for warning in told.warnings)


def test_a_history_that_is_too_long_is_looked_at_in_part(
    session: SessionCheckpointer, app: Path
) -> None:
    session.checkpoint("how it began")
    for number in range(6):
        fill(app, b"one\n%d\n" % number)
        session.checkpoint(f"step {number}")
    vault = engine_of(session).vault
    told = why(vault, SessionId("agent"), b"src/app.py", most_versions=4)
    old, new = (line.origin for line in told.lines)
    assert (old.state, new.state) == (LineState.OLDER, LineState.WRITTEN)
    assert old.checkpoint is not None
    assert told.warnings == ("some lines are older than the searched history",)


def test_only_the_trees_on_the_way_are_loaded_and_each_once(
    session: SessionCheckpointer, workspace: Path, app: Path
) -> None:
    for number in range(30):
        fill(workspace / f"beside-{number}" / "file", b"x")
    session.checkpoint("how it began")
    for number in range(20):
        fill(workspace / "beside-0" / "file", b"%d" % number)
        session.checkpoint(f"step {number}")
    vault = engine_of(session).vault
    read: list[object] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(vault.objects, name)

        def read(self, digest: bytes) -> bytes:
            read.append(digest)
            return vault.objects.read(digest)  # type: ignore[arg-type]

    told = why(
        replace(vault, objects=Counting()),  # type: ignore[arg-type]
        SessionId("agent"),
        b"src/app.py",
    )
    assert told.lines[0].origin.state is LineState.INITIAL
    # 21 roots and the one directory that is the same in all; the content itself never.
    assert len(read) == len(set(read)) == 22


def test_other_sessions_are_not_looked_at(session: SessionCheckpointer, workspace: Path) -> None:
    session.checkpoint("mine")
    with SessionCheckpointer(workspace, "other") as other:
        other.checkpoint("theirs")
        assert _told(other.why("src/app.py")) == [(b"one", "theirs")]
    assert _told(session.why("src/app.py")) == [(b"one", "mine")]


def test_lines_of_one_origin_make_a_span(session: SessionCheckpointer, app: Path) -> None:
    session.checkpoint("how it began")
    fill(app, b"a\nb\none\nc\n")
    session.checkpoint("more")
    spans = list(session.why("src/app.py").spans())
    assert [[line.number for line in span] for span in spans] == [[1, 2], [3], [4]]
    assert spans[0][0].origin is spans[2][0].origin

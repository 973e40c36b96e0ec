"""Sessions that are begun on purpose: their first checkpoint, their agent, how they end (SE-1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer, start_session
from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import NotFound, Refused, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.sessions import SessionStatus
from tests.behind_the_api import engine_of
from tests.interfaces.cli.command_line import CommandLine

S = SessionId("s")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("0")
    return workspace


@pytest.mark.requirement("SE-1")
def test_a_session_that_is_started_has_a_first_checkpoint_a_title_and_an_agent(
    workspace: Path,
) -> None:
    with start_session(workspace, "s", title="Refactor auth", agent="claude-code") as session:
        (first,) = session.summaries()
        row = engine_of(session).vault.catalog.session(S)
        assert row is not None
        assert (row.title, row.agent, row.status) == (
            "Refactor auth",
            "claude-code",
            SessionStatus.ACTIVE,
        )
        assert engine_of(session).resolve(S, "initial").kind is Kind.INITIAL
        assert session.head_id == first.id
        assert session.end().status is SessionStatus.ENDED
    with start_session(workspace, "s") as session:
        assert session.checkpoint_count == 1
        row = engine_of(session).vault.catalog.session(S)
        assert row is not None
        assert row.status is SessionStatus.ACTIVE
    with start_session(workspace) as fresh:
        assert fresh.session_id != "s"


@pytest.mark.requirement("SE-1")
def test_a_bare_session_takes_no_checkpoint_of_its_own(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        assert session.checkpoint_count == 0


@pytest.mark.requirement("SE-1")
def test_two_agents_on_one_session_are_distinguished(workspace: Path) -> None:
    with start_session(workspace, "s", agent="claude-code"):
        with pytest.raises(Refused, match="claude-code") as told:
            start_session(workspace, "s", agent="codex")
        assert "another id" in str(told.value.hint)
        program = (
            "import sys; from pathlib import Path\n"
            "from holdfast import start_session, HoldfastError\n"
            "try: start_session(Path(sys.argv[1]), 's', agent='claude-code')\n"
            "except HoldfastError as error: print(error)"
        )
        run = [sys.executable, "-c", program, str(workspace)]
        child = subprocess.run(run, capture_output=True, text=True, check=True)
        assert f"process {os.getpid()}" in child.stdout
    # A process that is gone holds nothing.
    program = "import sys; from pathlib import Path; from holdfast import start_session\n"
    program += "start_session(Path(sys.argv[1]), 'dead')"
    subprocess.run([sys.executable, "-c", program, str(workspace)], check=True)
    start_session(workspace, "dead").close()


@pytest.mark.requirement("SE-1")
def test_a_session_of_another_workspace_is_named(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    start_session(other, "theirs").close()
    with start_session(workspace, "ours") as session:
        sessions = session.opened.sessions
        with pytest.raises(NotFound, match=str(other)):
            sessions.require(SessionId("theirs"))
        with pytest.raises(NotFound, match="unknown session: 'nobodys'") as told:
            sessions.require(SessionId("nobodys"))
        assert "ours" in str(told.value.hint)


@pytest.mark.requirement("SE-1")
@pytest.mark.parametrize("label", ["", "  ", "two\nlines", "x" * 201])
def test_a_title_people_cannot_read_is_refused(workspace: Path, label: str) -> None:
    with pytest.raises(UsageError, match="title"):
        start_session(workspace, "s", title=label)


@pytest.mark.requirement("SE-1")
def test_an_archived_session_takes_no_more_messages(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        session.archive()
        with pytest.raises(Refused, match="archived"):
            session.add_message("user", "too late")


@pytest.mark.requirement("SE-1", "CP-7")
def test_an_archived_session_takes_nothing_more_and_can_still_be_restored_and_annotated(
    workspace: Path,
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("why")
        (workspace / "a.txt").write_text("1")
        session.archive()
        assert session.status == "archived"
        transcript = workspace / "t.jsonl"
        transcript.write_text("")
        for call in (
            lambda: session.checkpoint("too late"),
            lambda: session.add_message("user", "too late"),
            lambda: session.import_transcript(transcript),
            session.approve,
            session.reset,
            session.end,
            lambda: session.attempt("too late").__enter__(),
        ):
            with pytest.raises(Refused, match="is archived and cannot be changed") as refused:
                call()
            assert "start another one" in (refused.value.hint or "")
        assert session.checkpoint_count == 1
        session.annotate(first, "closed")
        session.restore(first)
        assert (workspace / "a.txt").read_text() == "0"
        assert session.status == "archived"


@pytest.mark.requirement("SE-1")
def test_a_checkpoint_makes_a_session_that_has_ended_active_again_and_says_so(
    workspace: Path,
) -> None:
    with start_session(workspace, "s") as session:
        session.end()
        assert session.status == "ended"
        outcome = session.save_checkpoint("more work")
        assert session.status == "active"
        assert outcome.warnings == ("the session 's' had ended; it is active again",)
        assert session.save_checkpoint("and more").warnings == ()


@pytest.mark.requirement("SE-1")
def test_a_message_makes_a_session_that_has_ended_active_again(workspace: Path) -> None:
    with start_session(workspace, "s") as session:
        session.end()
        session.add_message("user", "one more thing")
        assert session.status == "active"


@pytest.mark.requirement("SE-1", "SE-5")
def test_deciding_about_the_work_of_a_session_that_has_ended_leaves_it_ended(
    workspace: Path,
) -> None:
    with start_session(workspace, "s") as session:
        (workspace / "a.txt").write_text("1")
        done = session.checkpoint("work")
        session.end()
        assert session.approve("looked at").warnings == ()
        (workspace / "a.txt").write_text("2")
        (said,) = session.approve("with what a person changed").warnings
        assert "had ended and stays ended" in said
        session.restore(done)
        session.reset()
        session.undo()
        assert session.status == "ended"


@pytest.mark.requirement("SE-1", "SE-12")
def test_what_a_trigger_or_a_reused_checkpoint_brings_begins_no_ended_session_again(
    workspace: Path,
) -> None:
    with start_session(workspace, "s") as session:
        session.end()
        assert session.save_checkpoint("again", reuse=True).deduplicated
        (workspace / "a.txt").write_text("1")
        engine_of(session).save(S, make_intent("After Bash"), kind=Kind.TOOL)
        assert session.status == "ended"


@pytest.mark.requirement("SE-1", "CL-1")
def test_the_command_line_tells_that_a_session_has_ended_and_that_it_goes_on(
    workspace: Path,
) -> None:
    cli = CommandLine(workspace)
    with start_session(workspace, "s") as session:
        session.end()
    assert cli.json("status")["session_status"] == "ended"
    assert "session   s, ended, 1 checkpoint" in cli("status").out
    answer = cli("checkpoint", "more")
    assert answer.status == 0
    assert "the session 's' had ended; it is active again" in answer.err
    assert "session   s, 2 checkpoints" in cli("status").out
    with SessionCheckpointer(workspace, "s") as session:
        session.archive()
    refused = cli("--session", "s", "--json", "checkpoint", "more")
    assert (refused.status, refused.error["code"]) == (5, "refused")
    assert "start another one" in refused.error["hint"]


@pytest.mark.requirement("SE-6", "SE-1")
def test_an_archived_session_takes_no_edit(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        session.archive()
        with pytest.raises(Refused, match="archived"):
            session.start_edit(["a.txt"])
        assert session.activities() == []


@pytest.mark.requirement("SE-7", "SE-1")
def test_what_is_no_line_of_text_is_refused_with_a_way_out(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("why")
        with pytest.raises(UsageError, match="the annotation is 5, not a string"):
            session.annotate("HEAD", 5)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="author") as refused:
            session.annotate("HEAD", "text", author="two\nlines")
        assert refused.value.hint
    with pytest.raises(UsageError, match="agent") as refused:
        SessionCheckpointer.start(workspace, "t", agent="two\nlines")
    assert refused.value.hint

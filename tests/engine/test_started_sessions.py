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
from holdfast.domain.sessions import SessionStatus

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
        row = session._engine.vault.catalog.session(S)
        assert row is not None
        assert (row.title, row.agent, row.status) == (
            "Refactor auth",
            "claude-code",
            SessionStatus.ACTIVE,
        )
        assert session._engine.resolve(S, "initial").kind is Kind.INITIAL
        assert session.head == first.id
        assert session.end().status is SessionStatus.ENDED
    with start_session(workspace, "s") as session:
        assert session.checkpoint_count == 1
        row = session._engine.vault.catalog.session(S)
        assert row is not None
        assert row.status is SessionStatus.ACTIVE
    with start_session(workspace) as fresh:
        assert fresh.session_id != "s"


@pytest.mark.requirement("SE-1")
def test_a_bare_session_takes_no_checkpoint_of_its_own(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        assert session.checkpoint_count == 0


@pytest.mark.requirement("SE-1")
def test_two_agents_on_one_session_are_told_apart(workspace: Path) -> None:
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
    start_session(workspace, "ours").close()
    with pytest.raises(NotFound, match=str(other)):
        SessionCheckpointer.load(workspace, "theirs")
    with pytest.raises(NotFound, match="no session 'nobodys'") as told:
        SessionCheckpointer.load(workspace, "nobodys")
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

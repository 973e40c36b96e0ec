"""What tools tell of restores, rounds and checkpoints that were there already."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.api.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.domain.sqlite_files import HEADER
from holdfast.interfaces.tools.maintenance import Statistics
from holdfast.interfaces.tools.restore_result import Restored
from holdfast.interfaces.tools.save import Created
from holdfast.tools import ToolHandlers
from tests.interfaces.tools.calls import done
from tests.support.hostile_trees import fill


@pytest.mark.requirement("SE-12", "CP-10")
def test_with_reuse_no_second_checkpoint_of_the_same_state_is_made(
    tools: ToolHandlers, workspace: Path
) -> None:
    _, first = done(tools, "checkpoint_create", Created, reasoning="one")
    text, again = done(tools, "checkpoint_create", Created, reasoning="two", reuse=True)
    assert (again.checkpoint.id, again.deduplicated) == (first.checkpoint.id, True)
    assert "Nothing has changed since checkpoint" in text
    _, third = done(tools, "checkpoint_create", Created, reasoning="three")
    assert not third.deduplicated


@pytest.mark.requirement("CL-8", "MC-1")
def test_a_saved_checkpoint_lists_databases_active_agents_and_how_to_restore_it(
    tools: ToolHandlers, workspace: Path
) -> None:
    fill(workspace / "app.db", HEADER + bytes(84))
    with open_workspace(workspace, create=True) as opened:
        opened.sessions.start(SessionId("codex-1"), agent="codex")
    text, made = done(tools, "checkpoint_create", Created, reasoning="one")
    assert made.databases == ["app.db (SQLite, 100 B)"]
    assert made.agents == ["codex (codex-1)"]
    assert "Databases: app.db (SQLite, 100 B)." in text
    assert "Active agents: codex (codex-1)." in text
    assert f'checkpoint_restore {{"checkpoint_id": "{made.checkpoint.id}"}}' in text


@pytest.mark.requirement("RB-10")
def test_what_another_process_undid_is_reported_with_the_next_answer_once(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    made = session.checkpoint("good")
    fill(workspace / "src" / "app.py", b"worse")
    session.restore(made)
    text, _ = done(tools, "checkpoint_stats", Statistics)
    assert "app.py" in text
    assert made[:10] in text
    text, _ = done(tools, "checkpoint_stats", Statistics)
    assert "app.py" not in text


@pytest.mark.requirement("RB-10")
def test_a_restore_that_the_agent_asked_for_is_reported_in_its_answer_and_not_again(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    made = session.checkpoint("good")
    session.add_message("user", "make it worse")
    fill(workspace / "src" / "app.py", b"worse")
    _, preview = done(tools, "checkpoint_restore", Restored, ref=made)
    text, _ = done(tools, "checkpoint_restore", Restored, confirm_token=preview.confirm_token)
    assert "The workspace was restored to an earlier state" not in text
    assert text.count("app.py") == 1
    assert "message 0 ('make it worse') no longer applies" in text
    assert "network calls" in text
    text, _ = done(tools, "checkpoint_undo", Restored)
    assert "A restore was undone" not in text
    text, _ = done(tools, "checkpoint_stats", Statistics)
    assert "app.py" not in text


@pytest.mark.requirement("RB-10")
def test_what_another_process_undid_is_reported_beside_what_the_agent_asked_for(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    made = session.checkpoint("good")
    fill(workspace / "notes.txt", b"two\n")
    _, preview = done(tools, "checkpoint_restore", Restored, ref=made)
    with SessionCheckpointer(workspace, "another") as another:
        theirs = another.checkpoint("theirs")
        fill(workspace / "src" / "app.py", b"worse")
        another.restore(theirs)
    text, _ = done(tools, "checkpoint_restore", Restored, confirm_token=preview.confirm_token)
    assert "Another session of this workspace, another, restored the workspace" in text
    assert "1 file was restored to earlier content: src/app.py" in text


@pytest.mark.requirement("SE-5", "CP-10")
def test_the_preview_of_a_reset_tells_which_round_it_abandons_and_the_way_back(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    fill(workspace / "src" / "app.py", b"worse")
    text, preview = done(tools, "checkpoint_reset", Restored)
    assert preview.abandoned_round == "session_1"
    assert "It abandons round 1" in text
    assert "checkpoint_undo" in text
    assert "checkpoint_restore" in text


@pytest.mark.requirement("SE-5", "CP-10")
def test_a_reset_that_finds_every_file_as_approved_has_nothing_to_do(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    session.approve()
    _, preview = done(tools, "checkpoint_reset", Restored)
    assert (preview.total_steps, preview.abandoned_round) == (0, None)
    assert preview.confirm_token is None
    assert session.approval().active.name == "session_2"


@pytest.mark.requirement("SE-5", "CP-10")
def test_statistics_tell_what_is_not_approved_and_what_is_not_saved(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    _, data = done(tools, "checkpoint_stats", Statistics)
    assert (data.active_round, data.has_unapproved, data.unsaved) == (None, None, None)
    session.checkpoint("good")
    session.approve()
    text, data = done(tools, "checkpoint_stats", Statistics)
    assert (data.active_round, data.has_unapproved, data.unsaved) == ("session_2", False, False)
    assert "The active round 2 has no unapproved changes." in text
    fill(workspace / "notes.txt", b"two\n")
    text, data = done(tools, "checkpoint_stats", Statistics)
    assert (data.has_unapproved, data.unsaved) == (True, True)
    assert "unsaved changes" in text

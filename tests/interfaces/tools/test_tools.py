"""What each tool does for an agent, in words that it can act on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.tools.diff import Compared
from holdfast.interfaces.tools.history import LineOfWork, Listed, Shown
from holdfast.interfaces.tools.maintenance import AutomaticSettings, CleanedUp, Statistics
from holdfast.interfaces.tools.restore_result import Restored
from holdfast.interfaces.tools.save import Annotated, Approved, Created
from holdfast.interfaces.tools.search import Found
from holdfast.tools import ToolHandlers
from tests.components.git.repositories import git
from tests.interfaces.tools.calls import done
from tests.support.clocks import pass_days
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("CP-10")


def test_a_checkpoint_is_made_and_the_way_back_is_reported(
    tools: ToolHandlers, session: SessionCheckpointer
) -> None:
    text, data = done(
        tools,
        "checkpoint_create",
        Created,
        reasoning="before the refactor",
        name="before",
        confidence=0.5,
        tags=["auth"],
        goal_id="g",
        task_id="t",
    )
    assert data.checkpoint.id == session.head_id
    assert f'checkpoint_restore {{"checkpoint_id": "{session.head_id}"}}' in text
    snapshot = get_snapshot(session, "before")
    assert (snapshot.intent.confidence, snapshot.intent.tags) == (0.5, ("auth",))
    assert (snapshot.intent.goal_id, snapshot.intent.task_id) == ("g", "t")


def test_what_could_not_be_saved_is_reported(tools: ToolHandlers, workspace: Path) -> None:
    fill(workspace / ".gitignore", b"*.log\n")
    fill(workspace / "big.log", b"x")
    text, data = done(tools, "checkpoint_create", Created, reasoning="r")
    assert data.left_out == 1
    assert "1 path left out" in text


def test_the_repository_itself_is_not_reported_as_left_out(
    tools: ToolHandlers, workspace: Path
) -> None:
    git(workspace, "init", "-q")
    text, data = done(tools, "checkpoint_create", Created, reasoning="r")
    assert (data.left_out, "left out" in text) == (0, False)
    text, shown = done(tools, "checkpoint_show", Shown)
    assert (shown.left_out_total, "Left out" in text) == (0, False)


def test_checkpoints_are_listed_page_by_page(tools: ToolHandlers) -> None:
    made = [tools.call("checkpoint_create", {"reasoning": f"step {n}"}).data for n in range(5)]
    ids = [one.checkpoint.id for one in made if isinstance(one, Created)]
    text, page = done(tools, "checkpoint_list", Listed, limit=2)
    assert [one.id for one in page.checkpoints] == ids[:-3:-1]
    assert page.checkpoints[0].is_head
    assert "step 4" in text
    assert "(HEAD)" in text
    assert str(page.next_cursor) in text
    found = list(page.checkpoints)
    while page.next_cursor:
        page = done(tools, "checkpoint_list", Listed, limit=2, cursor=page.next_cursor)[1]
        found += page.checkpoints
    assert [one.id for one in found] == ids[::-1]


def test_lists_can_be_narrowed_down(tools: ToolHandlers) -> None:
    tools.call("checkpoint_create", {"reasoning": "a", "tags": ["x"]})
    tools.call("checkpoint_create", {"reasoning": "b"})
    assert len(done(tools, "checkpoint_list", Listed, tag="x")[1].checkpoints) == 1
    assert len(done(tools, "checkpoint_list", Listed, kind="tool")[1].checkpoints) == 0
    assert "No checkpoint matches" in done(tools, "checkpoint_list", Listed, tag="y")[0]


def test_an_empty_session_says_what_to_do_first(tools: ToolHandlers) -> None:
    assert "checkpoint_create" in done(tools, "checkpoint_list", Listed)[0]
    assert "checkpoint_create" in done(tools, "checkpoint_history", LineOfWork)[0]


def test_history_shows_the_line_that_led_here_without_what_was_rolled_back(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    first = session.checkpoint("first\nwith a second line")
    fill(workspace / "src" / "app.py", b"print(2)\n")
    session.checkpoint("a wrong turn")
    session.restore(first)
    fill(workspace / "src" / "app.py", b"print(3)\n")
    session.checkpoint("the right way")
    text, data = done(tools, "checkpoint_history", LineOfWork)
    reasons = [step.reasoning for step in data.steps]
    assert reasons == ["the right way", "first\nwith a second line"]
    assert "with a second line" in text
    assert data.complete
    text, data = done(tools, "checkpoint_history", LineOfWork, limit=1)
    assert not data.complete
    assert "To continue" in text


def test_a_checkpoint_is_shown_with_everything_about_it(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    fill(workspace / ".gitignore", b"*.log\n")
    fill(workspace / "a.log", b"x")
    session.checkpoint(
        "why\nindeed", name="n", goal_id="g", tool_calls=["Bash: ls", {"name": "Edit"}]
    )
    text, data = done(tools, "checkpoint_show", Shown, ref="n", files=True)
    for part in ("why\nindeed", "goal: g", "Bash: ls", "a.log: ignored", "src/app.py"):
        assert part in text
    assert data.tool_calls == ["Bash: ls", {"name": "Edit"}]
    assert data.paths == [".gitignore", "notes.txt", "src/app.py"]
    assert data.left_out_total >= 1


@pytest.mark.requirement("SE-8")
def test_a_moment_is_found_by_what_was_meant(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("before the login timeout is raised", tags=["auth"])
    fill(workspace / "src" / "app.py", b"print(2)\n")
    wanted = session.checkpoint("moved\x1b parsing into its own module")
    text, found = done(tools, "checkpoint_search", Found, query="parsing pars*")
    assert [hit.checkpoint and hit.checkpoint.id for hit in found.hits] == [wanted]
    assert "reasoning: moved\\x1b parsing" in text
    assert len(done(tools, "checkpoint_search", Found, query="tag:auth")[1].hits) == 1
    text, found = done(tools, "checkpoint_search", Found, query='"')
    assert found.hits == []
    assert "Nothing was found" in text
    assert "no letters or digits" in text
    for nothing in ("", "  ", "kind:"):
        text, found = done(tools, "checkpoint_search", Found, query=nothing)
        assert found.hits[0].checkpoint is not None
        assert (found.hits[0].checkpoint.id, len(found.hits)) == (wanted, 2)
    with SessionCheckpointer(workspace, "another") as other:
        for query in ("parsing", "session:agent parsing"):
            answer = ToolHandlers(other).call("checkpoint_search", {"query": query})
            assert "Nothing was found" in answer.output


def test_differences_are_shown_as_paths_or_as_lines(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    first = session.checkpoint("first")
    fill(workspace / "src" / "app.py", b"print(2)\n")
    fill(workspace / "new\nname.txt", b"x\n")
    fill(workspace / "blob", b"\0\1\2")
    text, data = done(tools, "checkpoint_diff", Compared)
    assert {(c.path, c.change) for c in data.changes} == {
        ("src/app.py", "modified"),
        ("new\\x0aname.txt", "added"),
        ("blob", "added"),
    }
    assert (data.from_id, data.to_id) == (first, None)
    text, data = done(tools, "checkpoint_diff", Compared, content=True)
    assert "-print(1)\n+print(2)" in text
    assert "(binary: 0 → 3 bytes)" in text
    assert data.diff_is_complete
    text, data = done(tools, "checkpoint_diff", Compared, paths=["src"], content=True)
    assert data.total == 1
    assert "blob" not in text
    second = session.checkpoint("second")
    text, data = done(
        tools, "checkpoint_diff", Compared, from_ref=first, to_ref="HEAD", paths="./src/"
    )
    assert (data.to_id, data.total) == (second, 1)
    assert "Nothing differs" in done(tools, "checkpoint_diff", Compared)[0]


def test_a_long_difference_is_cut_and_says_so(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("first")
    fill(workspace / "long.txt", b"".join(b"%d\n" % n for n in range(100_000)))
    fill(workspace / "wide.txt", b"x" * 100_000)
    text, data = done(tools, "checkpoint_diff", Compared, content=True)
    assert not data.diff_is_complete
    assert len(text) < 70_000
    assert "truncated" in text
    text, data = done(tools, "checkpoint_diff", Compared, content=True, paths=["wide.txt"])
    assert data.diff_is_complete
    assert len(text) < 3_000


def test_a_restore_is_previewed_then_done_then_undone(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good", name="good")
    fill(workspace / "src" / "app.py", b"broken")
    (workspace / "notes.txt").unlink()
    fill(workspace / "junk", b"j")
    broken = describe(workspace)
    text, preview = done(tools, "checkpoint_restore", Restored, ref="good")
    assert describe(workspace) == broken
    assert not preview.done
    assert "Nothing has been changed yet" in text
    assert (preview.created, preview.rewritten, preview.deleted) == (1, 1, 1)
    assert f'"confirm_token": "{preview.confirm_token}"' in text
    text, restored = done(
        tools, "checkpoint_restore", Restored, confirm_token=preview.confirm_token
    )
    assert restored.done
    assert "checkpoint_undo" in text
    assert "read them again" in text
    assert (workspace / "src" / "app.py").read_bytes() == b"print(1)\n"
    assert not (workspace / "junk").exists()
    assert get_snapshot(session, str(restored.safety_checkpoint)).id == restored.safety_checkpoint
    text, _ = done(tools, "checkpoint_undo", Restored, dry_run=True)
    assert "Nothing has been changed" in text
    done(tools, "checkpoint_undo", Restored)
    assert describe(workspace) == broken
    done(tools, "checkpoint_undo", Restored, redo=True)
    assert (workspace / "src" / "app.py").read_bytes() == b"print(1)\n"


def test_some_paths_are_restored_and_the_rest_is_left(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    fill(workspace / "src" / "app.py", b"broken")
    fill(workspace / "notes.txt", b"mine")
    absolute = str(workspace / "src")
    preview = done(tools, "checkpoint_restore", Restored, ref="HEAD", paths=[absolute])[1]
    done(tools, "checkpoint_restore", Restored, confirm_token=preview.confirm_token)
    assert (workspace / "src" / "app.py").read_bytes() == b"print(1)\n"
    assert (workspace / "notes.txt").read_bytes() == b"mine"


def test_a_restore_of_what_is_there_needs_no_token(
    tools: ToolHandlers, session: SessionCheckpointer
) -> None:
    session.checkpoint("good")
    text, data = done(tools, "checkpoint_restore", Restored, ref="HEAD")
    assert data.confirm_token is None
    assert "already matches" in text


def test_unsaved_bytes_are_in_the_way_and_the_way_out_is_reported(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    (workspace / "notes.txt").unlink()
    fill(workspace / "made", b"new")
    fill(workspace / "notes.txt" / "node_modules" / "inner", b"precious")
    text, data = done(tools, "checkpoint_restore", Restored, ref="initial")
    assert data.confirm_token is None
    assert data.blocked
    assert '"best_effort": true' in text
    text, data = done(tools, "checkpoint_restore", Restored, ref="initial", best_effort=True)
    text, data = done(tools, "checkpoint_restore", Restored, confirm_token=data.confirm_token)
    assert data.done
    assert "Skipped:" in text
    assert (workspace / "notes.txt" / "node_modules" / "inner").read_bytes() == b"precious"


@pytest.mark.requirement("SE-5")
def test_work_is_approved_and_what_follows_is_thrown_away(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    fill(workspace / "src" / "app.py", b"better")
    text, approved = done(tools, "checkpoint_approve", Approved, message="it works")
    assert (approved.merged_round, approved.new_round) == ("session_1", "session_2")
    assert "Now round 2 begins. To return here: checkpoint_reset {}, " in text
    fill(workspace / "src" / "app.py", b"worse")
    text, preview = done(tools, "checkpoint_reset", Restored)
    assert (workspace / "src" / "app.py").read_bytes() == b"worse"
    text, data = done(tools, "checkpoint_reset", Restored, confirm_token=preview.confirm_token)
    assert (data.abandoned_round, data.new_round) == ("session_2", "session_3")
    assert "round 2 is abandoned" in text
    assert (workspace / "src" / "app.py").read_bytes() == b"better"
    done(tools, "checkpoint_undo", Restored)
    assert (workspace / "src" / "app.py").read_bytes() == b"worse"


@pytest.mark.requirement("SE-7", "MC-1")
def test_a_note_is_written_and_changed(tools: ToolHandlers, session: SessionCheckpointer) -> None:
    made = session.checkpoint("good")
    text, note = done(tools, "checkpoint_annotate", Annotated, text="breaks the login")
    assert (note.checkpoint.id, note.number, note.revision) == (made, 1, 1)
    assert "checkpoint_search" in text
    _, again = done(tools, "checkpoint_annotate", Annotated, ref=made, text="breaks all", number=1)
    assert (again.revision, again.text) == (2, "breaks all")
    assert [one.text for one in session.annotations(made)] == ["breaks all"]


def test_statistics_are_shown(tools: ToolHandlers, session: SessionCheckpointer) -> None:
    session.checkpoint("good")
    text, data = done(tools, "checkpoint_stats", Statistics)
    assert data.checkpoints == 1
    assert data.head == session.head_id
    assert "1 checkpoint," in text


def test_a_cleanup_is_previewed_then_done(
    tools: ToolHandlers, session: SessionCheckpointer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.opened.settings.set("retention", {"manual": {"most": 1}})
    with SessionCheckpointer(session.workspace, "agent") as fresh:
        tools = ToolHandlers(fresh)
        for number in range(5):
            fresh.checkpoint(f"step {number}")
        before = fresh.checkpoint_count
        pass_days(monkeypatch, 2)
        text, preview = done(tools, "checkpoint_cleanup", CleanedUp)
        assert fresh.checkpoint_count == before
        assert preview.total_dropped > 0
        assert "Nothing has been deleted yet" in text
        text, data = done(
            tools, "checkpoint_cleanup", CleanedUp, confirm_token=preview.confirm_token
        )
        assert data.done
        assert data.total_dropped == preview.total_dropped
        assert fresh.checkpoint_count == before - data.total_dropped


def test_automatic_checkpoints_are_configured(
    tools: ToolHandlers, session: SessionCheckpointer
) -> None:
    text, data = done(tools, "checkpoint_auto_configure", AutomaticSettings)
    assert "auto_files = 5 (default)" in text
    assert data.changed == []
    wanted = {"auto_files": 7, "retention": {"tool": {"most": 3}}}
    text, data = done(tools, "checkpoint_auto_configure", AutomaticSettings, settings=wanted)
    assert data.changed == list(wanted)
    assert {one.name: one.value for one in data.settings}.items() >= wanted.items()
    undone = {"auto_files": None}
    text, _ = done(tools, "checkpoint_auto_configure", AutomaticSettings, settings=undone)
    assert "auto_files = 5 (default)" in text


def test_names_that_are_no_text_are_shown_as_text(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("good")
    odd = bytes(workspace) + b"/\xff\x1b[31m\xe2\x80\xaeodd"
    with open(odd, "wb") as file:
        file.write(b"\xff\x1b\n")
    for arguments in ({}, {"content": True}):
        text, data = done(tools, "checkpoint_diff", Compared, **arguments)
        assert re.search(r"\\xff\\x1b\[31m\\u202eodd", text)
        assert data.changes[0].path == "\\xff\\x1b[31m\\u202eodd"
    preview = done(tools, "checkpoint_restore", Restored, ref="HEAD")[1]
    done(tools, "checkpoint_restore", Restored, confirm_token=preview.confirm_token)

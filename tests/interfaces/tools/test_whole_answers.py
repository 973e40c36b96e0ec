"""Answers that are bounded, and leave nothing out without saying so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.tools.history import LineOfWork, Listed, Shown
from holdfast.interfaces.tools.save import Annotated
from holdfast.interfaces.tools.search import Explained, Found
from holdfast.tools import ToolHandlers
from tests.interfaces.tools.calls import done
from tests.support.hostile_trees import fill


@pytest.mark.requirement("CP-10", "MC-1")
def test_long_reasons_make_short_pages_and_nothing_is_passed_over(
    tools: ToolHandlers, session: SessionCheckpointer
) -> None:
    reasons = [f"{number} " + "because of this and that\n" * 3900 for number in range(8)]
    made = [session.checkpoint(reason) for reason in reasons][::-1]
    pages: list[list[str]] = []
    cursor = None
    while cursor is not None or not pages:
        text, page = done(tools, "checkpoint_list", Listed, limit=1000, cursor=cursor)
        assert sum(len(one.reasoning) for one in page.checkpoints) <= 300_000
        pages.append([one.id for one in page.checkpoints])
        cursor = page.next_cursor
        assert ("There are more" in text) == (cursor is not None)
        session.checkpoint("made meanwhile")
    assert len(pages) > 1
    assert [one for page in pages for one in page] == made
    found: list[str] = []
    call = f'checkpoint_history {{"ref": "{made[0]}"}}'
    while call:
        arguments = json.loads(call.removeprefix("checkpoint_history "))
        text, line = done(tools, "checkpoint_history", LineOfWork, limit=1000, **arguments)
        assert len(text) < 700_000
        found += [step.id for step in line.steps]
        call = text.rpartition("To continue: ")[2].rstrip(".") if not line.complete else ""
    assert found == made
    _, hits = done(tools, "checkpoint_search", Found, query="because", limit=1000)
    assert max(len(hit.checkpoint.reasoning) for hit in hits.hits if hit.checkpoint) <= 2_000
    _, lines = done(tools, "checkpoint_why", Explained, path="notes.txt")
    assert all(len(span.reasoning or "") <= 2_000 for span in lines.spans)


@pytest.mark.requirement("CP-10", "MC-1")
@pytest.mark.parametrize("to_ref", [None, "HEAD"])
def test_a_path_that_neither_side_has_is_no_empty_difference(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path, to_ref: str | None
) -> None:
    """Ignored or mistyped values may differ anyway."""
    fill(workspace / ".gitignore", b".env\n")
    fill(workspace / ".env", b"SECRET=1\n")
    session.checkpoint("first")
    fill(workspace / ".env", b"SECRET=2\n")
    for path in (".env", "src/ap.py"):
        result = tools.call("checkpoint_diff", {"paths": [path], "to_ref": to_ref})
        assert not result.success
        assert "is on neither side" in result.output
    result = tools.call("checkpoint_diff", {"paths": ["src/app.py", "notes.txt"]})
    assert "Nothing differs" in result.output


@pytest.mark.requirement("CP-10", "MC-1")
def test_what_was_written_about_a_checkpoint_and_what_it_holds_besides_files_is_shown(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.set_agent_state("planner", {"step": 3})
    made = session.checkpoint("with memory")
    text, _ = done(tools, "checkpoint_annotate", Annotated, ref=made, text="breaks it")
    assert "checkpoint_show" in text
    done(tools, "checkpoint_annotate", Annotated, ref=made, text="mends it", number=1)
    for number in range(30):
        fill(workspace / f"{number}.txt", b"1")
    session.checkpoint("many files")
    text, shown = done(tools, "checkpoint_show", Shown, ref=made)
    assert [(note.number, note.revision, note.text) for note in shown.annotations] == [
        (1, 2, "mends it")
    ]
    assert "note 1: mends it" in text
    assert any("planner" in line for line in shown.components)
    assert "planner" in text
    text, shown = done(tools, "checkpoint_show", Shown, files=True)
    assert len(shown.paths) == 20
    assert f"and {shown.checkpoint.files - 20} more" in text

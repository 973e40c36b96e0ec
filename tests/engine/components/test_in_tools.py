"""What an agent's tools tell of components: nothing is restored that the preview did not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.interfaces.tools.restore_result import Restored
from holdfast.tools import ToolHandlers
from tests.engine.components.boxes import Box, Later
from tests.interfaces.tools.calls import done
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("MC-1", "DB-3")
RESTORE = "checkpoint_restore"


def test_the_preview_names_what_changes_besides_files(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        tools = ToolHandlers(session)
        session.checkpoint("before")
        Box.content = b"second"
        fill(workspace / "file", b"2")
        text, shown = done(tools, RESTORE, Restored, ref="HEAD")
        assert "box: its content changes" in text
        assert [(c.name, c.actions, c.status) for c in shown.components] == [
            ("box", ["its content changes"], None),
            ("later", [], None),
        ]
        text, did = done(tools, RESTORE, Restored, confirm_token=shown.confirm_token)
        assert "box: restored" in text
        assert (did.components[0].name, did.components[0].status) == ("box", "restored")
        assert did.verified is True
        assert Box.content == b"first"


def test_what_differs_in_a_component_alone_can_be_restored(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        tools = ToolHandlers(session)
        session.checkpoint("before")
        Box.content = b"second"
        text, shown = done(tools, RESTORE, Restored, ref="HEAD")
        assert "would change no files" in text
        assert shown.confirm_token is not None
        done(tools, RESTORE, Restored, confirm_token=shown.confirm_token)
        assert Box.content == b"first"
        text, told = done(tools, "checkpoint_undo", Restored, dry_run=True)
        assert "box: its content changes" in text
        assert told.components[0].actions == ["its content changes"]
        done(tools, "checkpoint_undo", Restored)
        assert Box.content == b"second"


def test_a_component_that_changed_since_the_preview_is_previewed_again(workspace: Path) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        tools = ToolHandlers(session)
        session.checkpoint("before")
        fill(workspace / "file", b"2")
        text, shown = done(tools, RESTORE, Restored, ref="HEAD")
        assert "box" not in text.replace("box watches", "")
        Box.content = b"worth keeping"
        text, again = done(tools, RESTORE, Restored, confirm_token=shown.confirm_token)
        assert "nothing was done" in text
        assert "box: its content changes" in text
        assert not again.done
        assert Box.content == b"worth keeping"
        assert (workspace / "file").read_bytes() == b"2"
        assert again.plan_id != shown.plan_id


def test_a_component_that_was_not_restored_is_never_reported_as_restored(workspace: Path) -> None:
    Later.content = b"poison"
    with SessionCheckpointer(workspace, "s") as session:
        tools = ToolHandlers(session)
        session.checkpoint("before")
        Later.content = b"second"
        fill(workspace / "file", b"2")
        _, shown = done(tools, RESTORE, Restored, ref="HEAD", best_effort=True)
        text, did = done(tools, RESTORE, Restored, confirm_token=shown.confirm_token)
        assert "later: NOT restored: it is broken; buy a new one" in text
        (failed,) = [c for c in did.components if c.status == "failed"]
        assert failed.name == "later"
        assert "buy a new one" in failed.blocked[0]


def test_a_component_that_is_in_the_way_is_named_with_the_way_out(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SessionCheckpointer(workspace, "s") as session:
        tools = ToolHandlers(session)
        session.checkpoint("before")
        fill(workspace / "file", b"2")
        monkeypatch.setattr(Box, "plan", _never)
        text, shown = done(tools, RESTORE, Restored, ref="HEAD")
        assert shown.confirm_token is None
        assert "box: in the way: " in text
        assert '"best_effort": true' in text


def _never(*_: object) -> None:
    raise OSError("locked")

"""What components say of how far they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.ports.component import Captured, CaptureRequest, ContentSink
from tests.engine.components.boxes import Box, Later, misbehave
from tests.support.progress_log import ProgressLog


@pytest.mark.requirement("DB-3", "CL-2")
def test_what_a_component_says_of_its_progress_is_heard_as_long_as_it_is_waited_for(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = []

    def capture(self: Box, request: CaptureRequest, sink: ContentSink) -> Captured:
        kept.append(request.progress)
        request.progress.advance("half \x1b[2J\nway", 1, 2)
        request.progress.advance("nonsense", "1", -2)  # type: ignore[arg-type]
        sink.add("content", [bytes(1000), bytes(500)])
        return Captured({"bytes": 1500})

    monkeypatch.setattr(Later, "capture", Box.capture)
    misbehave(monkeypatch, "capture", capture)
    heard = ProgressLog()
    with open_workspace(workspace, create=True) as opened:
        with opened.engine.vault.progress.reporting_to(heard):
            opened.engine.save(SessionId("s"), make_intent("why"))
            kept[0].advance("given up", 1, 1)
        assert [phase for phase in heard.phases if phase.startswith(("box", "later"))] == [
            "box: saving",
            "box: half [2Jway",
            "later: saving",
        ]
        assert heard.phases["box: half [2Jway"] == [(1, 2)]
        assert 1500 in heard.moved
        Box.content = b"changed"
        with opened.engine.vault.progress.reporting_to(heard):
            opened.engine.restore(opened.engine.restore_request(SessionId("s"), "HEAD"))
        assert list(heard.phases)[-4:] == [
            *("box: restoring", "box: verifying", "later: restoring", "later: verifying")
        ]

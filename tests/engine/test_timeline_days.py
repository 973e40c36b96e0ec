"""The timeline of the last days, of one session or of the whole workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.history.timeline import timeline, workspace_timeline
from tests.support.composition import SESSION, SteppedClock, composed
from tests.support.hostile_trees import fill

DAY_NS = 86_400 * 1_000_000_000
NOON_NS = 1_800_000_000 * 1_000_000_000
OTHER = SessionId("other")


@pytest.mark.requirement("SE-9")
def test_nothing_older_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, clock = tmp_path / "project", SteppedClock(NOON_NS)
    fill(workspace / "file", b"0")
    with composed(workspace, clock=clock) as made:
        for day in range(20):
            clock.now = NOON_NS + day * DAY_NS
            for session_id in (SESSION, OTHER):
                fill(workspace / "file", f"{day} {session_id}".encode())
                made.engine.save(session_id, make_intent(f"day {day}"))
        vault = made.engine.vault
        read: list[int] = []
        whole = vault.catalog.outline

        def counted(session_id: SessionId, *, limit: int, before: int | None = None) -> object:
            rows = whole(session_id, limit=limit, before=before)
            read.append(len(rows))
            return rows

        monkeypatch.setattr("holdfast.engine.history.timeline._FIRST_CHUNK", 4)
        monkeypatch.setattr(vault.catalog, "outline", counted)
        since_ns = clock.now - 2 * DAY_NS
        one = timeline(vault, SESSION, limit=1000, before=None, since_ns=since_ns)
        assert [e.checkpoint.reasoning for e in one.events if e.checkpoint] == [
            "day 19",
            "day 18",
            "day 17",
        ]
        assert one.next is None
        assert sum(read) <= 8
        both = workspace_timeline(vault, limit=1000, before=None, since_ns=since_ns)
        assert [e.session_id for e in both.events] == [OTHER, SESSION] * 3
        page = workspace_timeline(vault, limit=4, before=None, since_ns=since_ns)
        rest = workspace_timeline(vault, limit=4, before=page.next, since_ns=since_ns)
        assert (len(page.events), len(rest.events), rest.next) == (4, 2, None)


@pytest.mark.requirement("SE-9")
def test_the_library_gives_the_last_days_of_one_session_or_of_all(tmp_path: Path) -> None:
    fill(tmp_path / "project" / "file", b"0")
    with (
        SessionCheckpointer(tmp_path / "project", "one") as one,
        SessionCheckpointer(tmp_path / "project", "two") as two,
    ):
        one.user_message("hello")
        two.checkpoint("by hand")
        assert [e.type.value for e in one.timeline(days=7).events] == ["message", "checkpoint"]
        assert len(one.timeline(days=7, everywhere=True).events) == 3
        assert one.timeline(days=0, everywhere=True).events == ()

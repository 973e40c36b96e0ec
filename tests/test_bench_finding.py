"""The benchmark of searching and timelines measures a store that really holds what it says.

Nothing here looks at how long anything took.
"""

from pathlib import Path

from bench import finding
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.engine.search.search import search


def test_what_is_measured_is_there_and_every_query_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with open_workspace(tmp_path, create=True, force=True) as opened:
        engine = opened.engine
        finding.fill(engine, 300, 200)
        finding._first_search(engine)
        assert engine.vault.catalog.counts().checkpoints == 301
        session = SessionId("session-0")
        assert len(search(engine.vault, "the", session_id=session)) == 20
        assert len(search(engine.vault, "zyzzyva", session_id=None)) == 0
        rows = list(finding.measure(engine, 1))
    assert len(rows) == len(finding.QUERIES) + 8
    assert all(took_ms > 0 for _, took_ms, _ in rows)

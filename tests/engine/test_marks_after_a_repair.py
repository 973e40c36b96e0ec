"""Which messages hold, after the catalog was lost and rebuilt."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.maintenance import repair_workspace


@pytest.mark.requirement("SE-4", "RL-4")
def test_marks_of_a_lost_catalog_do_not_mix_with_those_of_the_repaired_one(
    tmp_path: Path,
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()

    def step(session: SessionCheckpointer, number: int) -> str:
        (workspace / "file").write_text(str(number))
        session.add_message("user", f"said {number}")
        return session.checkpoint(f"step {number}")

    def gone(session: SessionCheckpointer) -> list[int]:
        return [m.index for m in session.messages() if m.rolled_back_by is not None]

    with SessionCheckpointer(workspace, "s") as session:
        made = [step(session, number) for number in range(6)]
        session.restore(made[1])
        step(session, 6)
        session.restore(made[4])
        assert gone(session) == [5, 6]
        store = session.save()
    for path in store.glob("catalog.db*"):
        path.unlink()
    assert repair_workspace(workspace, act=True).done
    with SessionCheckpointer(workspace, "s") as session:
        new = [step(session, number) for number in (7, 8, 9)]
        assert gone(session) == [5, 6]
        session.restore(new[0])
        assert gone(session) == [5, 6, 8, 9]
        session.undo()
        assert gone(session) == [5, 6]
        session.restore(new[1])
        assert gone(session) == [5, 6, 9]

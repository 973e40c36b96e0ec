"""Any history that can be made travels: the same trees, intents, parents and names elsewhere."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.engine.repair.check import run_checks
from holdfast.ports.progress import NoProgress
from tests.engine.test_random_work import Work
from tests.support.composition import configure
from tests.support.hostile_trees import PIECES, remove_deep
from tests.support.session_states import get_snapshot, line_end
from tests.support.tree_hash import describe, differences

pytestmark = pytest.mark.requirement("ST-7")


class TravellingWork(Work):
    """Random work whose history is taken to a store of its own now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.saved = 0

    @rule(
        goal=st.none() | st.text(max_size=5),
        tags=st.lists(st.sampled_from(["a", "b", "ü"]), max_size=2),
        calls=st.lists(st.sampled_from(["Bash(ls)", "Edit"]), max_size=2),
        confidence=st.floats(0, 1),
    )
    def save_with_an_intent(
        self, goal: str | None, tags: list[str], calls: list[str], confidence: float
    ) -> None:
        self.saved += 1
        made = self.session.checkpoint(
            f"reason {self.saved}",
            goal_id=goal,
            tags=tags,
            tool_calls=[*calls, {"name": "tool", "input": {"n": [self.saved]}}],
            confidence=confidence,
            name=f"name-{self.saved}",
        )
        self.model.saved(made, describe(self.workspace))

    @precondition(lambda self: self.model.order)
    @rule()
    def travel(self) -> None:
        bundle = self.home / "travel.holdfast"
        self.session.export(bundle, replace=True)
        place = Path(tempfile.mkdtemp(prefix="travel-"))
        (place / "there").mkdir()
        home = os.environ["HOLDFAST_HOME"]
        os.environ["HOLDFAST_HOME"] = str(place / "home")
        try:
            self._arrive(bundle, place / "there")
        finally:
            os.environ["HOLDFAST_HOME"] = home
            remove_deep(place)

    def _arrive(self, bundle: Path, there: Path) -> None:
        said = SessionCheckpointer.import_bundle(there, bundle, foreign=True)
        assert said.already_there == 0
        with SessionCheckpointer.load(there, "s") as arrived:
            for here, at in zip(
                self.session.history(None, records=True),
                arrived.history(None, records=True),
                strict=True,
            ):
                assert here.to_dict() == at.to_dict()
            assert [s.kind for s in self.session.summaries(records=True)] == [
                s.kind for s in arrived.summaries(records=True)
            ]
            assert line_end(arrived) == line_end(self.session) == said.latest
            assert arrived.head_id == self.session.head_id
            for checkpoint in self.model.order[-2:]:
                arrived.restore(checkpoint)
                found = differences(describe(there), self.model.moments[checkpoint].state)
                assert found == []
        again = SessionCheckpointer.import_bundle(there, bundle, foreign=True)
        assert again.added == ()
        with open_workspace(there, create=False) as opened:
            vault = opened.engine.vault
            assert list(run_checks(vault, data=True, progress=NoProgress())) == []


def test_any_history_arrives_as_it_left() -> None:
    bounded = settings(max_examples=6, phases=(Phase.explicit, Phase.generate))
    run_state_machine_as_test(TravellingWork, settings=bounded)


@pytest.mark.torture
def test_many_histories_arrive_as_they_left(torture_seconds: float) -> None:
    rounds = max(1, int(torture_seconds / 20))
    run_state_machine_as_test(TravellingWork, settings=settings(max_examples=15 * rounds))


def test_every_kind_of_hostile_tree_arrives_as_it_left(tmp_path: Path) -> None:
    workspace, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    for name, piece in PIECES.items():
        (workspace / name).mkdir(parents=True)
        piece.build(workspace / name)
    before = describe(workspace, mtimes=True)
    bundle = tmp_path / "hostile.holdfast"
    with SessionCheckpointer(workspace, "s") as session:
        good = session.checkpoint("whole")
        for name, piece in PIECES.items():
            piece.wreck(workspace / name)
        session.checkpoint("wrecked")
        session.restore(good)
        session.export(bundle)
        kept = {os.fsencode(a.path) for a in get_snapshot(session, good).artifacts}
    SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    with SessionCheckpointer.load(there, "s") as arrived:
        arrived.restore(good)
    after = describe(there, mtimes=True)
    assert kept
    assert {path: after.get(path) for path in kept} == {path: before[path] for path in kept}
    remove_deep(there)
    shutil.rmtree(tmp_path / "nothing", ignore_errors=True)


def test_a_long_history_of_small_edits_is_a_small_file_and_a_small_store(tmp_path: Path) -> None:
    """Versions are stored against each other in the bundle, and again where they arrive."""
    import random

    workspace, there = tmp_path / "here", tmp_path / "there"
    workspace.mkdir()
    there.mkdir()
    rng = random.Random(5)
    lines = [rng.randbytes(30).hex() for _ in range(2_000)]
    bundle = tmp_path / "long.holdfast"
    configure(workspace, max_manual_checkpoints=0)
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(60):
            lines[rng.randrange(len(lines))] = f"edit {number}"
            (workspace / "file").write_text("\n".join(lines))
            session.checkpoint(f"edit {number}")
        outcome = session.export(bundle)
        here_bytes = session.stats["bytes_stored"]
    one_version = len("\n".join(lines))
    assert outcome.content_bytes > 60 * one_version
    assert outcome.file_bytes < 3 * one_version
    SessionCheckpointer.import_bundle(there, bundle, foreign=True)
    with SessionCheckpointer.load(there, "s") as arrived:
        assert arrived.stats["bytes_stored"] < 1.5 * here_bytes

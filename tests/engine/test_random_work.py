"""Random work against a naive model: edits, saves, restores, undo, redo, deletes, in any order.

After every restore the tree is compared with what the model remembers, by the independent hasher;
after every save the tree found from what is remembered is compared with one found from nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import NothingToUndo
from holdfast.domain.ids import SessionId
from holdfast.domain.outcomes import RestoreOutcome
from holdfast.engine.retention.deletion import delete
from tests.support.composition import scan_from_nothing
from tests.support.session_states import get_snapshot, line_end
from tests.support.tree_hash import debris, describe, differences
from tests.support.tree_model import SessionModel, State, with_paths_of

pytestmark = pytest.mark.both_stores

NAMES = [b"a", b"b", b"A", b"\xff\xfe", b"new\nline", b" ", b"-x", b"long" * 30]
MODES = [0o644, 0o600, 0o755, 0o444, 0o4711, 0o666]
DIRECTORY_MODES = [0o755, 0o700, 0o555, 0o1777, 0o2750]
CONTENTS = [b"", b"one", b"two", b"three" * 100, b"\0" * 9000, b"x" * 1_200_000]

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(b"/".join)


class Work(RuleBasedStateMachine):
    """One workspace, one session, one model."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="random-work-"))
        self.workspace = self.home / "project"
        self.workspace.mkdir()
        self.session = SessionCheckpointer(self.workspace, "s")
        self.model = SessionModel()

    def teardown(self) -> None:
        self.session.close()
        for directory, _, _ in os.walk(self.workspace):
            os.chmod(directory, 0o700)
        shutil.rmtree(self.home)

    # What an agent does.

    def _at(self, path: bytes) -> bytes:
        return os.fsencode(self.workspace) + b"/" + path

    def _clear(self, path: bytes) -> bytes:
        """The absolute path, free, with directories above it in place of whatever is there."""
        parts = path.split(b"/")
        for count in range(1, len(parts)):
            above = self._at(b"/".join(parts[:count]))
            if not os.path.isdir(above) or os.path.islink(above):
                _remove(above)
                os.mkdir(above)
        target = self._at(path)
        _remove(target)
        return target

    @rule(path=paths, content=st.sampled_from(CONTENTS), mode=st.sampled_from(MODES))
    def write(self, path: bytes, content: bytes, mode: int) -> None:
        target = self._at(path)
        if not os.path.isfile(target) or os.path.islink(target):
            target = self._clear(path)
        with open(target, "wb") as file:
            file.write(content)
        os.chmod(target, mode)

    @rule(path=paths, mode=st.sampled_from(DIRECTORY_MODES))
    def make_directory(self, path: bytes, mode: int) -> None:
        target = self._clear(path)
        os.mkdir(target)
        os.chmod(target, mode)

    @rule(path=paths, to=st.sampled_from([b"a", b"..", b"/etc/hostname", b"\xff", b"a/b"]))
    def make_symlink(self, path: bytes, to: bytes) -> None:
        os.symlink(to, self._clear(path))

    @rule(path=paths)
    def delete(self, path: bytes) -> None:
        if os.path.lexists(self._at(path)):  # a link in the way may lead to itself
            _remove(self._at(path))

    @rule(source=paths, to=paths)
    def move(self, source: bytes, to: bytes) -> None:
        apart = not (to + b"/").startswith(source + b"/")
        if os.path.lexists(self._at(source)) and apart:
            aside = os.fsencode(self.home) + b"/aside"
            os.rename(self._at(source), aside)
            os.rename(aside, self._clear(to))

    @rule(source=paths, to=paths)
    def link(self, source: bytes, to: bytes) -> None:
        old = self._at(source)
        if os.path.isfile(old) and not os.path.islink(old) and source != to:
            aside = os.fsencode(self.home) + b"/aside"
            os.link(old, aside, follow_symlinks=False)
            os.rename(aside, self._clear(to))

    @rule(path=paths, mode=st.sampled_from([0o644, 0o700, 0o755]))
    def change_mode(self, path: bytes, mode: int) -> None:
        target = self._at(path)
        if os.path.lexists(target) and not os.path.islink(target):
            os.chmod(target, mode | 0o700 if os.path.isdir(target) else mode)

    @rule(path=paths)
    def touch(self, path: bytes) -> None:
        if os.path.lexists(self._at(path)):
            os.utime(self._at(path), ns=(10**18, 10**18), follow_symlinks=False)

    # What Holdfast does.

    @rule()
    def save(self) -> None:
        state = describe(self.workspace)
        made = self.session.save_checkpoint("why").checkpoint
        assert describe(self.workspace) == state
        assert made.tree == self._tree_from_nothing()
        assert not made.partial
        self.model.saved(made.id, state)

    def _tree_from_nothing(self) -> bytes:
        with open_workspace(self.workspace, create=False) as opened:
            return scan_from_nothing(opened.engine.vault).tree

    @precondition(lambda self: self.model.order)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(self.model.order))
        before = describe(self.workspace)
        self._expect_restored(target, self.session.restore_checkpoint(target), before)

    @precondition(
        lambda self: (
            len(self.model.line) > 1 and self.model.line[1].checkpoint in self.model.moments
        )
    )
    @rule()
    def restore_one_step_back(self) -> None:
        target = self.model.line[1].checkpoint
        before = describe(self.workspace)
        outcome = self.session.restore_checkpoint()
        self._expect_restored(target, outcome, before)

    def _expect_restored(self, target: str, outcome: RestoreOutcome, before: State) -> None:
        assert outcome.restored_to == target
        if outcome.recorded:
            self._expect(self.model.restored(target, outcome.record, before))
            return
        assert before == self.model.moments[target].state
        assert self.model.redoable == []
        assert self.model.line[0].checkpoint == target
        assert line_end(self.session) == outcome.record == self.model.head_is
        self._expect(before)

    @precondition(lambda self: self.model.order)
    @rule(data=st.data())
    def restore_paths(self, data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(self.model.order))
        before, then = describe(self.workspace), self.model.moments[target].state
        known = sorted(before.keys() | then.keys())
        linked = any(node.names for node in (*before.values(), *then.values()))
        if not known or linked:
            return
        chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True))
        texts = [os.fsdecode(path) for path in chosen]
        outcome = self.session.restore_checkpoint(target, texts)
        if outcome.recorded:
            self.model.restored_paths(outcome.record, before)
        else:
            assert line_end(self.session) == outcome.record == self.model.head_is
        self._expect(with_paths_of(before, then, chosen))

    @rule()
    def undo(self) -> None:
        before = describe(self.workspace)
        if not self.model.undoable:
            with pytest.raises(NothingToUndo):
                self.session.undo()
            return
        record = self.session.undo().record
        self._expect(self.model.undone(record, before))

    @rule()
    def redo(self) -> None:
        before = describe(self.workspace)
        if not self.model.redoable:
            with pytest.raises(NothingToUndo):
                self.session.redo()
            return
        record = self.session.redo().record
        self._expect(self.model.redone(record, before))

    @precondition(lambda self: len(self.model.order) > 1)
    @rule(data=st.data())
    def delete_checkpoint(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.model.order))
        with open_workspace(self.workspace, create=False) as opened:
            session = SessionId("s")
            delete(opened.engine, opened.engine.resolve(session, gone))
        self.model.deleted(gone)
        assert self.session.get(gone) is None

    @rule()
    def open_again(self) -> None:
        self.session.close()
        self.session = SessionCheckpointer(self.workspace, "s")

    @rule()
    def let_the_clock_tick(self) -> None:
        """Old enough to be trusted from memory: what the next scan looks at is then less."""
        threading.Event().wait(0.025)

    def _expect(self, state: State) -> None:
        assert differences(describe(self.workspace), state) == []
        assert debris(self.workspace) == []

    @invariant()
    def history_is_as_the_model_says(self) -> None:
        assert [s.id for s in self.session.summaries()] == self.model.order[::-1]
        assert self.session.checkpoint_count == len(self.model.order)

    @invariant()
    def head_and_the_steps_back_from_it_are_as_the_model_says(self) -> None:
        line = [step.checkpoint for step in self.model.line]
        assert self.session.head_id == (line[0] if line else None)
        for number, checkpoint in enumerate(line[1:], start=1):
            assert get_snapshot(self.session, f"HEAD~{number}").id == checkpoint
        assert self.session.get(f"HEAD~{max(len(line), 1)}") is None


def _remove(path: bytes) -> None:
    """Like an agent's `rm -rf`, read-only directories included."""
    if os.path.isdir(path) and not os.path.islink(path):
        for directory, _, _ in os.walk(path):
            os.chmod(directory, 0o700)
        shutil.rmtree(path)
    else:
        if os.path.lexists(path):  # not so below a link that leads to itself
            os.unlink(path)


@pytest.mark.requirement("CP-3", "CP-4", "CP-11", "RB-2", "RB-7", "RL-5")
def test_random_work_is_always_as_the_model_says() -> None:
    # Without shrinking: a failure shows its steps at once instead of after minutes.
    bounded = settings(max_examples=12, phases=(Phase.explicit, Phase.generate))
    run_state_machine_as_test(Work, settings=bounded)


@pytest.mark.torture
@pytest.mark.requirement("CP-3", "CP-11", "RB-2", "RB-7")
def test_much_random_work_is_always_as_the_model_says(torture_seconds: float) -> None:
    """As many examples as fit into this campaign's time."""
    rounds = max(1, int(torture_seconds / 12))
    run_state_machine_as_test(Work, settings=settings(max_examples=40 * rounds))

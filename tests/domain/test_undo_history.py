"""Undo and redo as a walk over the log: what is the last thing that happened."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.intent import SnapshotIntent
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.timeline.undo_history import (
    Difference,
    EarlierNeeded,
    Moment,
    Step,
    UndoHistory,
    first_certain,
)

pytestmark = pytest.mark.requirement("RB-11")


def tree(content: str) -> Digest:
    return Digest(content.encode().ljust(32, b"."))


@dataclass
class Log:
    """A workspace whose whole content is one word, and the log of what was done to it."""

    content: str = "a"
    moments: list[Moment] = field(default_factory=list)

    def save(self, kind: Kind = Kind.TOOL, session: str = "s") -> CheckpointId:
        return self._add(OperationKind.CHECKPOINT, self.content, kind, session).made.id

    def restore(self, content: str, target: CheckpointId | None = None) -> None:
        self.save(Kind.SAFETY)
        self.content = content
        self._add(OperationKind.RESTORE, content, Kind.RESTORE, "s", target)

    def undo(self, turn: frozenset[CheckpointId] | None = None, *, reverses: bool = False) -> bool:
        step = self.step(turn)
        if step is None:
            return False
        self.save(Kind.SAFETY)
        target = step.before.newest_checkpoint
        if step.after is not None and step.after.restored is not None:
            above = next(m for m in self.moments if m.operation is step.after.restored)
            target = self.moments[self.moments.index(above) - 1].made
        self.content = target.tree.decode().rstrip(".")
        undone = step.after.since.sequence if reverses and step.after is not None else None
        self._add(OperationKind.UNDO, self.content, Kind.RESTORE, "s", target.id, undone)
        return True

    def redo(self) -> bool:
        future = self.history.redoable
        if not future:
            return False
        undo = future[-1].undo
        safety = next(
            self.moments[n - 1].made for n, m in enumerate(self.moments) if m.operation is undo
        )
        self.save(Kind.SAFETY)
        self.content = safety.tree.decode().rstrip(".")
        self._add(OperationKind.REDO, self.content, Kind.RESTORE, "s", safety.id, undo.sequence)
        return True

    @property
    def history(self) -> UndoHistory:
        return UndoHistory(self.moments)

    def step(self, turn: frozenset[CheckpointId] | None = None) -> Step | None:
        if turn is not None:
            return self.history.turn(tree(self.content), _differs, turn)
        return self.history.step(tree(self.content), _differs)

    def _add(
        self,
        operation: OperationKind,
        content: str,
        kind: Kind,
        session: str,
        target: CheckpointId | None = None,
        reverses: int | None = None,
    ) -> Moment:
        number = 1 + (self.moments[-1].operation.sequence if self.moments else 0)
        identifier = CheckpointId(f"{number:020}")
        made = Checkpoint(
            sequence=number,
            id=identifier,
            session_id=SessionId(session),
            parent=None,
            kind=kind,
            created_at_ns=number,
            tree=tree(content),
            intent=SnapshotIntent("why"),
            files=1,
            size_bytes=1,
            changed=ChangeCounts(),
            restores_from=target,
        )
        done = Operation(number, operation, SessionId(session), number, identifier)
        if reverses is not None:
            done = Operation(
                number, operation, SessionId(session), number, identifier, reverses=reverses
            )
        self.moments.append(Moment(done, made))
        return self.moments[-1]


def _differs(old: Digest, new: Digest) -> bool:
    return old != new


def worked(contents: Sequence[str]) -> Log:
    log = Log()
    for content in contents:
        log.content = content
        log.save()
    return log


def test_unsaved_changes_go_first_then_each_saved_step() -> None:
    log = worked("abc")
    log.content = "d"
    seen = []
    while log.undo():
        seen.append(log.content)
    assert seen == ["c", "b", "a"]
    while log.redo():
        seen.append(log.content)
    assert seen == ["c", "b", "a", "b", "c", "d"]


def test_saves_of_one_state_by_several_sessions_are_no_steps() -> None:
    log = worked("ab")
    log.save(session="other")
    log.save(Kind.MANUAL)
    assert log.undo()
    assert log.content == "a"
    log.save(session="other")  # an agent's next hook finds nothing changed
    assert log.redo()
    assert log.content == "b"


def test_a_change_after_an_undo_ends_what_can_be_redone_and_is_undone_itself() -> None:
    log = worked("abc")
    log.undo()
    log.content = "x"
    log.save()
    assert not log.redo()
    log.undo()
    assert log.content == "b"
    log.undo()
    assert log.content == "a"
    assert log.redo()
    assert log.redo()
    assert log.content == "x"


def test_what_a_redo_saves_first_does_not_end_what_else_can_be_redone() -> None:
    log = worked("abc")
    log.undo()
    log.undo()
    log.content = "x"  # or the same files, looked at with the rules of both sides
    assert log.redo()
    assert log.redo()
    assert log.content == "c"
    seen = []
    while log.undo():
        seen.append(log.content)
    assert seen == ["b", "x", "a"]


def test_a_restore_is_one_step_and_what_was_unsaved_before_it_another() -> None:
    log = worked("abc")
    log.content = "d"
    log.restore("a", CheckpointId(f"{1:020}"))
    seen = []
    while log.undo():
        seen.append(log.content)
    assert seen == ["d", "c", "b", "a"]


def test_a_restore_that_changed_nothing_is_undone_separately_first() -> None:
    log = worked("ab")
    log.restore("b", CheckpointId(f"{2:020}"))
    assert log.undo()
    assert log.content == "b"
    assert log.undo()
    assert log.content == "a"


def test_a_turn_goes_back_to_the_state_in_which_a_message_was_sent() -> None:
    log = worked("a")
    first = log.save(Kind.MESSAGE)
    for content in "bc":
        log.content = content
        log.save()
    second = log.save(Kind.MESSAGE)
    for content in "de":
        log.content = content
        log.save()
    last = log.save(Kind.MESSAGE)  # nothing happened since: this is not the turn to undo
    turns = frozenset((first, second, last))
    seen = []
    while log.undo(turns):
        seen.append(log.content)
    assert seen == ["c", "a"]
    while log.redo():
        seen.append(log.content)
    assert seen == ["c", "a", "c", "e"]


def test_whatever_is_done_undo_changes_something_and_redo_returns_exactly() -> None:
    chosen = random.Random(20261116)
    for _ in range(40):
        log = Log()
        log.save()
        for _ in range(chosen.randrange(1, 25)):
            deed = chosen.choice(("edit", "save", "restore", "undo", "undo", "redo"))
            before = log.content
            if deed == "edit":
                log.content = chosen.choice("abcdefgh")
            elif deed == "save":
                log.save(session=chosen.choice("st"))
            elif deed == "restore":
                made = chosen.choice(log.moments).made
                log.restore(made.tree.decode().rstrip("."), made.id)
            elif deed == "undo":
                step = log.step()
                if log.undo():
                    assert step is not None
                    idle = step.after is not None and step.after.restored is not None
                    assert log.content != before or idle
                    undone = log.content
                    assert log.redo()
                    assert log.content == before
                    assert log.undo()
                    assert log.content == undone
            else:
                log.redo()
        seen = {log.content}
        for _ in range(len(log.moments)):
            if not log.undo():
                break
            seen.add(log.content)
        assert log.content == "a"  # in the end, how it all began


def _compare(old: Digest, new: Digest) -> Difference:
    """Capitals are the same content with other times; a longer word only has more."""
    before, after = old.lower().rstrip(b"."), new.lower().rstrip(b".")
    if before == after:
        return Difference.NONE
    return Difference.MORE if after.startswith(before) else Difference.OTHER


def _answers(history: UndoHistory, present: Digest, messages: frozenset[CheckpointId]) -> object:
    def differs(old: Digest, new: Digest) -> bool:
        return old.lower() != new.lower()

    def short(step: Step | None) -> object:
        if step is None:
            return None
        known = [one.id for one in step.before.checkpoints]
        return known, step.after and (step.after.since, [one.id for one in step.after.checkpoints])

    undone = [(one.undo, [state.since for state in one.states]) for one in history.redoable]
    return (
        short(history.step(present, differs)),
        short(history.turn(present, differs, messages)),
        undone,
    )


def test_the_end_of_the_log_answers_as_the_whole_log_does_or_asks_for_more(
    rng: random.Random,
) -> None:
    answered = asked = 0
    for _ in range(200):
        log = Log()
        for _ in range(rng.randint(1, 40)):
            deed = rng.choice("sswwwwmruuyx")
            if deed == "w":
                log.content = rng.choice(("a", "b", "B", "c", "ab", "aB", "abc"))
            elif deed in "sm":
                log.save(Kind.MESSAGE if deed == "m" else Kind.TOOL)
            elif deed == "r" and log.moments:
                target = rng.choice(log.moments).made
                log.restore(target.tree.decode().rstrip("."), target.id)
            elif deed == "u":
                log.undo(reverses=rng.random() < 0.7)
            elif deed == "y":
                log.redo()
            elif deed == "x" and log.moments:
                log.moments.pop(rng.randrange(len(log.moments)))
        messages = frozenset(m.made.id for m in log.moments if m.made.kind is Kind.MESSAGE)
        present = tree(log.content)
        expected = _answers(UndoHistory(log.moments, _compare), present, messages)
        for count in range(2, len(log.moments)):
            newest = log.moments[-count:]
            start = first_certain(newest, _compare)
            if start is None:
                continue
            try:
                history = UndoHistory(newest[start:], _compare, whole=False)
                assert _answers(history, present, messages) == expected
                answered += 1
            except EarlierNeeded:
                asked += 1
    assert answered > 100
    assert asked > 100


def test_a_restore_that_was_rolled_back_after_a_crash_is_nothing_to_undo() -> None:
    log = worked("ab")
    saved = log.save(Kind.SAFETY)
    rolled_back = log._add(OperationKind.RESTORE, "b", Kind.RESTORE, "s", saved)
    log.moments[-1] = replace(rolled_back, operation=replace(rolled_back.operation, safety=saved))
    assert log.undo()
    assert log.content == "a"

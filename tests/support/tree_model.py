"""A naive model of a session: states as plain descriptions, history as plain lists.

It knows nothing of records, trees or plans. A position in history is the list of checkpoints that
HEAD, HEAD~1, … mean, newest first; the record of a restore of everything to one of them takes its
place when that checkpoint is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tests.support.tree_hash import Node

State: TypeAlias = dict[bytes, Node]


@dataclass(frozen=True, slots=True)
class Step:
    """One checkpoint on the way back, and its record if it was restored."""

    checkpoint: str
    record: str | None = None


Line: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """Where the work was: the tree and the line of checkpoints behind it."""

    state: State
    line: Line


@dataclass(slots=True)
class SessionModel:
    """What a session must answer."""

    line: Line = ()
    moments: dict[str, Moment] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    undoable: list[Moment] = field(default_factory=list)
    redoable: list[Moment] = field(default_factory=list)
    head_is: str | None = None

    def saved(self, checkpoint: str, state: State) -> None:
        self.line = (Step(checkpoint), *self.line)
        self.moments[checkpoint] = Moment(state, self.line)
        self.order.append(checkpoint)
        self.head_is = checkpoint

    def restored(self, checkpoint: str, record: str, before: State) -> State:
        self.undoable.append(Moment(before, self.line))
        self.redoable.clear()
        moment = self.moments[checkpoint]
        self.line = (replace(moment.line[0], record=record), *moment.line[1:])
        self.head_is = record
        return moment.state

    def restored_paths(self, record: str, before: State) -> None:
        """HEAD stays where it was. The record has a tree of its own: it replaces nothing."""
        self.undoable.append(Moment(before, self.line))
        self.redoable.clear()
        self.head_is = record

    def undone(self, record: str, before: State) -> State:
        return self._moved(self.undoable, self.redoable, record, before)

    def redone(self, record: str, before: State) -> State:
        return self._moved(self.redoable, self.undoable, record, before)

    def _moved(
        self, source: list[Moment], other: list[Moment], record: str, before: State
    ) -> State:
        moment = source.pop()
        other.append(Moment(before, self.line))
        self.line = moment.line
        self.head_is = record
        return moment.state

    def deleted(self, checkpoint: str) -> None:
        del self.moments[checkpoint]
        self.order.remove(checkpoint)
        if self.head_is == checkpoint:
            self.line = self.line[1:]
            self.head_is = None
        self.line = _without(self.line, checkpoint)
        self.moments = {key: _forget(m, checkpoint) for key, m in self.moments.items()}
        self.undoable = [_forget(moment, checkpoint) for moment in self.undoable]
        self.redoable = [_forget(moment, checkpoint) for moment in self.redoable]


def _forget(moment: Moment, checkpoint: str) -> Moment:
    return replace(moment, line=_without(moment.line, checkpoint))


def _without(line: Line, checkpoint: str) -> Line:
    kept: list[Step] = []
    for step in line:
        if step.checkpoint != checkpoint:
            kept.append(step)
        elif step.record is not None:
            kept.append(Step(step.record))
    return tuple(kept)


def with_paths_of(current: State, target: State, paths: list[bytes]) -> State:
    """`current` with everything at and below `paths` as `target` has it, and the directories that
    lead there."""
    result = dict(current)
    for chosen in paths:
        for path in [p for p in result if _is_within(p, chosen)]:
            del result[path]
        wanted = {p: node for p, node in target.items() if _is_within(p, chosen)}
        if not wanted:
            continue
        for above in _above(chosen):
            if above not in result or result[above].kind != "directory":
                result[above] = target[above]
        result |= wanted
    return result


def _is_within(path: bytes, directory: bytes) -> bool:
    return path == directory or path.startswith(directory + b"/")


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]

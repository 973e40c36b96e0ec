"""Which checkpoints may go: rules per kind as data, and the decision for each with its reason.

Pure: the caller says what time it is and which checkpoints are protected. A checkpoint is kept
when no rule speaks about its kind, when it is protected, or when it is both young enough and
among the newest of its kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import Operation, undo_lists
from holdfast.domain.sessions import Session

_HOUR_NS = 3600 * 1_000_000_000
_DAY_NS = 24 * _HOUR_NS


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How long and how many of a kind are kept in a session."""

    longest_ns: int
    most: int


DEFAULT_RULES: Mapping[Kind, RetentionRule] = {
    Kind.MERGE: RetentionRule(30 * _DAY_NS, 50),
    Kind.END_OF_DAY: RetentionRule(7 * _DAY_NS, 7),
    Kind.SAFETY: RetentionRule(_DAY_NS, 10),
    Kind.RISKY: RetentionRule(_DAY_NS, 10),
    Kind.TOOL: RetentionRule(_DAY_NS, 200),
    Kind.MESSAGE: RetentionRule(_DAY_NS, 200),
    Kind.INTERVAL: RetentionRule(_DAY_NS, 50),
    Kind.THRESHOLD: RetentionRule(_DAY_NS, 50),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to one checkpoint, and why."""

    checkpoint: Checkpoint
    keep: bool
    reason: str


def protections(
    session: Session, first: CheckpointId | None, operations: Iterable[Operation]
) -> dict[CheckpointId, str]:
    """The checkpoints of a session that nothing drops unasked, each with the reason."""
    lists = undo_lists(operations)
    newest = (*lists.undoable[-1:], *lists.redoable[-1:])
    reasons = {op.safety: "undo or redo needs it" for op in newest if op.safety is not None}
    named = (
        (first, "it is the initial checkpoint of its session"),
        (session.head, "the session stands on it (HEAD)"),
        (session.approved, "it belongs to an approved round"),
    )
    return reasons | {checkpoint: why for checkpoint, why in named if checkpoint is not None}


def decide(
    checkpoints: Iterable[Checkpoint],
    *,
    now_ns: int,
    protected: Collection[CheckpointId],
    rules: Mapping[Kind, RetentionRule] = DEFAULT_RULES,
) -> list[Decision]:
    """One decision per checkpoint, newest first within each session and kind."""
    groups: defaultdict[tuple[SessionId, Kind], list[Checkpoint]] = defaultdict(list)
    for checkpoint in checkpoints:
        groups[checkpoint.session_id, checkpoint.kind].append(checkpoint)
    decisions: list[Decision] = []
    for (_, kind), members in groups.items():
        members.sort(key=lambda c: -c.sequence)
        rule = rules.get(kind)
        for rank, checkpoint in enumerate(members):
            decisions.append(_decide(checkpoint, rank, rule, now_ns, protected))
    return decisions


def _decide(
    checkpoint: Checkpoint,
    rank: int,
    rule: RetentionRule | None,
    now_ns: int,
    protected: Collection[CheckpointId],
) -> Decision:
    kind = checkpoint.kind.value
    if rule is None:
        return Decision(checkpoint, True, f"{kind} checkpoints are kept forever")
    if checkpoint.id in protected:
        return Decision(checkpoint, True, "protected: HEAD, initial, approved or still undoable")
    if rank >= rule.most:
        return Decision(checkpoint, False, f"more than {rule.most} newer {kind} checkpoints")
    if now_ns - checkpoint.created_at_ns > rule.longest_ns:
        return Decision(checkpoint, False, f"older than {rule.longest_ns // _HOUR_NS} hours")
    return Decision(checkpoint, True, f"among the newest {rule.most} and young enough")

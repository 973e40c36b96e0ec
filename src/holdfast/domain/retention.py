"""Which checkpoints expire: rules per kind as data, and the decision for each with its reason.

Pure: the caller passes the time and the protected checkpoints with reasons. A checkpoint is kept if
it is protected or named, if its kind has no rule, or if it is among the `least` newest of its kind.
It is also kept if it is young enough and among the `most` newest. The state before a user's message
has its own age limit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind, undo_lists
from holdfast.domain.sessions import Session
from holdfast.domain.wording import count_words

_SECOND_NS = 1_000_000_000
_HOUR_NS = 3600 * _SECOND_NS
_DAY_NS = 24 * _HOUR_NS
_UNITS = {"minute": 60 * _SECOND_NS, "hour": _HOUR_NS, "day": _DAY_NS, "week": 7 * _DAY_NS}
_AGE = re.compile(r"(-?\d+(?:\.\d+)?) ?(minute|hour|day|week)s?", re.ASCII)
_LONGEST_AGE_NS = 100 * 366 * _DAY_NS
_LARGEST_COUNT = 1_000_000
FOREVER = "forever"
ALWAYS_KEPT = (Kind.INITIAL,)
APPROVED = "it is part of an approved round"


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How long and how many of a kind are kept in a session; None means no limit. The state before
    a user's message is kept until `before_messages_ns`, if that is longer."""

    longest_ns: int | None = None
    most: int | None = None
    least: int = 0
    before_messages_ns: int | None = None

    def to_plain(self) -> dict[str, Any] | str:
        """The form used in settings."""
        plain: dict[str, Any] = {}
        if self.longest_ns is not None:
            plain["age"] = age_in_words(self.longest_ns)
        if self.most is not None:
            plain["most"] = self.most
        if self.least:
            plain["least"] = self.least
        if self.before_messages_ns is not None:
            plain["before_messages"] = age_in_words(self.before_messages_ns)
        return plain or FOREVER


_MONTH_NS = 30 * _DAY_NS
_WEEK = RetentionRule(7 * _DAY_NS, before_messages_ns=_MONTH_NS)
DEFAULT_RULES: Mapping[Kind, RetentionRule] = {
    Kind.MERGE: RetentionRule(_MONTH_NS, 50),
    Kind.END_OF_DAY: RetentionRule(7 * _DAY_NS, 7, before_messages_ns=_MONTH_NS),
    Kind.SAFETY: RetentionRule(_DAY_NS, 10),
    Kind.RISKY: RetentionRule(_MONTH_NS),
    Kind.MESSAGE: RetentionRule(_MONTH_NS),
    Kind.TOOL: _WEEK,
    Kind.INTERVAL: _WEEK,
    Kind.THRESHOLD: _WEEK,
}

Rules = tuple[tuple[Kind, RetentionRule], ...]


def parse_rules(value: Any) -> Rules:
    """Parse a table of kinds; `ValueError` if something is unknown, negative or contradictory."""
    if isinstance(value, tuple):
        return value  # already parsed
    if not isinstance(value, dict):
        raise ValueError('expects a table of kinds, e.g. {tool = {age = "3 days", most = 100}}')
    return tuple(sorted((_kind(key), _rule(key, rule)) for key, rule in value.items()))


def rules_with(own: Rules) -> dict[Kind, RetentionRule]:
    return {**DEFAULT_RULES, **dict(own)}


def _kind(key: Any) -> Kind:
    try:
        kind = Kind(key)
    except ValueError:
        known = ", ".join(k.value for k in Kind if k not in ALWAYS_KEPT)
        raise ValueError(f"unknown kind of checkpoint: {key!r}; kinds are: {known}") from None
    if kind in ALWAYS_KEPT:
        raise ValueError(f"{key} checkpoints are always kept; no rule can delete them")
    return kind


def _rule(kind: str, value: Any) -> RetentionRule:
    if value == FOREVER:
        return RetentionRule()
    if not isinstance(value, dict) or not value:
        raise ValueError(f'{kind} expects "forever" or a table with age, most, least')
    if unknown := sorted(value.keys() - {"age", "most", "least", "before_messages"}):
        raise ValueError(
            f"{kind} has no {unknown[0]!r}; it takes age, most, least and before_messages"
        )
    rule = RetentionRule(
        parse_age(value["age"]) if "age" in value else None,
        _count(f"{kind}.most", value["most"]) if "most" in value else None,
        _count(f"{kind}.least", value.get("least", 0)),
        parse_age(value["before_messages"]) if "before_messages" in value else None,
    )
    if rule.most is not None and rule.least > rule.most:
        raise ValueError(
            f"{kind} contradicts itself: it keeps at least {rule.least} and at most {rule.most}"
        )
    return rule


def parse_age(value: Any) -> int:
    """Nanoseconds from "36 hours", "7 days" or "2 weeks"."""
    found = _AGE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"{value!r} is not an age; write it like '36 hours' or '7 days'")
    age_ns = float(found[1]) * _UNITS[found[2]]
    if age_ns < 0:
        raise ValueError(f"an age cannot be negative: {value!r}")
    if age_ns > _LONGEST_AGE_NS:
        raise ValueError(f'{value!r} is longer than a century; write "forever"')
    return int(age_ns)


def age_in_words(age_ns: int) -> str:
    for unit in ("week", "day", "hour"):
        number, rest = divmod(age_ns, _UNITS[unit])
        if number and not rest and (unit != "week" or number > 4):
            return f"{number} {unit}{'s' if number != 1 else ''}"
    minutes = age_ns / _UNITS["minute"]
    return "1 minute" if minutes == 1 else f"{minutes:g} minutes"


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_COUNT:
        raise ValueError(f"{name} expects a number from 0 to {_LARGEST_COUNT}, not {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether one checkpoint is kept, and why."""

    checkpoint: Checkpoint
    keep: bool
    reason: str


_PROTECTING_KINDS = (*RESTORING_KINDS, OperationKind.ABANDON, OperationKind.APPROVE)


def protections(
    session: Session, first: CheckpointId | None, operations: Iterable[Operation]
) -> dict[CheckpointId, str]:
    """A session's checkpoints that are never deleted automatically, each with the reason."""
    operations = [op for op in operations if op.kind in _PROTECTING_KINDS]
    lists = undo_lists(operations)
    newest = (*lists.undoable[-1:], *lists.redoable[-1:])
    named = [(op.safety, "undo or redo needs it") for op in newest]
    named += [
        (op.safety or op.head_before, "an abandoned round ended there")
        for op in operations
        if op.kind in (OperationKind.RESET, OperationKind.ABANDON)
    ]
    named += [
        (first, "it is the initial checkpoint of its session"),
        (session.head, "it is the HEAD of its session"),
        (session.approved, APPROVED),
    ]
    named += [(op.checkpoint, APPROVED) for op in operations if op.kind is OperationKind.APPROVE]
    return {checkpoint: why for checkpoint, why in named if checkpoint is not None}


def decide(
    checkpoints: Iterable[Checkpoint],
    *,
    now_ns: int,
    protected: Mapping[CheckpointId, str],
    rules: Mapping[Kind, RetentionRule] = DEFAULT_RULES,
    before_messages: AbstractSet[CheckpointId] = frozenset(),
) -> list[Decision]:
    """One decision per checkpoint, newest first within each session and kind. `before_messages` are
    the states at the time of a user's message."""
    groups: defaultdict[tuple[SessionId, Kind], list[Checkpoint]] = defaultdict(list)
    for checkpoint in checkpoints:
        groups[checkpoint.session_id, checkpoint.kind].append(checkpoint)
    decisions: list[Decision] = []
    for (_, kind), members in groups.items():
        members.sort(key=lambda c: -c.sequence)
        rule = rules.get(kind, RetentionRule())
        for rank, checkpoint in enumerate(members):
            reason = _kept_regardless(checkpoint, protected)
            keep, why = (True, reason) if reason else _by_rule(checkpoint, rank, rule, now_ns)
            longer_ns = rule.before_messages_ns
            if not keep and longer_ns is not None and checkpoint.id in before_messages:
                keep = now_ns - checkpoint.created_at_ns <= longer_ns
                why = "the state before a user's message" if keep else _too_old(kind, longer_ns)
            decisions.append(Decision(checkpoint, keep, why))
    return decisions


def _kept_regardless(checkpoint: Checkpoint, protected: Mapping[CheckpointId, str]) -> str | None:
    if checkpoint.id in protected:
        return f"protected: {protected[checkpoint.id]}"
    if checkpoint.kind in ALWAYS_KEPT:
        return f"{checkpoint.kind.value} checkpoints are always kept"
    return "it has a name" if checkpoint.name is not None else None


def _by_rule(
    checkpoint: Checkpoint, rank: int, rule: RetentionRule, now_ns: int
) -> tuple[bool, str]:
    kind = checkpoint.kind.value
    if rule.longest_ns is None and rule.most is None:
        return True, f"{kind} checkpoints are kept forever"
    if rank < rule.least:
        return True, f"among the newest {count_words(rule.least, f'{kind} checkpoint')}"
    if rule.most is not None and rank >= rule.most:
        are = "is" if rule.most == 1 else "are"
        return False, f"{count_words(rule.most, f'newer {kind} checkpoint')} {are} kept"
    # If the clock went back, an age is negative: too young to expire.
    if rule.longest_ns is not None and now_ns - checkpoint.created_at_ns > rule.longest_ns:
        return False, _too_old(checkpoint.kind, rule.longest_ns)
    return True, f"within the limits for {kind} checkpoints"


def _too_old(kind: Kind, longest_ns: int) -> str:
    return f"older than {age_in_words(longest_ns)} ({kind.value})"

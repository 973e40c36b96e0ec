"""When a workspace needs an automatic checkpoint: pure decisions for given moments.

    files touched, and quiet for a second (or busy for ten)  → threshold
    anything touched, and the interval is over               → interval
    the time of day is past, once a day                      → end of day
    anything touched since the main branch was checked, and
    quiet as above; or a merge into it is in progress        → merge

Touched files are an upper bound on changed files. So a decision only means to *look*. Whether a
checkpoint is made depends on the changes found (`enough`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta

from holdfast.domain.checkpoints import Kind
from holdfast.domain.wording import count_words

SECOND_NS = 1_000_000_000
QUIET_NS = SECOND_NS
"""A burst of changes is over after this time without any."""

LONGEST_BURST_NS = 10 * SECOND_NS
"""Work that never pauses is checked this often."""


@dataclass(frozen=True, slots=True)
class TriggerRules:
    """The configured triggers; 0 and None disable one."""

    files: int = 5
    interval_ns: int = 30 * 60 * SECOND_NS
    end_of_day: time | None = None
    merges: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything known at one moment. Times in ns are monotonic. `local` is the user's local time,
    and `ended_day` the last day with an end-of-day checkpoint."""

    now_ns: int
    local: datetime
    touched: int
    first_change_ns: int
    last_change_ns: int
    interval_began_ns: int
    """The last checkpoint, or the end of the last interval."""

    looked_ns: int = 0
    looked_at: int = 0
    """How many names had been touched when the last look found too few changes."""

    ended_day: str | None = None
    branch_looked_ns: int = 0
    merge_under_way: bool = False
    """When the main branch was last checked, and whether a merge into it was unfinished."""


def due_trigger(rules: TriggerRules, now: Situation) -> Kind | None:
    """The trigger that calls for a look now."""
    if rules.end_of_day is not None and _day_is_over(rules.end_of_day, now):
        return Kind.END_OF_DAY
    if rules.merges and (at_ns := _merge_may_be_over_ns(now)) is not None and now.now_ns >= at_ns:
        return Kind.MERGE
    if _may_be_enough(rules, now) and now.now_ns >= _burst_ends_ns(now):
        return Kind.THRESHOLD
    if (
        rules.interval_ns
        and now.touched
        and now.now_ns - now.interval_began_ns >= rules.interval_ns
    ):
        return Kind.INTERVAL
    return None


def wait_ns(rules: TriggerRules, now: Situation) -> int | None:
    """How long until a trigger can become due without further changes; None if never."""
    times: list[int] = []
    if _may_be_enough(rules, now):
        times.append(_burst_ends_ns(now) - now.now_ns)
    if rules.interval_ns and now.touched:
        times.append(now.interval_began_ns + rules.interval_ns - now.now_ns)
    if rules.merges and (at_ns := _merge_may_be_over_ns(now)) is not None:
        times.append(at_ns - now.now_ns)
    if rules.end_of_day is not None:
        times.append(_until_end_ns(rules.end_of_day, now))
    return max(min(times), 0) if times else None


def enough(rules: TriggerRules, kind: Kind, changes: int) -> bool:
    """Whether the changes found are worth a checkpoint of this kind."""
    return changes >= (rules.files if kind is Kind.THRESHOLD else 1)


def _may_be_enough(rules: TriggerRules, now: Situation) -> bool:
    return bool(rules.files) and now.touched >= rules.files and now.touched > now.looked_at


def _merge_may_be_over_ns(now: Situation) -> int | None:
    """A merge changes files, then moves the branch; much later, if a person writes its message."""
    if now.last_change_ns > now.branch_looked_ns:
        begun_ns = max(now.first_change_ns, now.branch_looked_ns)
        return min(now.last_change_ns + QUIET_NS, begun_ns + LONGEST_BURST_NS)
    return now.branch_looked_ns + LONGEST_BURST_NS if now.merge_under_way else None


def _burst_ends_ns(now: Situation) -> int:
    begun_ns = max(now.first_change_ns, now.looked_ns)
    return min(now.last_change_ns + QUIET_NS, begun_ns + LONGEST_BURST_NS)


def _day_is_over(end: time, now: Situation) -> bool:
    return now.local.time() >= end and now.ended_day != day_of(now.local)


def _until_end_ns(end: time, now: Situation) -> int:
    at = now.local.replace(hour=end.hour, minute=end.minute, second=0, microsecond=0)
    if now.ended_day == day_of(now.local):
        at += timedelta(days=1)
    return int((at - now.local).total_seconds() * SECOND_NS)


def day_of(local: datetime) -> str:
    return local.date().isoformat()


def describe(kind: Kind, paths: list[str], interval_ns: int) -> str:
    """The reason of an automatic checkpoint."""
    named = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    if kind is Kind.END_OF_DAY:
        return f"End of the day: {named}" if named else "End of the day"
    if kind is Kind.INTERVAL:
        minutes = max(round(interval_ns / SECOND_NS / 60), 1)
        return f"Changed within {count_words(minutes, 'minute')}: {named}"
    return f"{count_words(len(paths), 'path')} changed: {named}"

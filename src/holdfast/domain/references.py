"""References to checkpoints: the grammar only, without lookups.

HEAD  initial  approved  @{2 hours ago}  @{2026-11-15 09:30}  a name, an id or a prefix of one
~3 or ^ after any of these: so many checkpoints before it
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from holdfast.domain.errors import UnknownReference
from holdfast.values.classes import dataclass

_HEAD = re.compile(r"HEAD((?:~\d{0,6}|\^)*)\Z")
_BACK = re.compile(r"~(\d*)|\^")
_EARLIER = re.compile(r"(.+?)((?:~\d{0,6}|\^)+)\Z", re.DOTALL)
_AT = re.compile(r"@\{(.*)\}\Z", re.DOTALL)
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?\Z")
_AGO = re.compile(r"(\d{1,9}|an?|one)\s*([a-z]+)\s+ago\Z")
_UNIT_SECONDS = {
    "second": 1,
    "sec": 1,
    "s": 1,
    "minute": 60,
    "min": 60,
    "m": 60,
    "hour": 3600,
    "h": 3600,
    "day": 86400,
    "d": 86400,
    "week": 604800,
    "w": 604800,
}
_DAY_NS = 86400 * 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNIT_MONTHS = {"month": 1, "year": 12, "y": 12}


@dataclass(frozen=True, slots=True)
class HeadReference:
    """HEAD, or this many checkpoints before it."""

    steps_back: int


@dataclass(frozen=True, slots=True)
class InitialReference:
    """The first checkpoint of the session, or of the workspace."""


@dataclass(frozen=True, slots=True)
class ApprovedReference:
    """The last approved checkpoint of the session."""


@dataclass(frozen=True, slots=True)
class TimeReference:
    """The newest checkpoint made at or before this moment."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class TextReference:
    """A name, an id or an id prefix."""

    text: str


Reference: TypeAlias = (
    HeadReference | InitialReference | ApprovedReference | TimeReference | TextReference
)


def parse_reference(text: str, *, now_ns: int) -> Reference:
    if not isinstance(text, str):
        raise UnknownReference(
            f"the checkpoint reference {text!r} is not a string", hint="try HEAD or a name"
        )
    stripped = text.strip()
    if not stripped:
        raise UnknownReference("the checkpoint reference is empty", hint="try HEAD or a name")
    if head := _HEAD.match(stripped):
        return HeadReference(_steps_back(head[1]))
    if stripped == "initial":
        return InitialReference()
    if stripped == "approved":
        return ApprovedReference()
    if moment := _AT.match(stripped):
        return TimeReference(_moment_ns(moment[1].strip(), now_ns))
    return TextReference(stripped)


def split_earlier(text: str) -> tuple[str, int] | None:
    """Split `REF~2` or `REF^` into the reference and the number of checkpoints before it."""
    found = _EARLIER.match(text)
    return None if found is None else (found[1], _steps_back(found[2]))


def _steps_back(suffix: str) -> int:
    return sum(int(step[1] or 1) for step in _BACK.finditer(suffix))


def likely_meaning(text: str) -> str | None:
    """A hint about what the user probably meant by an unknown reference."""
    lowered = text.strip().lower()
    if text.startswith("@{"):
        return "quote it, so that it stays one argument: '@{2 hours ago}'"
    if _AGO.match(lowered) or lowered in ("now", "today", "yesterday"):
        return f"write a time like this: '@{{{lowered}}}'"
    if lowered.startswith("head") or lowered in ("@", "latest", "last", "newest"):
        return "the newest is HEAD, the one before it HEAD~1, then HEAD~2"
    if lowered in ("first", "oldest", "root"):
        return "the first checkpoint is called initial"
    return None


def looks_reserved(name: str) -> bool:
    """Whether a name would be parsed as a special reference."""
    return bool(_HEAD.match(name) or _AT.match(name)) or name in ("initial", "approved")


def _moment_ns(text: str, now_ns: int) -> int:
    lowered = text.lower()
    if lowered == "now":
        return now_ns
    if lowered == "yesterday":
        return now_ns - _DAY_NS
    if lowered == "today":
        return _clock_ns(0, 0, 0, now_ns)
    if clock := _CLOCK.match(lowered):
        return _clock_ns(int(clock[1]), int(clock[2]), int(clock[3] or 0), now_ns)
    if ago := _AGO.match(lowered):
        unit = ago[2] if ago[2] in _UNIT_SECONDS else ago[2].removesuffix("s")
        count = int(ago[1]) if ago[1].isdigit() else 1
        if unit in _UNIT_SECONDS:
            return now_ns - count * _UNIT_SECONDS[unit] * 1_000_000_000
        if unit in _UNIT_MONTHS:
            return _months_before(now_ns, count * _UNIT_MONTHS[unit])
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UnknownReference(
            f"cannot understand the time in @{{{text}}}",
            hint="write @{2 hours ago}, @{3 weeks ago}, @{yesterday} or @{2026-11-15 09:30}",
        ) from None
    since = moment - _EPOCH
    return since // timedelta(microseconds=1) * 1000


def _clock_ns(hour: int, minute: int, second: int, now_ns: int) -> int:
    """The last time that local clocks showed this time."""
    now = (_EPOCH + timedelta(microseconds=now_ns // 1000)).astimezone()
    then = now.replace(hour=hour, minute=minute, second=second, microsecond=0, tzinfo=None)
    if then > now.replace(tzinfo=None):
        then -= timedelta(days=1)
    # Without a zone it is local time, with the offset in force at that time.
    return (then.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) * 1000


def _months_before(now_ns: int, months: int) -> int:
    """The same day and time in an earlier month, or its last day if it is shorter. Times before
    year 1 become year 1."""
    days, rest_ns = divmod(now_ns, _DAY_NS)
    today = _EPOCH + timedelta(days=days)
    index = today.year * 12 + today.month - 1 - months
    if index < 12:
        return (datetime.min.replace(tzinfo=UTC) - _EPOCH).days * _DAY_NS
    year, month = index // 12, index % 12 + 1
    after = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    last_day = (after - timedelta(days=1)).day
    then = datetime(year, month, min(today.day, last_day), tzinfo=UTC)
    return (then - _EPOCH).days * _DAY_NS + rest_ns

"""Times as text."""

from datetime import UTC, datetime


def iso(moment: datetime, timespec: str = "microseconds") -> str:
    """ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat(timespec=timespec)


def iso_from_ns(at_ns: int, timespec: str = "microseconds") -> str:
    """The same for nanoseconds since the epoch."""
    return iso(datetime.fromtimestamp(at_ns / 1e9, tz=UTC), timespec)

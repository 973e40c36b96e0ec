"""Times as text."""

from datetime import UTC, datetime


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC, with microseconds."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def iso_from_ns(at_ns: int) -> str:
    """The same for nanoseconds since the epoch."""
    return iso(datetime.fromtimestamp(at_ns / 1e9, tz=UTC))

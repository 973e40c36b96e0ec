"""Paths that only one side of a difference captured, and why the other one left them out.

A path that a rule leaves out since, that has grown too large or cannot be read looks as if it was
removed, and one that was left out before as if it was new. Each is told with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdfast.domain.checkpoints import Skipped
from holdfast.domain.paths import parent
from holdfast.domain.trees.changes import Change, ChangeType

Report = Callable[[], Iterable[Skipped]]


def left_out_changes(changes: Sequence[Change], then: Report, now: Report) -> dict[bytes, str]:
    """The reason of each such path. A report is asked for only where it can matter."""
    found: dict[bytes, str] = {}
    for kind, report in ((ChangeType.REMOVED, now), (ChangeType.ADDED, then)):
        paths = [change.path for change in changes if change.type is kind]
        if not paths:
            continue
        reasons = {s.path: s.describe() for s in report() if not s.reason.content_is_captured}
        for path in paths:
            above = path
            while above and above not in reasons:
                above = parent(above)
            if above:
                found[path] = reasons[above]
    return found

"""What tools that only look, and the timeline, answer where nothing was ever saved.

No store is made for them.
"""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.domain.errors import NotFound
from holdfast.interfaces.tools.answers import ToolResult, told
from holdfast.interfaces.tools.results import Found, LineOfWork, Listed, Statistics
from holdfast.interfaces.tools.wording import one_line

EMPTY = (
    "This session has no checkpoint yet. Make one before changing anything: "
    'checkpoint_create {"reasoning": "why"}.'
)
_LISTS = {
    "checkpoint_list": Listed([], None),
    "checkpoint_history": LineOfWork([], True),
    "checkpoint_search": Found([], True, []),
}


def nothing_saved(name: str, workspace: Path, session_id: str) -> ToolResult:
    """`session_id` is the one that would be used, or empty where it is not known yet."""
    if name in _LISTS:
        return ToolResult(None, True, EMPTY, _LISTS[name])
    if name == "checkpoint_stats":
        place = one_line(str(workspace))
        return ToolResult(None, True, EMPTY, Statistics(place, session_id, 0, 0, 0, 0, 0, 0, None))
    if name == "timeline":
        from holdfast.api.views.timeline import timeline_view
        from holdfast.domain.timeline.timeline import Timeline

        return ToolResult(None, True, json.dumps(timeline_view(Timeline(()))))
    missing = NotFound(
        f"{workspace} has no checkpoints yet", hint='make one: holdfast checkpoint "why"'
    )
    return ToolResult(None, False, told(missing))

"""Edits reported by agent hooks, recorded with their diff like guarded edits.

    after an edit tool: its files now, against the checkpoint made before the call → one story row,
    with its position in the conversation

Edits that cannot be recorded (no checkpoint before the call, files outside the workspace, no space)
are skipped.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError, UsageError
from holdfast.domain.paths import to_text
from holdfast.domain.story import ActivityKind, NewActivity
from holdfast.domain.wording import one_line
from holdfast.engine.conversation.conversation import require_room
from holdfast.engine.edits.diff import edit_diff, unpacked_diff
from holdfast.engine.edits.edited_files import edited_paths
from holdfast.engine.save.save import NOWHERE, conversation_position

if TYPE_CHECKING:
    from holdfast.app.automation.event_dedupe import EventDedupe
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.agent_events import AgentEvent
    from holdfast.domain.sessions import Session
    from holdfast.engine.vault import Vault

_LONGEST_REASON = 200


def record_edit(
    opened: OpenWorkspace, event: AgentEvent, session: Session, dedupe: EventDedupe
) -> None:
    """Called with the lock held, after an edit tool that succeeded. Once per event."""
    vault = opened.engine.vault
    before = vault.catalog.checkpoint(session.id, dedupe.checkpoint_before(event))
    paths = _paths(vault, event) if before is not None else ()
    if before is None or not paths or dedupe.is_superseded(event):
        return
    try:
        require_room(vault)
        diff = edit_diff(vault, before, paths)
        if not unpacked_diff(diff):
            return
        names = ", ".join(map(to_text, paths)).encode("utf-8", "backslashreplace").decode()
        vault.story.record_edit(
            NewActivity(
                session.id,
                ActivityKind.EDIT,
                one_line(f"{event.tool}: {names}", _LONGEST_REASON),
                before.id,
                event.received_ns or vault.clock.now_ns(),
                vault.processes.own_identity(),
                paths,
                conversation_position(vault, session.id, NOWHERE)[0].message_index,
            ),
            at_ns=vault.clock.now_ns(),
            diff=diff,
        )
    except (HoldfastError, OSError):
        return  # checkpoints have the edit; only the timeline lacks it
    dedupe.note(event, before.id, before=False)


def _paths(vault: Vault, event: AgentEvent) -> tuple[bytes, ...]:
    found: dict[bytes, None] = {}
    for path in event.paths:
        try:
            place = os.path.join(event.cwd or vault.workspace, path)
            directory, name = os.path.split(place)
            real = os.path.join(os.path.realpath(directory), name)
            found |= dict.fromkeys(edited_paths(vault, [real]))
        except (UsageError, ValueError, OSError):
            continue  # outside the workspace, or not a possible path
    return tuple(found)

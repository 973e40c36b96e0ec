"""Agents that are in the middle of a tool call while somebody wants to restore.

What such a call has written since it began is in no checkpoint yet. The restore saves it first, and
says before it begins whose call it is and which of its files would go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.domain.errors import StoreDamaged
from holdfast.domain.paths import to_text
from holdfast.domain.sessions import Session
from holdfast.domain.tool_calls import one_line
from holdfast.domain.trees.changes import TreeLoader, tree_changes, visible_changes
from holdfast.engine.edits.running import working_tools
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import session_digest

_MOST_FILES = 5


def working_warnings(
    vault: Vault, load: TreeLoader, scan: Scan, affected: Sequence[bytes]
) -> Iterator[str]:
    """One for each session that is at work, with those of its files that the restore takes."""
    tools = working_tools(vault)
    if not tools:
        return
    sessions = {session_digest(one.agent or "", one.id): one for one in vault.catalog.sessions()}
    for digest in dict.fromkeys(tool.session for tool in tools):
        names = ", ".join(dict.fromkeys(tool.tool for tool in tools if tool.session == digest))
        session = sessions.get(digest)
        said = f"{_who(session)} is in the middle of a tool call ({names})"
        taken = [] if session is None else _taken(vault, load, scan, session, set(affected))
        if taken:
            shown = ", ".join(one_line(to_text(path), 80) for path in taken[:_MOST_FILES])
            more = f" and {len(taken) - _MOST_FILES} more" if len(taken) > _MOST_FILES else ""
            said += f"; what it changed since it began is saved first and goes: {shown}{more}"
        yield said


def _who(session: Session | None) -> str:
    if session is None:
        return "an agent"
    title = f' "{one_line(session.title, 60)}"' if session.title else ""
    return f"{one_line(session.agent or 'an agent', 40)} (session {session.id}{title})"


def _taken(
    vault: Vault, load: TreeLoader, scan: Scan, session: Session, affected: set[bytes]
) -> list[bytes]:
    """Files that differ from the checkpoint before the call, and that the restore changes."""
    before = vault.catalog.checkpoint(session.id, session.head) if session.head else None
    if before is None:
        return []
    try:
        changed = visible_changes(tree_changes(load, before.tree, scan.tree))
        return [change.path for change in changed if change.path in affected]
    except StoreDamaged:
        return []

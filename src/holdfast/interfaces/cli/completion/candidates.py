"""What there is to choose from, asked by the scripts while somebody types: one candidate a line,
then a tab and what it is.

Nothing is changed and nobody is waited for; whatever goes wrong, there are just no candidates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from holdfast.api.workspace import Workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import short
from holdfast.domain.paths import to_text
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import ago, first_line, shortened

_MOST = 200
_LONGEST = 60


def checkpoints(invocation: Invocation, opened: Workspace) -> Iterator[tuple[str, str]]:
    """Ways to write HEAD first, then names, then ids, each newest first."""
    scope = invocation.scope(opened)
    found = opened.history.checkpoints(scope, limit=_MOST)
    if not found:
        return
    yield "HEAD", "the newest state"
    yield from ((f"HEAD~{n}", "") for n in range(1, min(len(found), 4)))
    yield "initial", "the first checkpoint"
    named = [one for one in found if one.name is not None and one.name.isprintable()]
    yield from ((str(one.name), _describe(invocation, one)) for one in named)
    yield from ((short(one.id), _describe(invocation, one)) for one in found)


def sessions(invocation: Invocation, opened: Workspace) -> Iterator[tuple[str, str]]:
    sessions = opened.sessions
    for session in reversed(sessions.listed()):
        yield str(session.id), visible(session.title or sessions.status(session).value)


def paths(invocation: Invocation, opened: Workspace, typed: str) -> Iterator[tuple[str, str]]:
    """What the checkpoint that the work stands on has there: also what is gone from the disk."""
    head = opened.head(invocation.scope(opened))
    directory, begun = os.path.split(typed)
    if head is None:
        return
    [inside] = invocation.paths([directory or "."], opened.path) or [b""]
    for name, entry in opened.contents.names(head, inside):
        text = to_text(name)
        if text.startswith(begun) and text.isprintable():
            slash = "/" if isinstance(entry, DirectoryEntry) else ""
            yield os.path.join(directory, text) + slash, ""


def _describe(invocation: Invocation, one: Checkpoint) -> str:
    reason = visible(shortened(first_line(one.intent.reasoning), _LONGEST))
    return f"{ago(one.created_at, invocation.now)}: {reason}"

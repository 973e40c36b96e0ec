"""The error for a session that a workspace does not have, with where else it was found."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from difflib import get_close_matches

from holdfast.adapters.local.catalog.sqlite import SqliteCatalog
from holdfast.adapters.local.layout import StoreLayout
from holdfast.bootstrap.locations import holdfast_home
from holdfast.domain.errors import HoldfastError, NotFound
from holdfast.domain.ids import SessionId


def unknown_session(session_id: SessionId, known: Sequence[SessionId]) -> NotFound:
    """Names the workspace that has the session, or the sessions that this one has."""
    places = _workspaces_with(session_id)
    if places:
        where = " and ".join(places)
        return NotFound(
            f"the session {session_id!r} belongs to another workspace: {where}",
            hint=f"open it there: -C {places[0]}",
        )
    message = f"the workspace has no session {session_id!r}"
    close = get_close_matches(session_id, known, 3)
    if close:
        return NotFound(message, hint=f"did you mean: {', '.join(close)}")
    return NotFound(message, hint=f"sessions are: {', '.join(known[-10:])}" if known else None)


def _workspaces_with(session_id: SessionId) -> list[str]:
    """Workspaces of this user with such a session; encrypted and damaged stores are skipped."""
    found: list[str] = []
    stores = holdfast_home(os.environ) / "stores"
    for directory in sorted(stores.iterdir()) if stores.is_dir() else ():
        layout = StoreLayout(directory)
        with contextlib.suppress(HoldfastError, OSError):
            described = layout.read_description()
            if described["encrypted"] or not layout.catalog.exists():
                continue
            with contextlib.closing(SqliteCatalog(layout.catalog)) as catalog:
                if catalog.is_migrated() and catalog.session(session_id) is not None:
                    found.append(str(described["workspace"]))
    return found

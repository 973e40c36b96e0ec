"""What a session works with after it was closed: nothing, told by name instead of as damage."""

from __future__ import annotations

from typing import NoReturn

from holdfast.domain.errors import UsageError
from holdfast.domain.ids import SessionId


class ClosedEngine:
    """Stands where the engine was, and refuses whatever is asked of it."""

    def __init__(self, session_id: SessionId) -> None:
        self._session_id = session_id

    def __getattr__(self, name: str) -> NoReturn:
        raise UsageError(
            f"the session {self._session_id!r} is closed",
            hint="open it again: SessionCheckpointer(workspace, session_id)",
        )

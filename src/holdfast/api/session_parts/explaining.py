"""What a session tells about its files: where each line comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.domain.ids import SessionId
    from holdfast.domain.line_origins import Explanation
    from holdfast.engine.engine import Engine


class Explaining:
    """Part of `SessionCheckpointer`."""

    _engine: Engine
    _id: SessionId

    def why(self, path: str, line: int | None = None, ref: str | None = None) -> Explanation:
        """For each line of a file, or for one, the checkpoint, reason, tool call and message that
        wrote it; of the file as it is now, or as it is in a checkpoint."""
        from holdfast.domain.paths import from_text
        from holdfast.engine.why.why import why

        return why(self._engine.vault, self._id, from_text(path), line=line, reference=ref)

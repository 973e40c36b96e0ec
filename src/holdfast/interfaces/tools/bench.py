"""What every tool works on: the session, the workspace behind it, and the open previews."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.api.session import SessionCheckpointer
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import UsageError
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.paths import from_text
from holdfast.engine.engine import Engine
from holdfast.interfaces.tools.confirmations import Confirmations


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says: text for the model, data for programs. `restored`: the record of a restore
    that it made and tells about."""

    text: str
    data: object
    restored: CheckpointId | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """One session with what its tools share."""

    session: SessionCheckpointer
    confirmations: Confirmations

    @property
    def engine(self) -> Engine:
        return self.session.opened.engine

    @property
    def session_id(self) -> SessionId:
        return SessionId(self.session.session_id)

    def resolve(self, reference: str) -> Checkpoint:
        return self.engine.resolve(self.session_id, reference.strip())

    def paths(self, given: Sequence[str]) -> list[bytes]:
        """Paths as models write them: relative, with `./`, or absolute inside the workspace. None
        at all when the whole workspace is among them."""
        found: list[bytes] = []
        root = str(self.session.workspace)
        for text in given:
            path = posixpath.normpath(text)
            if path == root or path == ".":
                return []
            if path.startswith("/"):
                inside = posixpath.relpath(path, root)
                if inside.startswith(".."):
                    raise UsageError(
                        f"{ascii(text)[:200]} is outside the workspace {root}",
                        hint='paths are relative to the workspace, e.g. ["src/app.py"]',
                    )
                path = inside
            found.append(from_text(path))
        return found

"""An agent tool: its description, parameters, scope, and the function that answers it.

Definitions in all formats, argument checks, result schemas and MCP annotations are generated from
it. The texts help a model decide: when to use the tool, what it returns, and what to do next.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.domain.errors import UnknownReference, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.paths import from_text

if TYPE_CHECKING:
    from holdfast.api.confirmations import Confirmations
    from holdfast.api.session import SessionCheckpointer
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.ids import CheckpointId

ParameterType = Literal["string", "integer", "number", "boolean", "strings", "object"]
Scope = Literal["read", "write", "restore", "admin"]

LONGEST_TEXT = 100_000
MOST_ITEMS = 1_000
PATH_HINT = 'paths are relative to the workspace, e.g. ["src/app.py"]'
_REFERENCE = "Id, name, sha, HEAD, HEAD~n, initial, approved or @{10 minutes ago}."
_SHA = re.compile(r"[0-9a-f]{7,64}")
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer: text for the model, data for programs. `restored` is the record of a restore
    that it reports."""

    text: str
    data: object
    restored: CheckpointId | None = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The session that tools work on, and its open previews."""

    session: SessionCheckpointer
    confirmations: Confirmations

    @property
    def workspace(self) -> Workspace:
        return self.session.opened

    @property
    def session_id(self) -> SessionId:
        return SessionId(self.session.session_id)

    def resolve(self, reference: str) -> Checkpoint:
        reference = reference.strip()
        try:
            return self.workspace.resolve(self.session_id, reference)
        except UnknownReference:
            found = []
            if _SHA.fullmatch(reference):
                every = self.checkpoints(self.session_id, records=True)
                found = [one for one in every if one.tree.hex().startswith(reference)]
            if len({one.tree for one in found}) != 1:
                raise
        return next((one for one in found if not one.kind.is_record), found[0])

    def checkpoints(
        self, session: SessionId, *, records: bool, before: int | None = None
    ) -> Iterator[Checkpoint]:
        """The checkpoints of a session, newest first, read in pages."""
        history = self.workspace.history
        while True:
            page = history.checkpoints(session, limit=_PAGE, records=records, before=before)
            yield from page
            if len(page) < _PAGE:
                return
            before = page[-1].sequence

    def paths(self, given: Sequence[str]) -> list[bytes]:
        """Paths as models write them: relative, with `./`, or absolute inside the workspace. Empty
        if the whole workspace is among them."""
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
                        f"{ascii(text)[:200]} is outside the workspace {root}", hint=PATH_HINT
                    )
                path = inside
            found.append(from_text(path))
        return found


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool. `least` and `most` limit a number, or the length of a text. `aliases`
    are other names that a call may use; a definition shows only `name`."""

    name: str
    type: ParameterType
    description: str
    example: Any
    required: bool = False
    default: Any = None
    least: float | None = None
    most: float | None = None
    in_bytes: bool = False
    """The limit is in bytes; the store checks it."""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `result` is the type of its answer's data."""

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    scope: Scope
    handler: Callable[[ToolContext, dict[str, Any]], Answer]
    result: type
    sets_values: bool = False
    """Whether repeating a call changes nothing more."""
    starts_session: bool = False
    """Whether it creates the session that a call names, if it is missing."""
    without_store: Callable[[Path, str], Answer] | None = None
    """The answer in a workspace without checkpoints, from its path and the session id. A read-only
    tool without one returns an error."""

    @property
    def read_only(self) -> bool:
        return self.scope == "read"

    @property
    def destructive(self) -> bool:
        """Whether it can change or remove something in the workspace or the store."""
        return self.scope in ("restore", "admin")

    @property
    def idempotent(self) -> bool:
        return self.read_only or self.sets_values

    def parameter(self, name: str) -> Parameter | None:
        """A parameter by its name or an alias."""
        return next(
            (known for known in self.parameters if name == known.name or name in known.aliases),
            None,
        )


CONFIRM = Parameter(
    "confirm_token",
    "string",
    "From the preview. Without it, the call only previews.",
    "3f9c2a…",
    most=200,
)
PATHS = Parameter(
    "paths",
    "strings",
    "Only these, relative to the workspace.",
    ["src/app.py"],
    default=(),
)


def flag(name: str, description: str) -> Parameter:
    return Parameter(name, "boolean", description, False, default=False)


def limit(default: int) -> Parameter:
    return Parameter(
        "limit", "integer", "At most.", default, default=default, least=1, most=MOST_ITEMS
    )


def reference(default: str, aliases: tuple[str, ...] = ("ref",)) -> Parameter:
    description = f"{_REFERENCE} {default}"
    return Parameter("checkpoint_id", "string", description, "HEAD~1", most=400, aliases=aliases)

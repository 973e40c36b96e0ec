"""What automation needs from the machine around it, handed in: `app` opens nothing itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.agent_events import AgentEvent
    from holdfast.ports.system import Clock, Processes


class Fallback(Protocol):
    """Where to report when the directory of the stores cannot be written: as a rule on another file
    system, in directories that only the user can enter."""

    def files(self, name: str) -> list[Path]:
        """Where a file of this name may be, the best first; none of them need exist."""
        ...

    def is_private(self, directory: Path) -> bool:
        """Whether the directory is there, and only the user can enter it."""
        ...

    def require_private(self, directory: Path) -> None:
        """Create the directory if it is missing; an exception unless only the user can enter it."""
        ...

    def complain(self, text: str) -> None:
        """The last resort, when no file can be written. Never raises."""
        ...


class Host(Protocol):
    """The machine and its user. `home` is the directory of the stores."""

    @property
    def environment(self) -> Mapping[str, str]: ...

    @property
    def home(self) -> Path: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def processes(self) -> Processes: ...

    @property
    def fallback(self) -> Fallback: ...

    def working_directory(self) -> str:
        """Where this process runs; empty if that directory is gone."""
        ...

    def workspace_of(self, event: AgentEvent, standing_in: str) -> Path:
        """The workspace that an event is about. `standing_in` is the directory of the hook's
        process, which relative paths begin at."""
        ...

    def own_project(self, workspace: Path, directory: Path) -> Path | None:
        """The worktree, repository or workspace between the two that is saved by itself."""
        ...

    def has_store(self, workspace: Path) -> bool: ...

    def open_workspace(self, workspace: Path, *, create: bool, purpose: str) -> OpenWorkspace:
        """`NotFound` or `StoreMissing` where there is no store, unless `create` makes one. It is
        then made in any case, because no user is there to ask."""
        ...

"""The components that take part in a workspace; nothing is loaded before one is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a save of files alone must not pay for it
    from pathlib import Path

    from holdfast.ports.component import Component


class Components(Protocol):
    def any_for(self, workspace: Path) -> bool:
        """Whether any component may have something to say here; asked in every save, so it costs
        a few system calls, and says yes when in doubt."""
        ...

    def all(self) -> Sequence[Component]:
        """In their order, those that could be loaded."""
        ...

    def missing(self) -> Sequence[str]:
        """Names that the settings ask for and that cannot be loaded, each with the reason."""
        ...


class NoComponents:
    """Files and nothing else."""

    def any_for(self, workspace: Path) -> bool:
        return False

    def all(self) -> Sequence[Component]:
        return ()

    def missing(self) -> Sequence[str]:
        return ()

"""Parts of a store that a plain save does not touch; each is opened when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.ports.agent_tools import RunningTools, ToolLog
    from holdfast.ports.component_notes import ExternalPaths
    from holdfast.ports.event_log import EventLog
    from holdfast.ports.search import SearchIndex
    from holdfast.ports.story import Story


class StoreParts(Protocol):
    def has_story(self) -> bool:
        """Whether anything was ever said: one system call, nothing is opened."""
        ...

    @property
    def story(self) -> Story:
        """What was said and done around the checkpoints."""
        ...

    @property
    def search(self) -> SearchIndex:
        """The index that searches use; the first of them makes it."""
        ...

    @property
    def events(self) -> EventLog:
        """The numbered stream of what happened; the first reader makes it."""
        ...

    def has_running_tools(self) -> bool:
        """Whether a tool call of an agent was ever noted: one system call, nothing is opened."""
        ...

    @property
    def running_tools(self) -> RunningTools: ...

    @property
    def tool_log(self) -> ToolLog: ...

    @property
    def external_paths(self) -> ExternalPaths: ...

"""A workspace for whoever is not in one of its sessions: what happens in it, whoever does it.

>>> from holdfast import Workspace
>>> with Workspace(Path("my-project")) as workspace:
...     for event in workspace.events(follow=True):
...         print(event.number, event.type, event.checkpoint)
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from holdfast.api.events import EventFeed
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.events import Event


class Workspace:
    """An open workspace; safe to share between threads. `NotFound` where nothing was ever saved."""

    def __init__(self, workspace: str | PathLike[str]) -> None:
        self._opened = open_workspace(Path(workspace), create=False, purpose="holdfast workspace")
        self._feed = EventFeed(self._opened)

    def events(
        self, after: int = 0, *, follow: bool = False, timeout_s: float | None = None
    ) -> Iterator[Event]:
        """Every checkpoint, restore, undo, approval, reset, message, edit, annotation, deletion,
        change of settings and change of status, made by any process, oldest first.

        `after` is the number of the last event that you have. With `follow` it goes on with what
        happens, until nothing has for `timeout_s`, or until the workspace is closed."""
        return self._feed.events(after, follow=follow, timeout_s=timeout_s)

    def close(self) -> None:
        self._feed.close()
        self._opened.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

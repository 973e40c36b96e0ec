"""A workspace as a whole: its sessions, settings, history, upkeep and events.

>>> from holdfast import Workspace
>>> with Workspace(Path("my-project")) as workspace:
...     for event in workspace.events(follow=True):
...         print(event.number, event.type, event.checkpoint)

Everything that is not one session's is reached from here, by topic: `workspace.sessions`, … A topic
is a small object over the same open store. Its module is imported when the topic is first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bootstrap.workspace import open_workspace as _open

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from holdfast.adapters.local.encryption.key_slots import Secret
    from holdfast.adapters.local.local_store import LocalStore
    from holdfast.api.events import EventFeed
    from holdfast.api.sessions import Sessions
    from holdfast.app.open_workspace import OpenWorkspace, SettingProblem
    from holdfast.domain.events import Event
    from holdfast.engine.engine import Engine

    class OpenOptions(TypedDict, total=False):
        """How to open a workspace; bootstrap's `open_workspace` explains each option."""

        force: bool
        file_filter: Callable[[Path], bool] | None
        environment: Mapping[str, str] | None
        purpose: str
        passive: bool
        recover: bool
        new_store: bool
        protect: bool
        spare_repositories: bool
        new_secret: Callable[[Path], Secret] | None
        unencrypted: bool
        ask_passphrase: Callable[[], str | None] | None


class Workspace:
    """An open workspace; safe to share between threads. `NotFound` where nothing was ever saved."""

    def __init__(self, workspace: str | PathLike[str]) -> None:
        self._opened = _open(Path(workspace), create=False, purpose="holdfast workspace")
        self._feed: EventFeed | None = None

    @classmethod
    def of(cls, opened: OpenWorkspace) -> Workspace:
        """For a workspace that is open already; closing it closes that too."""
        made = cls.__new__(cls)
        made._opened, made._feed = opened, None
        return made

    @property
    def path(self) -> Path:
        return self._opened.engine.vault.workspace

    @property
    def store_directory(self) -> Path:
        return self._opened.store.directory

    @property
    def news(self) -> tuple[str, ...]:
        """What opening it has to report, such as a store created in place of a lost one."""
        return self._opened.news

    @property
    def recovered(self) -> bool:
        """Whether opening it finished or rolled back an interrupted restore."""
        return self._opened.recovered

    @property
    def setting_problems(self) -> tuple[SettingProblem, ...]:
        """Settings that cannot be used."""
        return self._opened.setting_problems

    @property
    def sessions(self) -> Sessions:
        from holdfast.api.sessions import Sessions

        return Sessions(self._opened)

    def events(
        self, after: int = 0, *, follow: bool = False, timeout_s: float | None = None
    ) -> Iterator[Event]:
        """Every checkpoint, restore, undo, approval, reset, message, edit, annotation, deletion,
        change of settings and change of status, made by any process, oldest first.

        `after` is the number of the last event that you have. With `follow` it continues with new
        events, until nothing has happened for `timeout_s`, or until the workspace is closed."""
        if self._feed is None:
            from holdfast.api.events import EventFeed

            self._feed = EventFeed(self._opened)
        return self._feed.events(after, follow=follow, timeout_s=timeout_s)

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()
        self._opened.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Until every interface calls a topic, these reach behind the door.
    @property
    def opened(self) -> OpenWorkspace:
        return self._opened

    @property
    def engine(self) -> Engine:
        return self._opened.engine

    @property
    def store(self) -> LocalStore:
        return self._opened.store

    @property
    def environment(self) -> Mapping[str, str]:
        return self._opened.environment

    @property
    def setting_origins(self) -> dict[str, str]:
        return self._opened.setting_origins


def open_workspace(path: Path, *, create: bool, **options: Unpack[OpenOptions]) -> Workspace:
    """Open the store of a workspace, creating one if `create`."""
    return Workspace.of(_open(path, create=create, **options))

"""The story of a store, put together; nothing is opened before it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.adapters.local.story.sqlite import SqliteStory
from holdfast.adapters.local.story.story_file import StoryFile
from holdfast.ports.clock import Clock
from holdfast.ports.filesystem import Filesystem

if TYPE_CHECKING:
    from holdfast.adapters.local.encryption.cipher import Cipher


def open_story(
    fs: Filesystem,
    layout: StoreLayout,
    clock: Clock,
    lock_timeout_s: Callable[[], float],
    *,
    cipher: Callable[[], Cipher] | None = None,
) -> SqliteStory:
    lock = StoreLock(layout.story_lock, clock, purpose="holdfast")
    return SqliteStory(
        StoryFile(fs, layout.story, lock, lock_timeout_s=lock_timeout_s, cipher=cipher)
    )

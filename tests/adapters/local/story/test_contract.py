"""The story on disk keeps the contract, even if it is encrypted."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.adapters.local.encryption.cipher import StoreKeys
from holdfast.adapters.local.layout import StoreLayout
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.story.sqlite import open_story
from holdfast.adapters.local.system import SystemClock
from holdfast.ports.story import Story
from holdfast.testing.story_contract import DurableStoryContract

KEYS = StoreKeys(b"k" * 32)


@pytest.mark.requirement("SE-2", "SE-7")
class TestSqliteStory(DurableStoryContract):
    def open_story(self, place: Path) -> Story:
        return open_story(LocalFilesystem(), StoreLayout(place), SystemClock(), lambda: 5.0)


@pytest.mark.requirement("ST-6")
class TestEncryptedStory(DurableStoryContract):
    def open_story(self, place: Path) -> Story:
        return open_story(
            LocalFilesystem(),
            StoreLayout(place),
            SystemClock(),
            lambda: 5.0,
            cipher=KEYS.cipher("story"),
        )

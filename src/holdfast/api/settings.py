"""Settings of a workspace: effective values, their origins, and changing them.

The environment overrides the store, the store the project's file, and that the user's file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.bootstrap.locations import project_settings_file, user_settings_file
from holdfast.bootstrap.settings import gather_settings, project_settings, trust_settings

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.settings.schema import Settings

__all__ = [
    "WorkspaceSettings",
    "gather_settings",
    "project_settings",
    "project_settings_file",
    "trust_settings",
    "typed_entries",
    "typed_value",
    "user_settings_file",
]


def typed_value(key: str, words: Sequence[str]) -> Any:
    """A value as people type it: TOML, or plain words. A dot in the key selects one entry of a
    table, which is checked together with the table."""
    from holdfast.engine.settings import parse_entry, parse_value

    return parse_entry(words) if "." in key else parse_value(key, words)


def typed_entries(key: str, words: Sequence[str]) -> list[Any]:
    """Entries of a list setting, as people type them."""
    from holdfast.engine.settings import parse_entries

    return parse_entries(key, words)


class WorkspaceSettings:
    """Settings of an open workspace."""

    def __init__(self, opened: OpenWorkspace) -> None:
        self._engine, self._origins = opened.engine, opened.setting_origins

    @property
    def effective(self) -> Settings:
        return self._engine.vault.settings

    @property
    def origins(self) -> Mapping[str, str]:
        """The origin of each value that is not the default."""
        return self._origins

    def stored(self) -> dict[str, Any]:
        """The values in the store, as written in settings files."""
        stored = self._engine.vault.catalog.settings()
        return {key: json.loads(text) for key, text in stored.items()}

    def set(self, key: str, value: Any) -> None:
        """Store a value; None removes it."""
        from holdfast.engine.settings import set_setting

        set_setting(self._engine, key, value)

    def add(self, key: str, entries: Sequence[str]) -> None:
        """Add entries to a list setting, without duplicates."""
        from holdfast.engine.settings import change_list

        change_list(self._engine, key, add=entries)

    def remove(self, key: str, entries: Sequence[str]) -> None:
        """Remove entries from a list setting; `InvalidSetting` if one is missing."""
        from holdfast.engine.settings import change_list

        change_list(self._engine, key, remove=entries)

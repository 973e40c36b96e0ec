"""Whether what was opened some time ago is still what opening it now would give.

Who keeps a workspace open for long looks here before each use, so that a changed setting counts
from the next operation on, and a store that was repaired is used as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.bootstrap import OpenWorkspace, gather_settings
from holdfast.domain.settings import make_settings


def is_still_current(opened: OpenWorkspace, environment: Mapping[str, str] | None = None) -> bool:
    """`InvalidSetting`, or what opening it would raise, when what holds now cannot be told."""
    if opened.store.was_replaced():
        return False
    vault = opened.engine.vault
    found = gather_settings(vault.catalog.settings(), vault.workspace, environment)
    same = make_settings(found.values) == vault.settings
    return same and found.problems == opened.setting_problems

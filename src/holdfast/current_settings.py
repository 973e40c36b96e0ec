"""Whether what was opened some time ago still has the settings that hold now.

Who keeps a workspace open for long looks here before each use, so that a setting counts from the
next operation on, as it does for somebody who opens it then.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.bootstrap import OpenWorkspace, gather_settings
from holdfast.domain.settings import make_settings


def has_current_settings(
    opened: OpenWorkspace, environment: Mapping[str, str] | None = None
) -> bool:
    """`InvalidSetting`, or what opening it would raise, when what holds now cannot be told."""
    vault = opened.engine.vault
    values, _ = gather_settings(vault.catalog.settings(), vault.workspace, environment)
    return make_settings(values) == vault.settings

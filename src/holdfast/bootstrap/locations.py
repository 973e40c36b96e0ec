"""Where Holdfast keeps its stores and settings, from the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def holdfast_home(environment: Mapping[str, str]) -> Path:
    """Where stores live: outside every workspace, so that no clean-up of one reaches it."""
    if chosen := environment.get("HOLDFAST_HOME"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "holdfast"
    data = environment.get("XDG_DATA_HOME")
    base = Path(data) if data and os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "holdfast"


def project_settings_file(workspace: Path) -> Path:
    return workspace / ".holdfast" / "config.toml"


def user_settings_file(environment: Mapping[str, str]) -> Path:
    configured = environment.get("XDG_CONFIG_HOME")
    base = Path(configured) if configured and os.path.isabs(configured) else Path.home() / ".config"
    return base / "holdfast" / "config.toml"

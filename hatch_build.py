"""Adds the manual pages to the wheel, made from the parsers: share/man/man1/holdfast*.1."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from holdfast.interfaces.cli.manual import manual_pages

        self._place = TemporaryDirectory(prefix="holdfast-man-")
        for name, text in manual_pages().items():
            page = Path(self._place.name) / name
            page.write_text(text, "utf-8")
            build_data["shared_data"][str(page)] = f"share/man/man1/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._place.cleanup()

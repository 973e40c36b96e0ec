"""Automation for this user's processes, with the daemon's directory as a fallback."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.interfaces.daemon import address

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.api.automation import EventHandler, ProblemLog


class RuntimeFiles:
    """Files beside the daemon's socket; see `holdfast.api.automation.Fallback`. Another
    `HOLDFAST_HOME` has its own daemon, and so its own files."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def files(self, name: str) -> list[Path]:
        from pathlib import Path  # late: an event without work must not wait for it

        prefix = address.socket_name(self._environment).removesuffix(".sock")
        directories = address.candidate_directories(self._environment)
        return [Path(directory, f"{prefix}.{name}") for directory in directories]

    def is_private(self, directory: Path) -> bool:
        return address.is_private(str(directory))

    def require_private(self, directory: Path) -> None:
        address.require_private(str(directory))

    def complain(self, text: str) -> None:
        try:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
        except Exception:  # there is no standard error either
            return


def event_handler(environment: Mapping[str, str]) -> EventHandler:
    from holdfast.api import automation

    return automation.event_handler(environment, RuntimeFiles(environment))


def problem_log(environment: Mapping[str, str]) -> ProblemLog:
    from holdfast.api import automation

    return automation.problem_log(environment, RuntimeFiles(environment))

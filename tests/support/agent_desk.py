"""A workspace and a home directory in which agents keep what they remember."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.bootstrap.components import known_agents
from holdfast.components.agents.component import AgentsComponent
from tests.support.component_runs import ComponentRun


class GivenInMemory:
    def __init__(self) -> None:
        self.states: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}

    def exist(self) -> bool:
        return bool(self.states)

    def load(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        return self.states

    def replace(self, states: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        self.states = states


class Desk:
    """A workspace and a home with agents in them."""

    def __init__(self, directory: Path, *chosen: str) -> None:
        self.workspace = directory / "project"
        self.home = directory / "home"
        self.workspace.mkdir()
        self.home.mkdir()
        self.given = GivenInMemory()
        self.sessions: list[str] = []
        self.choose(*chosen)

    def choose(self, *chosen: str) -> None:
        component = AgentsComponent(
            chosen,
            {"HOME": str(self.home)},
            self.given,
            sessions=lambda: self.sessions,
            agents=known_agents,
        )
        self.run = ComponentRun(component, self.workspace, time.time_ns())

    def write(self, path: str, content: bytes, mode: int = 0o644) -> Path:
        place = self.place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(mode)
        return place

    def place(self, path: str) -> Path:
        return self.home / path[2:] if path.startswith("~/") else self.workspace / path

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """Every path outside and inside of the workspace, with mode and content."""
        found = {}
        for root in (self.home, self.workspace):
            for path in sorted(root.rglob("*")):
                status = path.lstat()
                content = b""
                if stat.S_ISLNK(status.st_mode):
                    content = os.fsencode(os.readlink(path))
                elif stat.S_ISREG(status.st_mode):
                    content = path.read_bytes()
                found[str(path)] = (status.st_mode, content)
        return found

"""The component of agents keeps the contract of every component."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.components.agents.component import AgentsComponent
from holdfast.ports.component import Component
from holdfast.testing.component_contract import ComponentContract
from tests.support.agent_desk import GivenInMemory


@pytest.mark.requirement("AG-1", "DB-3")
class TestAgents(ComponentContract):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self.home = tmp_path_factory.mktemp("home")
        self.given = GivenInMemory()

    def make_component(self) -> Component:
        return AgentsComponent(["~/.agent", ".notes"], {"HOME": str(self.home)}, self.given)

    def make_state(self, place: Path) -> None:
        (self.home / ".agent").mkdir()
        (self.home / ".agent/memory.md").write_text("first")
        (place / ".notes").mkdir()
        (place / ".notes/a.md").write_text("a")
        self.given.replace({"session": {"agent": {"step": 1}}})

    def change_state(self, place: Path) -> None:
        (self.home / ".agent/memory.md").write_text("second")
        (self.home / ".agent/more.md").write_text("more")
        (place / ".notes/a.md").unlink()
        self.given.replace({"session": {"agent": {"step": 2}}})

    def look_at_state(self, place: Path) -> object:
        files = [p for root in (self.home, place) for p in sorted(root.rglob("*")) if p.is_file()]
        return [(str(path), path.read_bytes()) for path in files], self.given.load()

"""The agent is notified: a person undoes its work, and it does not continue blindly."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import SessionCheckpointer, start_session
from tests.interfaces.cli.command_line import CommandLine


@pytest.mark.requirement("RB-10", "SE-1", "SE-2", "SE-4")
def test_the_agent_is_notified(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    project.mkdir()
    (project / "cart.py").write_text("def total():\n    return 0\n")

    # An agent works, and says what it does.
    with start_session(project, "refactor", agent="my-agent", title="Totals") as agent:
        agent.add_message("user", "compute the total")
        agent.add_message("assistant", "I compute it", tool_calls=["Edit(cart.py)"])
        (project / "cart.py").write_text("def total(items):\n    return sum(items)\n")
        good = agent.checkpoint("the total is computed", name="computed")
        agent.add_message("user", "now make it generic")
        (project / "cart.py").write_text("def total(*a, **k):\n    ...\n")
        (project / "abstract_cart_factory.py").write_text("class AbstractCartFactory: ...\n")
        agent.checkpoint("carts are made by a factory")
        agent.add_message("assistant", "there is a factory now")

        # A person looks, and goes back in a terminal of their own.
        CommandLine(project).json("restore", "computed", "--session", "refactor", "--yes")
        assert not (project / "abstract_cart_factory.py").exists()

        # The agent's next tool call gets the notice, in time and once.
        (notice,) = agent.take_notices()
        for words in (good[:10], "computed", "abstract_cart_factory.py", "cart.py", "messages 2"):
            assert words in notice
        assert agent.take_notices() == []
        rolled_back = [m.content for m in agent.messages() if m.rolled_back_by is not None]
        assert rolled_back == ["now make it generic", "there is a factory now"]

        # What it says from here on holds, and the next checkpoint knows its place.
        agent.add_message("assistant", "understood, I read cart.py again")
        agent.checkpoint("going on from the good state")

    with SessionCheckpointer(project, "refactor") as later:
        holding = [m.index for m in later.messages() if m.rolled_back_by is None]
        assert holding == [0, 1, 4]

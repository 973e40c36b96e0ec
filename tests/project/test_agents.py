"""One agent, one module: nothing else in the package names an agent; the documents name each."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.interfaces.agents import AGENTS, agent_named
from tests.project.repository import PACKAGE, ROOT, modules

# How an agent is named where its name is also a word of other things.
NAMED = {"cursor": r"cursor-agent|\.cursor\b|(?-i:CURSOR_)|(hook|install) cursor\b"}

# Module and agent, with the reason.
ALLOWED = {
    ("api/session.py", "claude-code"): "the documented default of `import_transcript`",
    ("domain/settings/schema.py", "claude-code"): "an example in the reference of settings",
    ("interfaces/agents/copilot.py", "claude-code"): "Copilot also runs the hooks of Claude Code",
    ("interfaces/agents/cursor.py", "claude-code"): "Cursor also runs the hooks of Claude Code",
    ("interfaces/cli/commands/demo.py", "claude-code"): "the agent that the demo plays",
    ("interfaces/cli/demonstration.py", "claude-code"): "the agent that the demo plays",
    ("interfaces/cli/commands/hook.py", "claude-code"): "an example in its help",
    ("interfaces/cli/commands/install.py", "claude-code"): "an example in its help",
    ("interfaces/cli/commands/install.py", "codex"): "an example in its help",
    ("interfaces/cli/commands/mcp.py", "claude-code"): "an example in its help",
    ("interfaces/cli/commands/uninstall.py", "claude-code"): "an example in its help",
}


def _module_of(agent: str) -> Path:
    return PACKAGE / "interfaces" / "agents" / f"{agent.replace('-', '_')}.py"


def test_no_other_module_names_an_agent() -> None:
    naming = set()
    for agent in AGENTS:
        word = agent.partition("-")[0]
        named = re.compile(NAMED.get(agent, rf"(?<![a-z]){word}(?![a-z])"), re.IGNORECASE)
        for module in modules():
            if module != _module_of(agent) and named.search(module.read_text("utf-8")):
                naming.add((module.relative_to(PACKAGE).as_posix(), agent))
    assert naming == set(ALLOWED)


def test_a_module_describes_the_agent_that_it_is_named_after() -> None:
    described = {agent: agent_named(agent) for agent in AGENTS}
    assert [agent for agent, known in described.items() if known.name != agent] == []
    assert all(one.title and one.programs and one.carries for one in described.values())


def test_the_documents_have_a_line_for_each_agent() -> None:
    guide = (ROOT / "docs/guides/agents.md").read_text("utf-8")
    memory = (ROOT / "docs/reference/components.md").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    for agent in AGENTS:
        assert f"\n| `{agent}` |" in guide, agent
        assert f"\n| `{agent}` |" in memory, agent
        assert f"\n| `{agent}` | `holdfast install {agent}` |" in readme, agent

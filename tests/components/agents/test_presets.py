"""Presets and patterns reach what belongs to an agent and this workspace, and nothing more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.domain.agent_patterns import parse_pattern
from holdfast.interfaces.agents import AGENTS, agent_named
from tests.support.agent_desk import Desk


@pytest.mark.requirement("AG-1")
@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_has_a_preset_that_stays_with_its_own_files(agent: str, tmp_path: Path) -> None:
    workspace = tmp_path / "My [Project] 1.0"
    patterns = [parse_pattern(text) for text in agent_named(agent).memory(workspace, {})]
    assert patterns
    for secret in ("auth.json", "credentials.json", ".credentials.json", "oauth_creds.json"):
        for home in (".claude", ".codex", ".gemini", ".cursor", ".config/goose"):
            path = [*os.fsencode(home).split(b"/"), secret.encode()]
            assert not any(p.root == "home" and p.matches(path) for p in patterns)


@pytest.mark.requirement("AG-1")
def test_the_memory_of_claude_code_is_that_of_this_workspace_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "claude-code")
    slug = "".join(c if c.isalnum() and c.isascii() else "-" for c in str(desk.workspace))
    desk.write(f"~/.claude/projects/{slug}/memory/MEMORY.md", b"mine")
    desk.write(f"~/.claude/projects/{slug}-other/memory/MEMORY.md", b"not mine")
    desk.write(f"~/.claude/projects/{slug}/transcript.jsonl", b"conversation")
    desk.write("CLAUDE.local.md", b"local")
    desk.write(".claude/agents/a.md", b"agent")
    state = desk.run.captured()
    kept = set(desk.run.contents(state).of.values())
    assert {b"mine", b"local", b"agent"} <= kept
    assert not {b"not mine", b"conversation"} & kept


@pytest.mark.requirement("AG-1")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("~/*", "matches everything"),
        ("/**", "matches everything"),
        ("~", "another user's home"),
        ("~root/x", "another user's home"),
        ("~/", "must name a path below its root"),
        ("a/../../b", "must name a path below its root"),
        ("~/a**b", "must be the whole name"),
        ("", "is not a pattern"),
        ("a\nb", "is not a pattern"),
    ],
)
def test_a_pattern_that_reaches_too_far_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_pattern(text)

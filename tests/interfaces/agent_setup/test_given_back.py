"""Whatever settings there were, taking our hooks out gives them back to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from holdfast.interfaces.agent_setup.hooks_edit import (
    found_hooks,
    with_hooks,
    without_hooks,
)
from holdfast.interfaces.agent_setup.json_text import load
from holdfast.interfaces.agents import agent_named
from tests.interfaces.agent_setup.test_comments_stay import commented
from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("HK-1")

AGENTS = {"claude-code": False, "cursor": True, "copilot": True, "gemini": False}
HOLLOW = [
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "\ufeff{\r\n}\r\n",
    '{"hooks": {}}',
    '{\n  "hooks": {}\n}\n',
    '{\n\t"hooks": {\n\t}\n}',
    '{"hooks": {"PreToolUse": [], "preToolUse": [ ], "Stop": []}}\n',
    '{\n  "a": 1,\n  "hooks": {\n    "stop": [],\n    "Stop": []\n  }\n}\n',
    '{"version": 1}',
    '{ "version": 1 }',
    '{\n  "version": 1\n}\n',
    '{\n  "version": 1,\n  "hooks": {}\n}\n',
    '{"hooks": {}, "version": 1}',
    '{"a": {}, "version": 2}',
    '{"a": 1}',
    '{"version": 1, "a": 1}',
    '{\n  "proxy": "http://localhost"}',
    '{\n  "note": "// none" /* \n" // */}',
]


def came_and_went(text: str, agent: str, *, version: bool) -> str | None:
    entries = agent_named(agent).hook_entries("holdfast")
    edited = with_hooks(text, agent, entries, version=version)
    assert found_hooks(edited, agent) == entries
    assert with_hooks(edited, agent, entries, version=version) == edited
    assert load(edited).get("version") == load(text).get("version", 1 if version else None)
    older = with_hooks(
        text, agent, agent_named(agent).hook_entries("/old/python -m holdfast"), version=version
    )
    assert with_hooks(older, agent, entries, version=version) == edited
    return without_hooks(edited, agent, version=version)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("text", HOLLOW)
def test_settings_that_say_nothing_are_given_back(text: str, agent: str) -> None:
    version = AGENTS[agent]
    if version and "version" not in load(text) and "hooks" in load(text):
        return  # hooks without the version that they need get it, and keep it
    assert came_and_went(text, agent, version=version) == text


@given(text=commented())
def test_any_settings_are_given_back(text: str) -> None:
    assert came_and_went(text, "claude-code", version=False) == text


@pytest.mark.parametrize(("agent", "version"), AGENTS.items())
def test_a_file_that_was_made_for_them_goes(agent: str, *, version: bool) -> None:
    made = with_hooks(None, agent, agent_named(agent).hook_entries("holdfast"), version=version)
    assert without_hooks(made, agent, version=version) is None


def test_a_file_of_dotfiles_stays_with_the_link_to_it(
    project: Path, cli: CommandLine, tmp_path: Path
) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_bytes(b"{}\n")
    link = project / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(kept)
    cli.json("install", "claude-code")
    assert "hooks" in kept.read_text()
    cli.json("uninstall", "claude-code")
    assert link.is_symlink()
    assert kept.read_bytes() == b"{}\n"

"""Our MCP server comes into JSON settings and goes out of them to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.interfaces.agent_setup.json_text import NotJson, load
from holdfast.interfaces.agent_setup.mcp_server_edit import (
    NotOurs,
    found_server,
    with_server,
    without_server,
)
from holdfast.interfaces.agents import agent_named
from tests.interfaces.agent_setup.test_comments_stay import commented, notes
from tests.interfaces.agent_setup.test_json_text import SETTINGS

pytestmark = pytest.mark.requirement("HK-1")

AGENTS = ["claude-code", "gemini", "cursor", "copilot", "opencode", "cline"]
SERVER = agent_named("claude-code").server("holdfast")
HOLLOW = [
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    "{\n  // mine\n}\n",
    '{"mcpServers": {}}',
    '{\n  "mcpServers": {}\n}\n',
    '{\n  "mcpServers": {\n    // none yet\n  }, /* more */ "a": 1\n}\n',
    '{\r\n\t"mcpServers": {\r\n\t}\r\n}',
    '{\n  "mcpServers": {\n    "docs": {"command": "npx"} // mine\n  }\n}\n',
    '{"mcpServers": {"docs": {"command": "npx"}}, "mcp": {"docs": {"enabled": false}}}',
]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("text", SETTINGS + HOLLOW)
def test_our_server_goes_in_once_and_out_to_the_byte(text: str, agent: str) -> None:
    server = agent_named(agent).server("holdfast")
    before = load(text)
    edited = with_server(text, server)
    after = load(edited)
    assert after[server.table].pop("holdfast") == server.entry
    if server.table not in before:
        assert after.pop(server.table) == {}
    assert after == before
    assert with_server(edited, server) == edited
    assert without_server(edited, server) == text


_KEYS = st.sampled_from(["mcpServers", "a", "holdfast", "hooks", "é"])
_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.dictionaries(_KEYS, inner, max_size=3), max_leaves=6
)


@given(
    settings=st.dictionaries(_KEYS, _VALUES, max_size=4),
    servers=st.none() | st.dictionaries(st.sampled_from(["docs", "db"]), _VALUES, max_size=2),
    indent=st.sampled_from([None, 0, 2, 4, "\t"]),
)
def test_any_settings_get_our_server_and_lose_it_to_the_byte(
    settings: dict[str, Any], servers: dict[str, Any] | None, indent: int | str | None
) -> None:
    settings.pop("mcpServers", None)
    if servers is not None:
        settings["mcpServers"] = servers
    text = json.dumps(settings, indent=indent)
    edited = with_server(text, SERVER)
    assert load(edited) == {**settings, "mcpServers": {**(servers or {}), "holdfast": SERVER.entry}}
    assert without_server(edited, SERVER) == text


@given(text=commented())
def test_no_comment_is_lost_by_the_coming_and_going_of_our_server(text: str) -> None:
    edited = with_server(text, SERVER)
    assert notes(edited) == notes(text)
    left = without_server(edited, SERVER)
    assert left is not None
    assert notes(left) == notes(text)
    assert load(left) == load(text)
    assert left == text


def test_a_file_that_was_made_for_it_goes() -> None:
    made = with_server(None, SERVER)
    assert json.loads(made) == {
        "mcpServers": {"holdfast": {"command": "holdfast", "args": ["mcp"]}}
    }
    assert without_server(made, SERVER) is None
    assert without_server(made.replace("{", "{ // mine", 1), SERVER) == "{ // mine\n}\n"


@pytest.mark.parametrize("agent", AGENTS)
def test_an_entry_of_another_version_is_replaced(agent: str) -> None:
    old = agent_named(agent).server("/old/bin/python -m holdfast")
    new = agent_named(agent).server("holdfast")
    text = with_server('{\n  "a": 1\n}\n', old)
    edited = with_server(text, new)
    assert "/old/bin" not in edited
    assert found_server(edited, new) == new.entry
    assert without_server(edited, new) == '{\n  "a": 1\n}\n'


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {},
        "holdfast mcp",
        {"command": "holdfast"},
        {"command": "holdfast", "args": "mcp"},
        {"command": "holdfast", "args": [1]},
        {"command": "holdfast", "args": ["mcp", "/home/ada/shop"]},
        {"command": "holdfast", "args": ["mcp"], "env": {"A": "1"}},
        {"command": "/opt/holdfast.sh", "args": ["mcp"]},
        {"command": "python", "args": ["-m", "holdfast", "mcp"]},
        {"command": ["holdfast"], "args": {"0": "mcp"}},
        {"url": "https://example.com"},
    ],
)
def test_an_entry_of_the_user_under_our_name_is_not_touched(entry: Any) -> None:
    text = json.dumps({"mcpServers": {"holdfast": entry}})
    for edit in (with_server, without_server):
        with pytest.raises(NotOurs, match=r"mcpServers\.holdfast"):
            edit(text, SERVER)


def test_a_key_that_is_there_twice_is_taken_out_twice() -> None:
    entry = json.dumps(SERVER.entry)
    text = f'{{"a": 1, "mcpServers": {{"holdfast": {entry}, "holdfast": {entry}, "b": {{}}}}}}'
    left = without_server(text, SERVER)
    assert left is not None
    assert load(left) == {"a": 1, "mcpServers": {"b": {}}}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": []}', '{"mcpServers": null}'])
def test_what_is_no_table_of_servers_is_refused(text: str) -> None:
    for edit in (with_server, without_server):
        with pytest.raises(NotJson):
            edit(text, SERVER)

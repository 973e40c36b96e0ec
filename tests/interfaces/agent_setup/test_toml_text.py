"""Our table is added to a TOML text and removed to the byte, and nothing else changes."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.interfaces.agent_setup.mcp_server_edit import (
    NotOurs,
    with_server,
    without_server,
)
from holdfast.interfaces.agent_setup.settings_file import NotToml
from holdfast.interfaces.agents import agent_named

pytestmark = pytest.mark.requirement("HK-1")

SERVER = agent_named("codex").server("holdfast")
OLD = agent_named("codex").server("'/old python/bin/python' -m holdfast")
OURS = '[mcp_servers.holdfast]\ncommand = "holdfast"\nargs = ["mcp"]\n'

PIECES = [
    'model = "o5" # the best\n',
    "# a comment\n",
    "\n",
    "x = nan\n",
    "when = 2026-11-15T10:00:00Z\n",
    'notes = """\n[mcp_servers.holdfast]\ncommand = "holdfast"\nargs = ["mcp"]\n"""\n',
    '[mcp_servers.docs]\ncommand = "npx"\nargs = ["-y", "docs"]\n',
    "[mcp_servers]\n",
    '[mcp_servers."my own"]\nurl = "https://example.com/holdfast"\n',
    '[projects."/home/ada/shop"]\ntrust_level = "trusted"\n',
    "[[profiles]]\nname = 'a'\n",
]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Settings of Codex in any order that TOML allows, with and without a line end at the end."""
    text = ""
    for piece in draw(st.lists(st.sampled_from(PIECES), max_size=6)):
        try:
            tomllib.loads(text + piece)
        except tomllib.TOMLDecodeError:
            continue
        text += piece
    if draw(st.booleans()):
        text = text.removesuffix("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(text=documents(), later=st.sampled_from(["", "# later\n", "[later]\na = 1\n"]))
def test_any_document_gets_our_table_and_loses_it_to_the_byte(text: str, later: str) -> None:
    before = tomllib.loads(text)
    edited = with_server(text, SERVER)
    assert edited.startswith(text)
    after = tomllib.loads(edited)
    assert after["mcp_servers"].pop("holdfast") == SERVER.entry
    if "mcp_servers" not in before:
        assert after.pop("mcp_servers") == {}
    assert repr(after) == repr(before)
    assert with_server(edited, SERVER) == edited
    assert without_server(edited, SERVER) == text
    left = without_server(edited + later, SERVER)
    assert left is not None
    assert left.startswith(text)
    assert left.endswith(later)
    assert len(left) <= len(text + later) + 2
    assert repr(tomllib.loads(left)) == repr({**before, **tomllib.loads(later)})


def test_a_file_that_was_made_for_it_goes_and_an_empty_one_stays() -> None:
    assert with_server(None, SERVER) == OURS
    assert without_server(OURS, SERVER) is None
    assert without_server(OURS.rstrip("\n"), SERVER) is None
    assert without_server(with_server("", SERVER), SERVER) == ""


def test_a_table_of_another_version_is_replaced() -> None:
    old = with_server("a = 1\n", OLD)
    assert "/old python/bin/python" in old
    new = with_server(old, SERVER)
    assert "/old python" not in new
    assert without_server(new, SERVER) == "a = 1\n"


def test_what_to_add_to_an_inline_table_is_reported_and_is_what_we_write() -> None:
    text = 'mcp_servers = {docs = {command = "npx"}}\n'
    with pytest.raises(NotOurs) as told:
        with_server(text, SERVER)
    line = str(told.value).partition("by hand: ")[2]
    by_hand = text.replace("}}", "}, " + line + "}")
    assert with_server(by_hand, SERVER) == by_hand


def test_without_holdfast_there_is_nothing_to_remove() -> None:
    assert without_server("# holdfast\na = 1", SERVER) == "# holdfast\na = 1"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = {docs = {command = "npx"}}\n',
        "mcp_servers = {}\n",
        '[mcp_servers]\nholdfast = {command = "mine"}\n',
        '[mcp_servers.holdfast]\ncommand = "holdfast"\nargs = ["mcp", "/home/ada/shop"]\n',
        OURS + "startup_timeout_sec = 30\n",
        OURS + '[mcp_servers.holdfast.env]\nA = "1"\n',
        "[mcp_servers.holdfast]\nurl = 'https://example.com'\n",
    ],
)
def test_what_is_the_users_own_is_not_written_over(text: str) -> None:
    with pytest.raises(NotOurs, match="mcp_servers"):
        with_server(text, SERVER)


@pytest.mark.parametrize(
    "text",
    [
        OURS + "startup_timeout_sec = 30\n",
        OURS.replace("[mcp_servers.holdfast]", '[mcp_servers."holdfast"]'),
        OURS.replace('["mcp"]', '[ "mcp" ]'),
        OURS.replace('args = ["mcp"]', 'args = ["mcp"] # mine'),
        'mcp_servers = {holdfast = {command = "holdfast", args = ["mcp"]}}\n',
    ],
)
def test_lines_that_were_edited_are_not_taken_out(text: str) -> None:
    with pytest.raises(NotOurs, match=r"mcp_servers\.holdfast (was|were) edited"):
        without_server(text, SERVER)


@pytest.mark.parametrize(
    "text",
    [
        "a = \n",
        "a = 1\na = 2\n",
        "mcp_servers = 3\n",
        "[[mcp_servers]]\na = 1\n",
        "a = " + "9" * 5000,
        "a = " + "[" * 5000 + "]" * 5000,
        "\ufeffa = 1\n",
        "a = 1\r",
    ],
)
def test_what_is_not_toml_is_refused(text: str) -> None:
    for edit in (with_server, without_server):
        with pytest.raises(NotToml):
            edit(text, SERVER)

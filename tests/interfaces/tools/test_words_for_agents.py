"""What reaches an agent through tools speaks of tools: every hint that there is, and every call."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.errors import HoldfastError
from holdfast.domain.git.drift import TO_RESTORE_GIT
from holdfast.interfaces.tools.arguments import parse_arguments
from holdfast.interfaces.tools.handlers import TOOLS, error_data, error_text
from holdfast.interfaces.tools.wording import (
    ASK_USER,
    NOTICE_PHRASES,
    as_tool_calls,
    notice_in_calls,
)
from holdfast.tools import ToolHandlers
from tests.project.repository import ROOT

pytestmark = pytest.mark.requirement("CP-10", "MC-1")

SOURCE = ROOT / "src" / "holdfast"
NOT_FOR_AGENTS = ("cli", "hooks", "agents", "agent_setup", "daemon", "web")
"""Interfaces of people, and of agents that have a shell."""
NO_TOOL_DOES_IT = (
    "engine/purge/",
    "engine/bundles/",
    "components/git/accept.py",
    "interfaces/mcp/connection_limits.py",
    "interfaces/mcp/http.py",
)
"""Removing for good, moving between stores, commits of the user and starting a server."""

_COMMAND = re.compile(r"(?<!\.)\bholdfast [a-z]+")
_OPTION = re.compile(r"(?<!\S)--[a-z][\w-]*")
_LEFT = re.compile(
    rf"{re.escape(ASK_USER)}(?:holdfast [a-z].*?|kill \d+)(?=, or |, {ASK_USER}|;|\)|$)"
)
_CALL = re.compile(r"\b(checkpoint_[a-z]+) (\{.*?\})(?=[\s.,;)]|$)")
_OF_GIT = re.compile(r"\bgit( [a-z-]+)+( --[\w=-]+)+")
_KEYS = f"{ASK_USER}holdfast key list"
_PURPOSES = ("holdfast repair", "holdfast watcher", "holdfast daemon", "holdfast mcp")
"""What a process that holds the store is called."""


def _texts(without_tool: tuple[str, ...] = NO_TOOL_DOES_IT) -> Iterator[tuple[str, str]]:
    """Every text in the source that names a command or an option, with values in its places."""
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE)
        if place.parts[0] == "testing" or (
            place.parts[0] == "interfaces" and place.parts[1] in NOT_FOR_AGENTS
        ):
            continue
        tree = ast.parse(file.read_text())
        parts = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
            if part is not node
        }
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in parts or id(node) in docs:
                continue
            text = _text(node)
            if text is not None and _says_a_command(place, text, without_tool):
                yield f"{place}:{getattr(node, 'lineno', 0)}", text


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else _sample(ast.unparse(part))
            for part in node.values
        )
    return None


def _sample(expression: str) -> str:
    if "path" in expression:
        return "src/an odd, name.py"
    return "7" if "pid" in expression or "holder" in expression else "3f2a9c81d4"


def _says_a_command(place: Path, text: str, without_tool: tuple[str, ...]) -> bool:
    if text in _PURPOSES:
        return False
    option = _OPTION.search(_OF_GIT.sub("", text)) and " " in text and not text.startswith("--")
    if str(place).startswith((*without_tool, "domain/shell")):
        option = None
    return bool(_COMMAND.search(text) or option)


def _fault(place: str, text: str) -> str | None:
    """What is wrong with the words that an agent gets in place of this text, if anything is."""
    told_so = as_tool_calls(text)
    rest = _OF_GIT.sub("", _LEFT.sub("", told_so))
    if _COMMAND.search(rest):
        return "names a command"
    if not place.startswith(NO_TOOL_DOES_IT) and _OPTION.search(rest):
        return "names an option"
    if as_tool_calls(told_so) != told_so:
        return "changes when it is put into calls again"
    for name, arguments in _CALL.findall(told_so):
        try:
            parse_arguments(TOOLS[name], json.loads(arguments))
        except (HoldfastError, KeyError, ValueError) as error:
            return f"names a call that cannot be made: {error!r}"
    return None


def test_every_exception_is_about_a_text_that_exists() -> None:
    places = [place for place, _ in _texts(without_tool=())]
    unused = [one for one in NO_TOOL_DOES_IT if not any(map(_begins(one), places))]
    packages = [one for one in NOT_FOR_AGENTS if not (SOURCE / "interfaces" / one).is_dir()]
    strings = {
        node.value
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant)
    }
    purposes = [one for one in _PURPOSES if one not in strings]
    assert (unused, packages, purposes) == ([], [], [])


def _begins(start: str) -> Callable[[str], bool]:
    return lambda place: place.startswith(start)


# One test and not one for each text: collection would read the whole source in every worker.
def test_every_hint_is_reported_in_calls_or_as_something_for_a_person() -> None:
    texts = dict(_texts())
    assert len(texts) > 80
    assert {"run: holdfast repair", "list checkpoints: holdfast log"} <= set(texts.values())
    faults = {
        place: (fault, as_tool_calls(text))
        for place, text in texts.items()
        if (fault := _fault(place, text))
    }
    assert faults == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("list checkpoints: holdfast log", "list checkpoints: checkpoint_list {}"),
        (
            "restore it: holdfast restore 3f2a9c81d4 src/a b.py",
            (
                'restore it: checkpoint_restore {"checkpoint_id": "3f2a9c81d4", '
                '"paths": ["src/a b.py"]}'
            ),
        ),
        (
            "restore it: holdfast restore 3f2a9c81d4 'src/a b.py'",
            (
                'restore it: checkpoint_restore {"checkpoint_id": "3f2a9c81d4", '
                '"paths": ["src/a b.py"]}'
            ),
        ),
        (
            "they changed it: holdfast search 'path:\"a b.py\"'",
            'they changed it: checkpoint_search {"query": "path:\\"a b.py\\""}',
        ),
        ("skip such paths: --best-effort", 'skip such paths: "best_effort": true'),
        (
            TO_RESTORE_GIT,
            (
                'to restore git too: checkpoint_restore {"checkpoint_id": "REF", "files_only": '
                f"false}} puts it on a new branch, or {ASK_USER}holdfast restore REF --git exact"
            ),
        ),
        (
            "to restore its files: --with worktrees",
            f"to restore its files: {ASK_USER}holdfast restore REF --with worktrees",
        ),
        ("run: holdfast check --data", "ask the user to run: holdfast check --data"),
        (
            "more: holdfast key add, or drop: holdfast cleanup, holdfast key list",
            f"more: {ASK_USER}holdfast key add, or drop: checkpoint_cleanup {{}}, {_KEYS}",
        ),
        (
            "list its notes: holdfast show 3f2a",
            'list its notes: checkpoint_show {"checkpoint_id": "3f2a"}',
        ),
        ("process 7 (holdfast checkpoint) uses it", "process 7 (holdfast checkpoint) uses it"),
        ("wait for it to finish", "wait for it to finish"),
    ],
)
def test_commands_become_calls(text: str, said: str) -> None:
    assert as_tool_calls(text) == said


def test_errors_are_reported_in_calls_as_text_and_as_data() -> None:
    error = HoldfastError("there is none", hint="list checkpoints: holdfast log")
    assert error_text(error).endswith("What to do: list checkpoints: checkpoint_list {}")
    assert error_data(error)["hint"] == "list checkpoints: checkpoint_list {}"
    assert error_data(HoldfastError("there is none"))["hint"] is None


def test_the_phrases_of_notices_are_those_that_the_engine_writes() -> None:
    written = " ".join(_text(node) or "" for node in ast.walk(ast.parse(_notices())))
    for phrase in NOTICE_PHRASES:
        assert phrase in written
    assert "more: see" not in notice_in_calls("nothing of ours")


def _notices() -> str:
    conversation = "engine/conversation"
    files = (f"{conversation}/notices.py", "domain/git/drift.py")
    return "\n".join((SOURCE / name).read_text() for name in files)


@pytest.mark.requirement("RB-10")
def test_a_restore_is_reported_with_the_call_that_takes_it_back_and_with_peoples_own_words(
    tools: ToolHandlers, session: SessionCheckpointer, workspace: Path
) -> None:
    session.checkpoint("as holdfast log showed", name="first")
    (workspace / "notes.txt").write_text("changed")
    session.restore("first")
    output = tools.call("checkpoint_stats", {}).output
    assert "To undo this: checkpoint_undo {}." in output
    assert "as holdfast log showed" in output
    assert "holdfast undo" not in output


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("checkpoint_show", {"checkpoint_id": "nowhere"}),
        ("checkpoint_restore", {"checkpoint_id": "nowhere"}),
        ("checkpoint_restore", {"checkpoint_id": "HEAD", "paths": ["gone"]}),
        ("checkpoint_undo", {}),
        ("checkpoint_undo", {"redo": True}),
        ("checkpoint_why", {"path": "gone.py"}),
        ("checkpoint_why", {"path": "notes.txt", "checkpoint_id": "HEAD", "line": 99}),
        ("checkpoint_annotate", {"text": "x", "number": 9}),
        ("checkpoint_approve", {}),
        ("checkpoint_auto_configure", {"settings": {"retention": 4}}),
        ("checkpoint_create", {"reasoning": "x", "name": "first"}),
    ],
)
def test_what_goes_wrong_in_a_tool_names_no_command(
    tools: ToolHandlers, session: SessionCheckpointer, name: str, arguments: dict[str, object]
) -> None:
    session.checkpoint("there is one", name="first")
    session.approve("good")
    result = tools.call(name, arguments)
    assert not result.success
    assert not _COMMAND.search(result.output)
    assert not _OPTION.search(result.output)
    for tool, shown in _CALL.findall(result.output):
        parse_arguments(TOOLS[tool], json.loads(shown))

"""Which tools change files, whatever an agent calls them, and which paths they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.domain.agent_events import ToolKind
from holdfast.interfaces.hooks.payloads import text_of, texts_of

_MOST_PATHS = 50
_PATH_FIELDS = (
    "file_path filePath path notebook_path notebookPath target_file absolute_path filename file "
    "target_notebook"
).split()
_LIST_FIELDS = ("paths", "files", "file_paths")
_FROM_AND_TO = ("source", "destination")
_PATCH_FILE = re.compile(r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)

# Behind an agent's own table: names of tools that come and go with versions, plug-ins and servers.
_SHELL = re.compile(r"bash|shell|powershell|terminal|exec|run_?command|command_?run|zsh|cmd$")
_NOTEBOOK = re.compile(r"notebook")
_WRITE = re.compile(r"write|create|new_?file|delete|remove|move|rename|save_?file|upload|mkdir")
_EDIT = re.compile(r"edit|patch|replace|insert|modify|update_?file|refactor|format")
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_READS = frozenset(
    "count describe directory find get glob grep inspect list lookup read search show stat think "
    "tree view".split()
)
_CHANGES = frozenset(
    "add append apply build checkout clone commit copy create delete download drop edit exec "
    "execute export fix format generate import insert install make merge mkdir modify move new "
    "patch pull push put refactor remove rename replace reset restore revert run save set sync "
    "touch update upload write".split()
)
_OF_AGENTS = frozenset(
    """
    agent askfollowupquestion askquestion askuser askuserquestion attemptcompletion codesearch
    enterplanmode exitplanmode fetchwebcontent googlewebsearch invalid killshell listagents lsp
    monitor planexit planmoderespond question readagent readimage readfiles reportintent
    savememory searchcodebase sendmessage sequentialthinking skill skills spawnagent
    submitandexit task taskcreate taskget tasklist taskoutput taskstop taskupdate todoread
    todowrite toolsearch updateplan updatetodo wait webfetch websearch writetodos
    """.split()
)
"""Built-in tools that change no file, whoever's they are."""
_OURS = re.compile(r"(?:mcp__(?:plugin_holdfast_)?holdfast__|mcp_holdfast_|holdfast(?:__|_|-))")


def tool_kind(name: str, table: Mapping[str, ToolKind]) -> ToolKind:
    """By the agent's own table first, then by what the name says. What is not known to be harmless
    may change files: a tool of an MCP server tells nobody what it does."""
    known = table.get(name)
    if known is not None:
        return known
    if _OURS.match(name) or re.sub(r"[\W_]", "", name).lower() in _OF_AGENTS:
        return ToolKind.OTHER  # our own save by themselves
    if _only_reads(name):
        return ToolKind.OTHER
    word = name.rsplit("__", 1)[-1].lower()
    for pattern, kind in (
        (_NOTEBOOK, ToolKind.NOTEBOOK),
        (_SHELL, ToolKind.SHELL),
        (_EDIT, ToolKind.EDIT),
        (_WRITE, ToolKind.WRITE),
    ):
        if pattern.search(word):
            return kind
    return ToolKind.UNKNOWN


def _only_reads(name: str) -> bool:
    """Whether a tool says by its name that it reads, and nothing else. The name of its server may
    stand before it: `mcp__files__read_file`, `files-read_file`, `MCP:read_file`."""
    words = [word.lower() for word in _WORDS.findall(re.split(r"__|[-:/.]", name)[-1])]
    every = {word.lower() for word in _WORDS.findall(name)}
    return bool(words) and words[0] in _READS and _CHANGES.isdisjoint(every)


def command_of(tool_input: Mapping[str, Any]) -> str:
    """The command line of a shell tool: a text, or a list of words or of commands."""
    text = text_of(tool_input, "command", "cmd", "script", "code")
    if text:
        return text
    words = texts_of(tool_input, "command", "cmd")
    if words[1:2] and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh") and words[1][:1] == "-":
        return words[-1]
    return " ".join(words) or "\n".join(texts_of(tool_input, "commands"))


def paths_of(tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that a tool names, those in the headers of a patch included."""
    found: dict[str, None] = {}
    for name in _PATH_FIELDS:
        path = text_of(tool_input, name)
        if path and "\n" not in path:
            found.setdefault(path)
    for path in texts_of(tool_input, *_LIST_FIELDS):
        found.setdefault(path)
    if all(text_of(tool_input, name) for name in _FROM_AND_TO):
        for name in _FROM_AND_TO:
            found.setdefault(text_of(tool_input, name))
    edits = tool_input.get("edits")
    for edit in edits[:_MOST_PATHS] if isinstance(edits, list) else []:
        if isinstance(edit, dict) and (path := text_of(edit, *_PATH_FIELDS)):
            found.setdefault(path)
    for field in ("command", "patch", "input", "patchText", "diff"):
        text = text_of(tool_input, field)
        if text.lstrip().startswith("*** Begin Patch"):
            for path in _PATCH_FILE.findall(text):
                found.setdefault(path)
    return tuple(found)[:_MOST_PATHS]

"""Reads an event's JSON, with limits, from any agent and version. Also reads a tool call: whether
it may change files, its command and its paths.

A payload that is too large or not JSON can still be identified. The important fields are searched
for at its beginning and end, so that the workspace is saved anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, BinaryIO

from holdfast.domain.agent_events import ToolKind

MOST_BYTES = 16 << 20
_END_BYTES = 64 << 10
_MOST_TEXT = 1 << 20
_FIELD = re.compile(
    rb'"(session_id|sessionId|conversation_id|taskId|sessionID|hook_event_name|hookName|event|cwd'
    rb"|working_dir|transcript_path|tool_name|toolName|tool|tool_use_id|tool_call_id|callID|turn_id"
    rb'|prompt_id|file_path|filePath|path|[a-z]+_version|[a-z]+Version|command)"\s*:\s*'
    rb'"((?:[^"\\]|\\.){0,4000})"'
)


class Unreadable(Exception):
    """Nothing in the payload identifies the event."""


def read_payload(stream: BinaryIO, beginning: bytes = b"") -> dict[str, Any]:
    """Reads the whole stream after its `beginning`, which was read already: an agent must not fail
    because its input was not read."""
    data = beginning + stream.read(MOST_BYTES + 1 - len(beginning))
    if len(data) <= MOST_BYTES:
        return parse_payload(data)
    tail = b""
    while chunk := stream.read(1 << 20):
        tail = (tail + chunk)[-_END_BYTES:]
    return _salvage(data[:_END_BYTES] + b"\n" + tail)


def parse_payload(data: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return _salvage(data[:_END_BYTES] + b"\n" + data[-_END_BYTES:])
    if not isinstance(parsed, dict):
        raise Unreadable(f"the event is {type(parsed).__name__}, not an object")
    return parsed


def _salvage(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in _FIELD.findall(data):
        try:
            text = json.loads(b'"' + value + b'"')
        except ValueError:
            continue
        found.setdefault(name.decode(), text)
    if not found:
        raise Unreadable("the event is not JSON")
    # Their real position is lost; all readers look here too.
    found.setdefault("tool_input", {k: found[k] for k in ("command", "file_path") if k in found})
    return found


def text_of(payload: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a text or a number, as text; empty if there is none."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value[:_MOST_TEXT]
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def object_of(payload: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The first of these fields that is an object, or a text with the JSON of one."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                continue
        if isinstance(value, dict):
            return value
    return {}


def texts_of(payload: Mapping[str, Any], *names: str) -> list[str]:
    """The texts in the first of these fields that is a list with any."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, list):
            found = [item for item in value[:1000] if isinstance(item, str) and item]
            if found:
                return found
    return []


_MOST_PATHS = 50
_PATH_FIELDS = (
    "file_path filePath path notebook_path notebookPath target_file absolute_path filename file "
    "target_notebook"
).split()
_LIST_FIELDS = ("paths", "files", "file_paths")
_FROM_AND_TO = ("source", "destination")
_PATCH_FILE = re.compile(r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)

# Fallbacks after an agent's own table: tool names that vary with versions, plug-ins and servers.
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
"""Built-in tools of all agents that change no file."""
_OURS = re.compile(r"(?:mcp__(?:plugin_holdfast_)?holdfast__|mcp_holdfast_|holdfast(?:__|_|-))")


def tool_kind(name: str, table: Mapping[str, ToolKind]) -> ToolKind:
    """By the agent's own table, then by the name. A tool that is not known to be harmless may
    change files, because the effect of an MCP tool is unknown."""
    known = table.get(name)
    if known is not None:
        return known
    if _OURS.match(name) or re.sub(r"[\W_]", "", name).lower() in _OF_AGENTS:
        return ToolKind.OTHER  # Holdfast's own tools save automatically
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
    """Whether a tool's name says that it only reads. The server's name may precede it:
    `mcp__files__read_file`, `files-read_file`, `MCP:read_file`."""
    words = [word.lower() for word in _WORDS.findall(re.split(r"__|[-:/.]", name)[-1])]
    every = {word.lower() for word in _WORDS.findall(name)}
    return bool(words) and words[0] in _READS and _CHANGES.isdisjoint(every)


def command_of(tool_input: Mapping[str, Any]) -> str:
    """The command line of a shell tool: a text, or a list of words or commands."""
    text = text_of(tool_input, "command", "cmd", "script", "code")
    if text:
        return text
    words = texts_of(tool_input, "command", "cmd")
    if words[1:2] and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh") and words[1][:1] == "-":
        return words[-1]
    return " ".join(words) or "\n".join(texts_of(tool_input, "commands"))


def paths_of(tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that a tool names, including those in patch headers."""
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

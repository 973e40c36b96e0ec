"""Which tools change files, whatever an agent calls them, and which paths they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.interfaces.hooks.events import ToolKind
from holdfast.interfaces.hooks.payloads import text_of, texts_of

_MOST_PATHS = 50
_PATH_FIELDS = (
    "file_path filePath path notebook_path notebookPath target_file absolute_path filename file "
    "target_notebook"
).split()
_LIST_FIELDS = ("paths", "files", "file_paths")
_PATCH_FILE = re.compile(r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+?)\s*$", re.MULTILINE)

# Behind an agent's own table: names of tools that come and go with versions and plug-ins.
_SHELL = re.compile(r"bash|shell|powershell|terminal|exec|run_?command|command_?run|zsh|cmd$")
_NOTEBOOK = re.compile(r"notebook")
_WRITE = re.compile(r"write|create|new_?file|delete|remove|move|rename|save_?file|upload|mkdir")
_EDIT = re.compile(r"edit|patch|replace|insert|modify|update_?file|refactor|format")
_READS = re.compile(
    r"^(?:read|list|search(?!_?(?:and_?)?replace)|grep|glob|fetch|find(?!_?(?:and_?)?replace)|get|view"
    r"|task|think|plan)|issue|todo|comment"
)


def tool_kind(name: str, table: Mapping[str, ToolKind]) -> ToolKind:
    """By the agent's own table first; then by what the name says."""
    known = table.get(name)
    if known is not None:
        return known
    word = name.rsplit("__", 1)[-1].lower()
    if name.startswith(("mcp__holdfast__", "mcp_holdfast_", "holdfast__")):
        return ToolKind.OTHER  # our own: they save by themselves
    for pattern, kind in (
        (_NOTEBOOK, ToolKind.NOTEBOOK),
        (_SHELL, ToolKind.SHELL),
        (_EDIT, ToolKind.EDIT),
        (_WRITE, ToolKind.WRITE),
    ):
        if pattern.search(word):
            return ToolKind.OTHER if _READS.search(word) else kind
    return ToolKind.OTHER


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

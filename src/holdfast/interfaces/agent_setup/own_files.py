"""Files that are wholly ours: scripts, plug-ins, skills, each with a line that says so."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

CLINE_EVENTS = (
    "TaskStart TaskResume UserPromptSubmit PreToolUse PostToolUse TaskComplete SessionShutdown"
).split()


def is_own(text: str) -> bool:
    """Whether a file that has the place of one of ours was written by us and is nothing more: a
    script that somebody else wrote may call us, and stays theirs."""
    if text.startswith("#!"):
        lines = [line for line in text.splitlines() if line.strip()]
        return len(lines) == 3 and lines[1].startswith("# holdfast: ")
    signs = (
        "// holdfast: ",
        "<!-- a skill of holdfast -->",
        '"name": "holdfast"',
        "holdfast hook ",
    )
    return any(sign in text for sign in signs)


def cline_script(program: str) -> str:
    return f"""#!/bin/sh
# holdfast: saves the workspace before Cline changes it. "holdfast uninstall cline" removes this.
{program} hook cline || echo '{{"cancel": false}}'
"""


def opencode_plugin(program: str) -> str:
    """The shim with the command that it calls."""
    import json
    import shlex

    text = _shipped().joinpath("opencode", "holdfast.js").read_text("utf-8")
    return text.replace('["holdfast"]', json.dumps(shlex.split(program)))


def goose_manifest() -> str:
    import json

    from holdfast import __version__

    manifest = {
        "name": "holdfast",
        "version": __version__,
        "description": "Saves the workspace before goose changes it",
    }
    return json.dumps(manifest, indent=2) + "\n"


def skills() -> dict[str, str]:
    """Every skill by its name: the text of its SKILL.md."""
    folder = _shipped().joinpath("plugin", "skills")
    found = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return {entry.name: entry.joinpath("SKILL.md").read_text("utf-8") for entry in found}


def plugin_files() -> dict[str, bytes]:
    """The plug-in directory: every file by its path in it."""
    found: dict[str, bytes] = {}
    waiting: list[tuple[str, Traversable]] = [("", _shipped().joinpath("plugin"))]
    while waiting:
        prefix, place = waiting.pop()
        for entry in place.iterdir():
            path = f"{prefix}{entry.name}"
            if entry.is_dir():
                waiting.append((path + "/", entry))
            else:
                found[path] = entry.read_bytes()
    return dict(sorted(found.items()))


def _shipped() -> Traversable:
    return files("holdfast.interfaces.agent_setup").joinpath("shipped")

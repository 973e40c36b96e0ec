"""Telling agents to trust a project and its hooks, as they write it down themselves."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.interfaces.agents.codex import trusted_digests


def trust(agent: str, project: Path, home: Path) -> None:
    """For agents that ask; the hooks are installed already."""
    if agent == "codex":
        trust_codex_project(project, home)
        trust_codex_hooks(project, home)
    elif agent == "copilot":
        _write(home / ".copilot" / "config.json", {"trustedFolders": [str(project.parent)]})
    elif agent == "gemini":
        _write(home / ".gemini" / "trustedFolders.json", {str(project): "TRUST_FOLDER"})


def trust_codex_project(project: Path, home: Path) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(f'[projects."{project}"]\ntrust_level = "trusted"\n')


def trust_codex_hooks(project: Path, home: Path) -> None:
    with (home / ".codex" / "config.toml").open("a") as file:
        for key, digest in trusted_digests(project / ".codex" / "hooks.json"):
            file.write(f'[hooks.state."{key}"]\ntrusted_hash = "{digest}"\n')


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))

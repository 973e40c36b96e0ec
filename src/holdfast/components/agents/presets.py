"""Where known agents keep what they remember of one workspace.

Instructions and memory only: no credentials, no caches, no transcripts. What an agent keeps for all
workspaces together (Codex's memories are such) comes with its preset because it has no other.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.domain.agent_patterns import AGENTS

_NOT_IN_A_SLUG = re.compile(r"[^A-Za-z0-9]")


def preset(agent: str, workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The patterns of one of `AGENTS`."""
    return _PRESETS[agent](workspace, environment)


def _claude_code(workspace: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    slug = _NOT_IN_A_SLUG.sub("-", str(workspace))
    home = _own_place(environment, "CLAUDE_CONFIG_DIR", "~/.claude")
    return (
        "CLAUDE.md",
        "CLAUDE.local.md",
        ".claude",
        f"{home}/projects/{_literal(slug)}/memory",
    )


def _codex(_: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    home = _own_place(environment, "CODEX_HOME", "~/.codex")
    return ("AGENTS.md", "AGENTS.override.md", ".codex", ".agents", f"{home}/memories")


def _gemini(workspace: Path, _: Mapping[str, str]) -> tuple[str, ...]:
    digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()
    name = re.sub(r"[^a-z0-9]+", "-", workspace.name.lower()).strip("-")
    named = (f"~/.gemini/tmp/{name}/memory",) if name else ()
    return ("GEMINI.md", ".gemini", f"~/.gemini/tmp/{digest}/memory", *named)


def _cursor(_: Path, __: Mapping[str, str]) -> tuple[str, ...]:
    return (".cursor", ".cursorrules", "AGENTS.md")


def _copilot(_: Path, __: Mapping[str, str]) -> tuple[str, ...]:
    return (
        ".github/copilot-instructions.md",
        ".github/instructions",
        ".github/copilot",
        ".github/hooks",
        "AGENTS.md",
    )


def _opencode(_: Path, __: Mapping[str, str]) -> tuple[str, ...]:
    return ("AGENTS.md", ".opencode", "opencode.json", "opencode.jsonc")


def _cline(_: Path, __: Mapping[str, str]) -> tuple[str, ...]:
    return (".clinerules", ".cline", "memory-bank")


def _goose(_: Path, __: Mapping[str, str]) -> tuple[str, ...]:
    return (".goosehints", ".goose")


_PRESETS: Mapping[str, Callable[[Path, Mapping[str, str]], tuple[str, ...]]] = dict(
    zip(
        AGENTS,
        (_claude_code, _codex, _gemini, _cursor, _copilot, _opencode, _cline, _goose),
        strict=True,
    )
)


def _own_place(environment: Mapping[str, str], variable: str, default: str) -> str:
    """Where an agent was told to keep its files, if that is a full path."""
    chosen = environment.get(variable, "")
    return _literal(chosen.rstrip("/")) if chosen.startswith("/") and chosen != "/" else default


def _literal(text: str) -> str:
    """As a pattern that stands for nothing but itself."""
    return re.sub(r"([*?\[])", r"[\1]", text)

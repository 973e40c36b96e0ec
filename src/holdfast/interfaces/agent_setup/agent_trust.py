"""What keeps an agent from running hooks that stand in its settings: a switch, or no trust yet.

Read from the agents' own files as their published versions write them. Nothing here asks an agent,
and nothing is changed: whom to trust is the user's to say, to the agent.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.agent_setup.hooks_edit import is_ours
from holdfast.interfaces.agent_setup.json_text import NotJson, load
from holdfast.interfaces.agent_setup.placements import Locations
from holdfast.interfaces.agent_setup.settings_file import read_settings
from holdfast.interfaces.agent_setup.toml_text import NotToml, load_toml


class Withheld(NamedTuple):
    """Why an agent runs no hooks, and what a person can do about it."""

    reason: str
    cure: str


def withheld(agent: str, scope: str, at: Locations, path: Path) -> Withheld | None:
    """None when nothing is known that would keep it from running the hooks in `path`."""
    look = _LOOKS.get(agent)
    return None if look is None else look(scope, at, path)


def _claude_code(scope: str, at: Locations, path: Path) -> Withheld | None:
    own = at.own("CLAUDE_CONFIG_DIR", ".claude")
    project = at.workspace / ".claude"
    managed = Path(
        "/Library/Application Support/ClaudeCode"
        if sys.platform == "darwin"
        else "/etc/claude-code"
    )
    said: Path | None = None
    for file in (
        own / "settings.json",
        project / "settings.json",
        project / "settings.local.json",
        managed / "managed-settings.json",
    ):
        found = _json(file)
        if isinstance(found.get("disableAllHooks"), bool):
            said = file if found["disableAllHooks"] else None
        if file.parent == managed and found.get("allowManagedHooksOnly") is True:
            return Withheld(
                f"allowManagedHooksOnly is set in {file}",
                "ask whoever manages Claude Code here to add the hooks there",
            )
    if said is None:
        return None
    return Withheld(f"disableAllHooks is set in {said}", "take that out of the file")


def _codex(scope: str, at: Locations, path: Path) -> Withheld | None:
    config = at.own("CODEX_HOME", ".codex") / "config.toml"
    settings = _toml(config)
    features = settings.get("features")
    if isinstance(features, dict) and features.get("hooks", features.get("codex_hooks")) is False:
        return Withheld(f"hooks are turned off in {config}", "codex features enable hooks")
    if scope == "project" and not _trusts_project(settings, at.workspace):
        return Withheld(
            "Codex has not been told to trust this directory, and runs no hooks of it; codex exec "
            "does not ask",
            "start codex here once and accept; then accept the hooks",
        )
    if not _trusts_hooks(settings, path):
        return Withheld(
            "Codex has not been told to trust these hooks, and does not run them; codex exec does "
            "not ask",
            "start codex here once and accept the hooks, or type /hooks in it",
        )
    return None


def _trusts_project(settings: Mapping[str, Any], workspace: Path) -> bool:
    projects = settings.get("projects")
    trusted = {
        os.path.realpath(path)
        for path, said in (projects if isinstance(projects, dict) else {}).items()
        if isinstance(said, dict) and said.get("trust_level") == "trusted"
    }
    return any(str(place) in trusted for place in (workspace, _repository(workspace)))


def _repository(workspace: Path) -> Path:
    """What Codex asks about: the root of the repository, the first one for its worktrees."""
    for place in (workspace, *workspace.parents):
        marker = place / ".git"
        if marker.is_dir():
            return place
        if marker.is_file():
            try:
                link = marker.read_text("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
            except OSError:
                return place
            shared = Path(os.path.realpath(place / link)).parent.parent
            return shared.parent if shared.name == ".git" else place
    return workspace


def _trusts_hooks(settings: Mapping[str, Any], path: Path) -> bool:
    """Whether every hook of ours in a file is trusted, by the digest of what it says."""
    hooks = settings.get("hooks")
    states = hooks.get("state") if isinstance(hooks, dict) else None
    known = states if isinstance(states, dict) else {}
    return all(
        isinstance(state := known.get(key), dict)
        and state.get("trusted_hash") == digest
        and state.get("enabled") is not False
        for key, digest in codex_hooks(path)
    )


def codex_hooks(path: Path) -> Iterator[tuple[str, str]]:
    """Each hook of ours in a file, by the key that Codex has for it, and the digest that it trusts
    it by."""
    source = os.path.abspath(path)
    events = _json(path).get("hooks")
    for event, groups in (events if isinstance(events, dict) else {}).items():
        label = "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")
        for group_index, group in enumerate(groups if isinstance(groups, list) else []):
            handlers = group.get("hooks", []) if isinstance(group, dict) else []
            for index, handler in enumerate(handlers):
                if isinstance(handler, dict) and is_ours(handler.get("command"), "codex"):
                    digest = _codex_digest(label, group.get("matcher"), handler)
                    yield f"{source}:{label}:{group_index}:{index}", digest


def _codex_digest(label: str, matcher: Any, handler: Mapping[str, Any]) -> str:
    timeout = handler.get("timeout", 600)
    normal = {"async": False, **handler, "timeout": timeout}
    identity: dict[str, Any] = {"event_name": label, "hooks": [normal]}
    if matcher is not None and label not in ("user_prompt_submit", "stop"):
        identity["matcher"] = matcher
    said = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def _copilot(scope: str, at: Locations, path: Path) -> Withheld | None:
    own = at.own("COPILOT_HOME", ".copilot")
    shared = at.workspace / ".github" / "copilot"
    places = [own / "settings.json", own / "config.json", path]
    places += [shared / "settings.json", shared / "settings.local.json"]
    for file in places:
        if _json(file).get("disableAllHooks") is True:
            return Withheld(f"disableAllHooks is set in {file}", "take that out of the file")
    if scope == "user" or at.environment.get("COPILOT_ALLOW_ALL") == "true":
        return None
    config = _json(own / "config.json")
    folders = [*_texts(config.get("trustedFolders")), *_texts(config.get("trusted_folders"))]
    if any(at.workspace.is_relative_to(os.path.realpath(folder)) for folder in folders):
        return None
    return Withheld(
        "Copilot has not been told to trust this directory, and runs no hooks of it; copilot -p "
        "does not ask",
        "start copilot here once and choose to trust the directory for good, or install the hooks "
        "for all projects: holdfast install copilot --user",
    )


def _gemini(scope: str, at: Locations, path: Path) -> Withheld | None:
    own = at.own("GEMINI_CLI_HOME", "") / ".gemini"
    files = (own / "settings.json", at.workspace / ".gemini" / "settings.json")
    trusting: object = None
    for file in files:
        found = _json(file)
        switches = found.get("hooksConfig")
        switches = switches if isinstance(switches, dict) else {}
        if switches.get("enabled") is False:
            return Withheld(f"hooksConfig.enabled is false in {file}", "take that out of the file")
        if "holdfast" in _texts(switches.get("disabled")):
            return Withheld(
                f"hooksConfig.disabled names holdfast in {file}",
                "type /hooks enable holdfast in gemini",
            )
        security = found.get("security")
        folder_trust = security.get("folderTrust") if isinstance(security, dict) else None
        if file.parent == own and isinstance(folder_trust, dict):
            trusting = folder_trust.get("enabled")
    if trusting is False or at.environment.get("GEMINI_CLI_TRUST_WORKSPACE") == "true":
        return None
    trust = at.environment.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    if _trusted_by_gemini(
        _json(Path(trust) if trust else own / "trustedFolders.json"), at.workspace
    ):
        return None
    return Withheld(
        "Gemini has not been told to trust this directory, and runs no hooks in it",
        "start gemini here once and choose to trust the directory, or type /permissions in it",
    )


def _trusted_by_gemini(folders: Mapping[str, Any], workspace: Path) -> bool:
    """The rule for the nearest directory upwards counts."""
    rules = {}
    for folder, rule in folders.items():
        place = Path(os.path.realpath(folder))
        place = place.parent if rule == "TRUST_PARENT" else place
        if workspace.is_relative_to(place):
            rules[len(place.parts)] = rule
    return bool(rules) and rules[max(rules)] in ("TRUST_FOLDER", "TRUST_PARENT")


def _json(path: Path) -> dict[str, Any]:
    """Settings as they are; nothing where there are none, or none that can be read."""
    try:
        text, _ = read_settings(path)
        found = load(text) if text is not None else {}
    except (HoldfastError, NotJson):
        return {}
    return found if isinstance(found, dict) else {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        text, _ = read_settings(path)
        return load_toml(text) if text is not None else {}
    except (HoldfastError, NotToml):
        return {}


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


_LOOKS = {"claude-code": _claude_code, "codex": _codex, "copilot": _copilot, "gemini": _gemini}

"""Files that Holdfast owns completely: scripts, plug-ins and skills. A line in each says so, with a
fingerprint that detects edits. An edited file is no longer only Holdfast's."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from holdfast.domain.errors import Refused
from holdfast.interfaces.agents import every_agent
from holdfast.interfaces.agents.agent import Agent, Locations, SettingsFile

_SIGNS = ("// holdfast: ", "# holdfast: ", "<!-- a skill of holdfast")
_SEAL = re.compile(r" \(as written: ([0-9a-f]{16})\)")
_NAMES = (*_SIGNS, '"name": "holdfast"', "holdfast hook ", "-m holdfast")


def sealed(text: str) -> str:
    """The text with its own fingerprint in the ownership line."""
    seal = f" (as written: {_fingerprint(text)})"
    lines = text.splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(_SIGNS))
    said = lines[place].rstrip("\n")
    end = " -->" if said.endswith(" -->") else ""
    lines[place] = said.removesuffix(end) + seal + end + "\n"
    return "".join(lines)


def is_untouched(text: str, content: str) -> bool:
    """Whether a Holdfast file is as some version wrote it; `content` is its current form."""
    seal = _SEAL.search(text)
    if seal is not None:
        return _fingerprint(_SEAL.sub("", text, count=1)) == seal[1]
    said = _manifest(text)
    return said is not None and said == _manifest(content)


def names_us(text: str, marks: Sequence[str] = ()) -> bool:
    """Whether a file contains anything from Holdfast, edited or not."""
    return any(name in text for name in (*_NAMES, *marks))


def _fingerprint(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _manifest(text: str) -> dict[str, object] | None:
    """The manifest of a plug-in, of any version."""
    import json

    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    return {key: value for key, value in found.items() if key != "version"}


def skill_files(agent: Agent, scope: str, at: Locations) -> list[SettingsFile]:
    """The skills in the agent's directory; most agents share one. There, a file beside a skill
    keeps one agent from starting it on its own."""
    own = agent.own_skills(scope, at)
    base = own or at.root(scope) / ".agents" / "skills"
    names = ("SKILL.md", "agents/openai.yaml") if own is None else ("SKILL.md",)
    return [
        SettingsFile(base / skill / name, sealed(text))
        for name in names
        for skill, text in skills(name).items()
    ]


def skills(name: str = "SKILL.md") -> dict[str, str]:
    """A file of every skill that has it, by skill name."""
    folders = sorted(_shipped().joinpath("plugin", "skills").iterdir())
    return {f.name: (f / name).read_text("utf-8") for f in folders if (f / name).is_file()}


def plugin_files() -> dict[str, bytes]:
    """Every file in the plug-in directory, by path, for all agents that have plug-ins."""
    import json

    folder = _shipped() / "plugin"
    shared = [path for path in folder.rglob("*") if path.is_file()]
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in shared}
    for agent in every_agent():
        for path, said in agent.plugin_files().items():
            found[path] = (json.dumps(said, indent=2) + "\n").encode()
    return dict(sorted(found.items()))


def _shipped() -> Path:
    # `importlib.resources` would import a dozen modules in every `status`.
    return Path(__file__).with_name("shipped")


def write_plugin(target: Path, *, dry_run: bool) -> list[Path]:
    """Write the plug-in, and return the paths. A directory with other or edited files is refused,
    because edits may be the user's."""
    try:
        return _written(target, dry_run=dry_run)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise Refused(
            f"cannot write the plug-in to {target}: {error.strerror} ({error.filename})",
            hint="use a new directory inside one that you can write to",
        ) from None


def _written(target: Path, *, dry_run: bool) -> list[Path]:
    wanted = plugin_files()
    manifests = [target / path for path in wanted if path.endswith("/plugin.json")]
    if target.exists() and not target.is_dir():
        raise Refused(f"{target} is not a directory", hint="use a new or empty directory")
    if target.is_dir() and any(target.iterdir()) and not any(m.is_file() for m in manifests):
        raise Refused(f"{target} contains other files", hint="use a new or empty directory")
    for path, data in wanted.items():
        if (target / path).exists() and (target / path).read_bytes() != data:
            raise Refused(
                f"{target / path} was edited or comes from another version; nothing was changed",
                hint="remove the directory if you did not edit it, or use another one",
            )
    if not dry_run:
        for path, data in wanted.items():
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    return [target / path for path in wanted]

"""Files that are wholly ours: scripts, plug-ins, skills, each with a line that says so, and which
of them are still what was written. What somebody has edited is not only ours any more."""

from __future__ import annotations

import errno
import re
from hashlib import sha256
from pathlib import Path

from holdfast.domain.errors import Refused
from holdfast.interfaces.agent_setup.mcp_server_edit import called_by

_MANIFEST = ".claude-plugin/plugin.json"


def write_plugin(target: Path, *, dry_run: bool) -> list[Path]:
    """The paths that are written. A directory that holds something else is refused, and so is one
    in which a file is not as this version writes it: somebody may have edited it."""
    try:
        return _written(target, dry_run=dry_run)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise Refused(
            f"the plug-in cannot be written to {target}: {error.strerror} ({error.filename})",
            hint="name a new directory in one that you may write to",
        ) from None


def _written(target: Path, *, dry_run: bool) -> list[Path]:
    manifest = target / _MANIFEST
    if target.exists() and not target.is_dir():
        raise Refused(f"{target} is not a directory", hint="name one that is new or empty")
    if target.is_dir() and any(target.iterdir()) and not manifest.is_file():
        raise Refused(f"{target} holds something else", hint="name one that is new or empty")
    wanted = plugin_files()
    for path, data in wanted.items():
        if (target / path).exists() and (target / path).read_bytes() != data:
            raise Refused(
                f"{target / path} is not as this version writes it; nothing was changed",
                hint="remove the directory if nobody has edited it, or name another one",
            )
    if not dry_run:
        for path, data in wanted.items():
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    return [target / path for path in wanted]


CLINE_EVENTS = (
    "TaskStart TaskResume UserPromptSubmit PreToolUse PostToolUse PreCompact "
    "TaskComplete SessionShutdown"
).split()


_GOOSE = "Saves the workspace before goose changes it"
_SIGNS = ("// holdfast: ", "# holdfast: ", "<!-- a skill of holdfast")
_SEAL = re.compile(r" \(as written: ([0-9a-f]{16})\)")
_NAMES = (*_SIGNS, '"name": "holdfast"', "holdfast hook ", "-m holdfast", '"hook", "opencode"')


def sealed(text: str) -> str:
    """The text with a fingerprint of itself in the line that says whose it is."""
    seal = f" (as written: {_fingerprint(text)})"
    lines = text.splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(_SIGNS))
    said = lines[place].rstrip("\n")
    end = " -->" if said.endswith(" -->") else ""
    lines[place] = said.removesuffix(end) + seal + end + "\n"
    return "".join(lines)


def is_untouched(text: str) -> bool:
    """Whether a file of ours, of this version or another, is as it was written."""
    seal = _SEAL.search(text)
    if seal is not None:
        return _fingerprint(_SEAL.sub("", text, count=1)) == seal[1]
    return _is_manifest(text)


def names_us(text: str) -> bool:
    """Whether anything of ours is in a file, edited or not."""
    return any(name in text for name in _NAMES)


def _fingerprint(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _is_manifest(text: str) -> bool:
    import json

    try:
        found = json.loads(text)
    except ValueError:
        return False
    if not isinstance(found, dict):
        return False
    said = {key: value for key, value in found.items() if key != "version"}
    return said == {"name": "holdfast", "description": _GOOSE}


_CLINE_SIGN = "# holdfast: saves the workspace before Cline changes it."
_CLINE_YES = """|| echo '{"cancel": false}'"""


def cline_script(program: str) -> str:
    return sealed(f"""#!/bin/sh
{_CLINE_SIGN} "holdfast uninstall cline" removes this.
{program} hook cline {_CLINE_YES}
""")


def without_cline_lines(text: str) -> str | None:
    """A script that somebody has added lines to, without ours; empty when all that was added is
    space. None when ours are not as they were written: who can tell what else hangs on them."""
    lines = text.splitlines(keepends=True)
    signs = [line for line in lines if line.startswith(_CLINE_SIGN)]
    commands = [line for line in lines if _is_cline_command(line)]
    naming = [line for line in lines if "holdfast" in line]
    if len(signs) != 1 or len(commands) != 1 or naming != [*signs, *commands]:
        return None
    rest = "".join(line for line in lines if line not in (signs[0], commands[0]))
    return "" if rest.split() == ["#!/bin/sh"] else rest


def _is_cline_command(line: str) -> bool:
    import shlex

    called, hook, rest = line.rstrip("\n").partition(" hook cline ")
    try:
        words = shlex.split(called)
    except ValueError:
        return False
    return bool(hook) and rest == _CLINE_YES and called_by(words) == len(words)


def opencode_plugin(program: str) -> str:
    """The shim with the command that it calls."""
    import json
    import shlex

    text = _shipped().joinpath("opencode", "holdfast.js").read_text("utf-8")
    return sealed(text.replace('["holdfast"]', json.dumps(shlex.split(program))))


def program_in(text: str, agent: str) -> str | None:
    """The words by which a file of ours calls us; None when it does not, or not as we write it."""
    import json
    import shlex

    if agent == "cline":
        found = [line for line in text.splitlines() if _is_cline_command(line)]
        return found[0].partition(" hook cline ")[0] if found else None
    listed = re.search(r"^const COMMAND = (\[.*\])\r?$", text, re.MULTILINE)
    try:
        return None if listed is None else shlex.join(json.loads(listed[1]))
    except (ValueError, TypeError):
        return None


def goose_manifest() -> str:
    import json

    from holdfast import __version__

    manifest = {"name": "holdfast", "version": __version__, "description": _GOOSE}
    return json.dumps(manifest, indent=2) + "\n"


def skills() -> dict[str, str]:
    """Every skill by its name: the text of its SKILL.md."""
    folder = _shipped().joinpath("plugin", "skills")
    found = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return {entry.name: sealed(entry.joinpath("SKILL.md").read_text("utf-8")) for entry in found}


def codex_policies() -> dict[str, str]:
    """What Codex reads beside a skill to know that it must not start it, by the skill's name."""
    folder = _shipped().joinpath("plugin", "skills")
    found = {e.name: e.joinpath("agents", "openai.yaml") for e in folder.iterdir()}
    return {name: sealed(e.read_text("utf-8")) for name, e in found.items() if e.is_file()}


def plugin_files() -> dict[str, bytes]:
    """The plug-in directory: every file by its path in it."""
    found: dict[str, bytes] = {}
    waiting: list[tuple[str, Path]] = [("", _shipped().joinpath("plugin"))]
    while waiting:
        prefix, place = waiting.pop()
        for entry in place.iterdir():
            path = f"{prefix}{entry.name}"
            if entry.is_dir():
                waiting.append((path + "/", entry))
            else:
                found[path] = entry.read_bytes()
    return dict(sorted(found.items()))


def _shipped() -> Path:
    # `importlib.resources` brings a dozen modules into every `status`.
    return Path(__file__).with_name("shipped")

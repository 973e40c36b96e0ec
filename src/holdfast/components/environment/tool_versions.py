"""Versions of the tools on a search path, read from files.

    program in PATH → the version in a file beside it, else in its real path
    → else the version that the workspace selects → else the date of the program file

No program is run. That would slow down saves, and a program may be a launcher that downloads the
tool, or a file that an agent has just written.

If no file or path has the version, the date of the program file shows whether the tool was
replaced.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from holdfast.domain.wording import printable
from holdfast.values.classes import NamedTuple

DATED = "dated "
"""Before the date of a program file whose version is unknown."""
_MOST_BYTES = 100_000
_LONGEST_VERSION = 60
_ALONE = r"\A\s*v?([\w.+-]+)\s*\Z"
# Shared by all tools, so that a save compiles them once.
_INSTALLED = r"(?:(\w*)[-@])?v?(\d+\.\d+(?:\.\d+)*)(?:[-+].*)?"
_NAMED = r"-?(\d+\.\d+(?:\.\d+)*)"


class _Tool(NamedTuple):
    """`beside` are files relative to the resolved program's directory, each with a pattern for the
    version. `pinned` are workspace files that contain only a version; in `.tool-versions` the tool
    is `listed_as`. `is_package`: a JavaScript program in its own package."""

    name: str
    programs: tuple[str, ...]
    beside: tuple[tuple[str, str], ...] = ()
    pinned: tuple[str, ...] = ()
    listed_as: str = ""
    is_package: bool = False


_NODE_HEADER = (
    "../include/node/node_version.h",
    r"(?s)NODE_MAJOR_VERSION (\d+).*?NODE_MINOR_VERSION (\d+).*?NODE_PATCH_VERSION (\d+)",
)
_TOOLS = (
    _Tool("python", ("python3", "python"), (), (".python-version",), "python"),
    _Tool("node", ("node",), (_NODE_HEADER,), (".nvmrc", ".node-version"), "nodejs"),
    _Tool("npm", ("npm",), is_package=True),
    _Tool("pnpm", ("pnpm",), listed_as="pnpm", is_package=True),
    _Tool("yarn", ("yarn",), listed_as="yarn", is_package=True),
    _Tool("uv", ("uv",), listed_as="uv"),
    _Tool("git", ("git",)),
    _Tool("go", ("go",), (("../VERSION", r"go(\d[\w.]*)"),), (".go-version",), "golang"),
    _Tool("java", ("java",), (("../release", r'JAVA_VERSION="([^"]+)"'),), (), "java"),
    _Tool("ruby", ("ruby",), (), (".ruby-version",), "ruby"),
    _Tool("rustc", ("rustc",), (), ("rust-toolchain",), "rust"),
)
_VIRTUAL_ENVIRONMENTS = (".venv", "venv")
_VIRTUAL_ENVIRONMENT_VERSION = r"(?m)^version(?:_info)?\s*=\s*(\S+)"


def tool_versions(environment: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """The versions of the tools found, and of Python in virtual environments of the workspace."""
    # Each tool is looked for in all of them, and a long path names many twice or in vain.
    named = dict.fromkeys(environment.get("PATH", "").split(os.pathsep))
    directories = [d for d in named if os.path.isabs(d) and os.path.isdir(d)]
    found: dict[str, str] = {}
    for tool in _TOOLS:
        program = _program(tool.programs, directories)
        if program is not None:
            version = _version(tool, program, os.fspath(workspace))
            found[tool.name] = printable(version)[:_LONGEST_VERSION]
    for name in _VIRTUAL_ENVIRONMENTS:
        version = _virtual_environment_version(os.path.join(workspace, name)) or ""
        if version:
            found[f"python in {name}"] = printable(version)[:_LONGEST_VERSION]
    return found


def _program(names: tuple[str, ...], directories: list[str]) -> str | None:
    for name in names:
        for directory in directories:
            path = os.path.join(directory, name)
            if os.access(path, os.X_OK) and os.path.isfile(path):
                return path
    return None


def _version(tool: _Tool, program: str, workspace: str) -> str:
    real = os.path.realpath(program)
    if tool.name == "python":
        # The link in a virtual environment points to the interpreter it was created from.
        virtual = _virtual_environment_version(os.path.dirname(os.path.dirname(program)))
        if virtual is not None:
            return virtual
        if real == os.path.realpath(sys.executable):
            return ".".join(map(str, sys.version_info[:3]))
    return (
        _beside(tool, os.path.dirname(real))
        or _in_path(tool.name, real)
        or _chosen(tool, real, workspace)
        or f"{DATED}{_date(os.stat(real).st_mtime)}"
    )


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _beside(tool: _Tool, directory: str) -> str | None:
    if tool.is_package:
        return _package_version(os.path.join(directory, "../package.json"), tool.name)
    found = (_match(os.path.join(directory, name), pattern) for name, pattern in tool.beside)
    return next((version for version in found if version is not None), None)


def _package_version(path: str, name: str) -> str | None:
    """Only under its own name: a launcher such as Corepack has its own package there."""
    try:
        with open(path, encoding="utf-8") as file:
            package = json.loads(file.read(_MOST_BYTES))
        return str(package["version"]) if package["name"] == name else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _chosen(tool: _Tool, real: str, workspace: str) -> str | None:
    """The version that a launcher would start: the workspace's choice, else the default."""
    for name in tool.pinned:
        version = _match(os.path.join(workspace, name), _ALONE)
        if version is not None:
            return f"{version} ({name})"
    if tool.listed_as:
        listed = rf"(?m)^{tool.listed_as}\s+(\S+)"
        version = _match(os.path.join(workspace, ".tool-versions"), listed)
        if version is not None:
            return f"{version} (.tool-versions)"
    directory = os.path.dirname(real)
    if os.path.basename(directory) == "shims":
        return _match(os.path.join(directory, "../version"), _ALONE)
    return None


def _in_path(name: str, real: str) -> str | None:
    """Version managers name their directories after the version; some programs have it in their
    own name."""
    directory, program = os.path.split(real)
    place = os.path.basename(os.path.dirname(directory))
    # Compiling a pattern takes longer than all the rest, and most names have no version.
    installed = re.fullmatch(_INSTALLED, place) if "." in place[1:] else None
    if installed is not None and (installed[1] is None or name in installed[1]):
        return installed[2]
    is_named = program.startswith(name) and "." in program
    named = re.fullmatch(_NAMED, program.removeprefix(name)) if is_named else None
    return None if named is None else named[1]


def _virtual_environment_version(directory: str) -> str | None:
    return _match(os.path.join(directory, "pyvenv.cfg"), _VIRTUAL_ENVIRONMENT_VERSION)


def _match(path: str, pattern: str) -> str | None:
    """The groups of the first match near the start of a file, joined by dots."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            match = re.search(pattern, file.read(_MOST_BYTES))
    except OSError:
        return None
    return None if match is None else ".".join(match.groups())

"""Settings files: the user's own, and a project's, of which only safe parts are applied.

    a key that can only add protection        → applied
    a key that can weaken protection          → applied once the user trusts exactly this file
    a key about programs to run, or files
    outside the project                       → never applied
    an invalid file or value                  → not applied

Guarantee: whatever a cloned project's file contains, saves continue. Ignored settings are listed
with the reason. Trust is for one path and one content: an edited file has to be trusted again.

The user's own file is applied completely. A line that is not TOML is skipped. It belongs to the
unfinished setting above it, if there is one: `holdfast.domain.settings.fallback`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.adapters.local.layout import make_private_directory
from holdfast.adapters.local.store_files import atomic_write
from holdfast.domain.errors import InvalidSetting
from holdfast.domain.settings.schema import FROM_PROJECT, RETIRED, FromProject, check_setting
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.filesystem import Filesystem
from holdfast.values.classes import dataclass, field

_LARGEST_BYTES = 1 << 20
_NOT_TRUSTED = "not trusted"
_LINE = re.compile(r"\(at line (\d+), column \d+\)$")
_KEY = re.compile(rb"\s*([A-Za-z0-9_-]+)\s*=")


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of a project's file, and why others are not applied, by key, or `""` for the
    whole file. `waiting` are keys that apply once the user trusts the file."""

    values: Mapping[str, Any] = field(default_factory=dict)
    held_back: Mapping[str, str] = field(default_factory=dict)
    retired: tuple[str, ...] = ()

    @property
    def waiting(self) -> tuple[str, ...]:
        return tuple(key for key, why in self.held_back.items() if why == _NOT_TRUSTED)


@dataclass(frozen=True, slots=True)
class UserSettings:
    """The settings of the user's own file, and what cannot be read, by key or by line."""

    values: Mapping[str, Any] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)


def read_user_settings(path: Path) -> UserSettings:
    """`InvalidSetting` if the file cannot be read, or its lines cannot be separated."""
    content = _read(path, 0)
    if content is None:
        return UserSettings()
    try:
        return UserSettings(_parse(path, content))
    except InvalidSetting as error:
        return _parse_without_broken_lines(path, content, error)


def _parse_without_broken_lines(path: Path, content: bytes, error: InvalidSetting) -> UserSettings:
    lines = content.splitlines()
    broken: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        try:
            line.decode()
        except UnicodeDecodeError:
            _leave_out(lines, number, "is not UTF-8", broken)
    while True:
        try:
            return UserSettings(_parse(path, b"\n".join(lines)), broken)
        except InvalidSetting as refused:
            found = _LINE.search(refused.message)
            if found is None or not lines[int(found[1]) - 1].strip():
                raise error from None  # something unterminated, so it is unclear what belongs to it
            _leave_out(lines, int(found[1]), "is not valid TOML", broken)


def _leave_out(lines: list[bytes], number: int, why: str, broken: dict[str, str]) -> None:
    """The line belongs to its own key, or to an unfinished one above it."""
    above = lines[: number - 1]
    try:
        _parse(Path(), b"\n".join(above))
        above = []
    except InvalidSetting:
        pass
    keys = (_KEY.match(line) for line in (lines[number - 1], *reversed(above)))
    key = next((found[1].decode() for found in keys if found is not None), f"line {number}")
    broken.setdefault(key, f"line {number} {why}")
    lines[number - 1] = b""


def read_project_settings(path: Path, home: Path) -> ProjectSettings:
    try:
        content = _read(path, os.O_NOFOLLOW)
        if content is None:
            return ProjectSettings()
        found = _parse(path, content)
    except InvalidSetting as error:
        return ProjectSettings(held_back={"": error.message})
    trusted = os.path.exists(_note(home, path, content))
    values: dict[str, Any] = {}
    held_back: dict[str, str] = {}
    for key, value in found.items():
        if key in RETIRED:
            continue
        source = FROM_PROJECT.get(key)
        try:
            checked = check_setting(key, value)
        except InvalidSetting as error:
            held_back[key] = error.message
            continue
        if source is FromProject.NEVER:
            held_back[key] = f"{key} cannot be set by a project"
        elif source is FromProject.TRUSTED and not trusted:
            held_back[key] = _NOT_TRUSTED
        else:
            values[key] = checked
    return ProjectSettings(values, held_back, tuple(key for key in found if key in RETIRED))


def trust_project_settings(fs: Filesystem, path: Path, home: Path) -> ProjectSettings:
    """Record that the user trusts the file in its current form; returns the settings that now
    apply."""
    content = _read(path, os.O_NOFOLLOW)
    if content is None:
        raise InvalidSetting(f"no such file: {path}", hint="nothing to trust")
    _parse(path, content)
    note = _note(home, path, content)
    make_private_directory(fs, note.parent)
    atomic_write(fs, os.fsencode(note), os.fsencode(path) + b"\n")
    return read_project_settings(path, home)


def _note(home: Path, path: Path, content: bytes) -> Path:
    digest = digest_of(os.fsencode(path) + b"\0" + content).hex()
    return home / "trusted-settings" / digest


def _read(path: Path, link_flags: int) -> bytes | None:
    """The path may not be a regular file, but a pipe or a link."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | link_flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidSetting(
            f"cannot read {path}: {error.strerror}",
            hint="use a readable regular file, not a link",
        ) from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InvalidSetting(f"{path} is not a file", hint="remove it")
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(_LARGEST_BYTES)
    finally:
        os.close(fd)


def _parse(path: Path, content: bytes) -> dict[str, Any]:
    import tomllib  # imported late: most workspaces have no settings file

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSetting(
            f"{path} is not valid TOML: {error}", hint="correct the file"
        ) from None

"""Settings files of agents as they are read: text, or what the text says, or why there is none."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.domain.errors import HoldfastError, Refused
from holdfast.domain.wording import size_words
from holdfast.interfaces.agent_setup.json_text import NotJson, load

_LARGEST = 50 << 20
"""Some agents keep the history of all projects in their settings."""


class NotToml(Exception):
    """The text is not TOML; where and why."""


def load_toml(text: str) -> dict[str, Any]:
    import tomllib  # most agents have no such settings

    try:
        return tomllib.loads(text)
    except ValueError as error:  # also a number of more digits than Python reads
        raise NotToml(str(error)) from None
    except RecursionError:
        raise NotToml("nested too deeply") from None


def read_settings(path: Path) -> tuple[str | None, os.stat_result | None]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.is_symlink():
            raise Refused(
                f"{path} is a link that leads nowhere", hint="remove it, or make its target"
            ) from None
        return None, None
    except NotADirectoryError:
        raise Refused(
            f"{path} cannot be made: a part of the way to it is a file",
            hint="move that file out of the way",
        ) from None
    except OSError as error:
        raise Refused(
            f"{path} cannot be read: {error.strerror}", hint="check its owner and permissions"
        ) from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path} is not a settings file", hint="move it out of the way")
        if status.st_size > _LARGEST:
            raise Refused(
                f"{path} has {size_words(status.st_size)}, which is more than is edited",
                hint="leave it as it is, and set the agent up by its own commands",
            )
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read(_LARGEST).decode("utf-8"), status
    except UnicodeDecodeError:
        raise Refused(
            f"{path} is not UTF-8 text", hint="save it as UTF-8 first; nothing was changed"
        ) from None
    finally:
        os.close(fd)


def json_settings(path: Path) -> dict[str, Any]:
    """Settings as they are; nothing where there are none, or none that can be read."""
    try:
        text, _ = read_settings(path)
        found = load(text) if text is not None else {}
    except (HoldfastError, NotJson):
        return {}
    return found if isinstance(found, dict) else {}


def toml_settings(path: Path) -> dict[str, Any]:
    """The same of TOML."""
    try:
        text, _ = read_settings(path)
        return load_toml(text) if text is not None else {}
    except (HoldfastError, NotToml):
        return {}


def texts(value: Any) -> list[str]:
    """The texts of a list in somebody else's settings."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def folder_rule(folders: Mapping[str, Any], workspace: Path) -> object:
    """What a file of trusted folders says of a workspace: the rule for the nearest directory
    upwards counts, and `TRUST_PARENT` is one for the directory above."""
    rules = {}
    for folder, rule in folders.items():
        place = Path(os.path.realpath(folder))
        place = place.parent if rule == "TRUST_PARENT" else place
        if workspace.is_relative_to(place):
            rules[len(place.parts)] = rule
    return rules[max(rules)] if rules else None

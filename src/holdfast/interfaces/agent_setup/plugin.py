"""The plug-in directory for Claude Code and Codex, written out where the user wants it."""

from __future__ import annotations

import errno
from pathlib import Path

from holdfast.domain.errors import Refused
from holdfast.interfaces.agent_setup.own_files import plugin_files

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

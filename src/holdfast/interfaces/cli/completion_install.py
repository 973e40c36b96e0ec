"""Writes completion files to the directories where shells look for them.

    bash  $BASH_COMPLETION_USER_DIR or $XDG_DATA_HOME/bash-completion, completions/holdfast
    zsh   $XDG_DATA_HOME/zsh/site-functions/_holdfast, a directory that `fpath` must name
    fish  $XDG_CONFIG_HOME/fish/completions/holdfast.fish

Guarantees: a file that Holdfast did not write is never replaced. The new file replaces the old one
atomically.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.domain.errors import Refused
from holdfast.interfaces.cli.completion_scripts import script

_OURS = "holdfast: completion for "


def place(shell: str, environment: Mapping[str, str]) -> Path:
    if not environment.get("HOME"):
        raise Refused("HOME is not set", hint=f"print the script: holdfast completion {shell}")
    home = Path(environment["HOME"])
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "bash":
        chosen = environment.get("BASH_COMPLETION_USER_DIR", "").partition(":")[0]
        return Path(chosen or data / "bash-completion") / "completions" / "holdfast"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_holdfast"
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "fish" / "completions" / "holdfast.fish"


def install(shell: str, target: Path, *, dry_run: bool) -> bool:
    """Write the file, unless `dry_run`. Returns whether it differs from this version's script."""
    wanted = script(shell).encode()
    try:
        present = target.read_bytes()
    except FileNotFoundError:
        present = None
    if present == wanted:
        return False
    if present is not None and _OURS.encode() not in present[:200]:
        raise Refused(
            f"{target} exists and was not written by Holdfast",
            hint=f"move it away, or print the script: holdfast completion {shell}",
        )
    if not dry_run:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_bytes(wanted)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    return True

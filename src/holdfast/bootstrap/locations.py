"""Where stores and settings are, and which directories may become a workspace: no home directory,
no system directory, no store."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast.domain.errors import (
    WorkspaceMissing,
    WorkspaceRefused,
)

_ASK_AS_EFFECTIVE_USER = os.access in os.supports_effective_ids
_TEMPORARY_DIRECTORIES = ("/tmp", "/var/tmp", "/private/tmp")
_SYSTEM_TREES = ("/proc", "/sys", "/dev")
_SYSTEM_DIRECTORIES = (
    "/bin /boot /etc /home /lib /lib64 /media /mnt /opt /root /run /sbin /srv /usr /usr/local"
    " /var /Applications /Library /System /Users /Volumes /private"
).split()


def holdfast_home(environment: Mapping[str, str]) -> Path:
    """The directory of the stores: outside every workspace, so that cleaning one does not reach
    it."""
    if chosen := environment.get("HOLDFAST_HOME"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "holdfast"
    data = environment.get("XDG_DATA_HOME")
    base = Path(data) if data and os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "holdfast"


def project_settings_file(workspace: Path) -> Path:
    return workspace / ".holdfast" / "config.toml"


def user_settings_file(environment: Mapping[str, str]) -> Path:
    configured = environment.get("XDG_CONFIG_HOME")
    base = Path(configured) if configured and os.path.isabs(configured) else Path.home() / ".config"
    return base / "holdfast" / "config.toml"


def require_project(workspace: Path, home: Path, *, force: bool, for_agent: bool = False) -> Path:
    """The real path of a directory that can be protected; refuses `/`, `$HOME` and the like.
    `for_agent`: the hint is for the user of an agent, who gives no options."""
    try:
        directory = workspace.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        import shlex

        raise WorkspaceMissing(
            f"the workspace {workspace} does not exist",
            hint=(
                "use an existing directory: -C DIR; to restore a deleted one, create it first: "
                f"mkdir -p {shlex.quote(str(workspace))}"
            ),
        ) from None
    if not directory.is_dir():
        raise WorkspaceRefused(
            f"the workspace {directory} is not a directory",
            hint=f"did you mean {directory.parent}?",
        )
    if not os.access(directory, os.R_OK | os.X_OK, effective_ids=_ASK_AS_EFFECTIVE_USER):
        raise WorkspaceRefused(
            f"cannot read the workspace {directory}", hint="check its owner and permissions"
        )
    store_home = Path(os.path.realpath(home))
    if directory == store_home or store_home in directory.parents:
        raise WorkspaceRefused(
            f"{directory} is part of Holdfast's own store", hint="use a project directory"
        )
    if force:
        return directory
    reason = refusal_reason(directory, store_home)
    if reason is not None:
        raise WorkspaceRefused(
            f"{directory} {reason.problem}", hint=reason.for_agent if for_agent else reason.hint
        )
    return directory


def is_refused_as_workspace(directory: Path) -> bool:
    """Whether the directory, a real path, is refused as a workspace."""
    home = holdfast_home(os.environ)
    return refusal_reason(directory, Path(os.path.realpath(home))) is not None


def why_no_project(directory: Path) -> str | None:
    """The reason for refusing such a directory, worded to follow its name."""
    home = holdfast_home(os.environ)
    found = refusal_reason(Path(os.path.realpath(directory)), Path(os.path.realpath(home)))
    return None if found is None else found.problem


class _Refusal:
    """Why a directory is refused, with a hint for a person and one for an agent's user."""

    def __init__(
        self,
        problem: str,
        hint: str = "use a project directory with -C DIR, or add --force",
        for_agent: str = "to get checkpoints, start the agent in a project directory",
    ) -> None:
        self.problem, self.hint, self.for_agent = problem, hint, for_agent


def refusal_reason(directory: Path, store_home: Path) -> _Refusal | None:
    user_home = Path(os.path.realpath(Path.home()))
    if directory == Path(directory.anchor):
        return _Refusal("is the whole file system, not a project")
    if directory == user_home:
        return _Refusal("is your home directory, not a project")
    if str(directory) in _TEMPORARY_DIRECTORIES:
        return _Refusal("is the directory for temporary files, not a project")
    if directory in user_home.parents and str(directory) not in _SYSTEM_DIRECTORIES:
        return _Refusal(f"contains your home directory ({user_home})")
    if str(directory) in _SYSTEM_DIRECTORIES:
        return _Refusal("is a system directory, not a project")
    if any(str(directory) == t or str(directory).startswith(t + "/") for t in _SYSTEM_TREES):
        from holdfast.domain.external_paths import MEMORY_DISK  # late: few projects are there

        if not str(directory).startswith(MEMORY_DISK + "/"):
            return _Refusal("is part of the system, not a project")
    if directory in store_home.parents:
        return _Refusal(
            f"contains the store itself ({store_home})",
            "set HOLDFAST_HOME to a directory outside it, or add --force",
            "set HOLDFAST_HOME to a directory outside it",
        )
    return None

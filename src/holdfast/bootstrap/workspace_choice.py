"""Which workspace a directory belongs to (CP-16).

    the nearest one upwards with a store      → unless the directory is in a linked worktree, or
                                                in a repository that is saved separately
    else the top of the git repository        → of the innermost one; a linked worktree counts
    else the nearest sign of a project        → pyproject.toml, package.json …
    else the directory itself

An existing store takes precedence over the top of the repository: `holdfast init` in a subdirectory
makes it a separate workspace. A repository inside a project is part of it, because the project
saves its files. A directory that is not a project leaves out the repositories below. The search
upwards stops below the home directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.bootstrap.locations import is_refused_as_workspace
from holdfast.bootstrap.settings import gather_settings
from holdfast.bootstrap.stores import nearest_workspace, store_of
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.errors import HoldfastError, NotFound, WorkspaceRefused
from holdfast.domain.paths import shows_project
from holdfast.domain.settings.schema import make_settings
from holdfast.engine.save.workspace_tree import capture_policy
from holdfast.engine.scan.ignore_check import leaves_out
from holdfast.engine.scan.policy import CapturePolicy
from holdfast.engine.scan.repositories import RepositoryKind, repository_kind

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MOST_LOOKED_AT = 2_000
_DEEPEST = 3


def workspace_for(directory: Path, *, opened_on: bool = False) -> Path:
    """The workspace, whether or not it has a store yet. `opened_on`: the user chose this directory,
    so it is a separate workspace if the one around it ignores it."""
    directory = _resolved(directory)
    found = workspace_around(directory) or project_top(directory)
    if found is None or found == directory:
        return directory
    return directory if opened_on and _is_wholly_ignored(found, directory) else found


def workspace_around(directory: Path) -> Path | None:
    """The workspace with a store, here or above, or with a marker of one; None if there is none."""
    found = nearest_workspace(directory, or_lost=True)
    return None if found is None else own_project(found, directory) or found


def own_project(workspace: Path, directory: Path) -> Path | None:
    """The worktree, repository or workspace, on the path from `workspace` down to the directory,
    that is saved separately or not at all. `workspace` is a real path."""
    directory = _resolved(directory)
    between = [above for above in (directory, *directory.parents) if workspace in above.parents]
    for place in reversed(between):
        kind = _kind_at(place)
        # A broken repository counts too: it is a project, and no other workspace saves it.
        ours = os.path.lexists(place / ".git") or store_of(place) is not None
        if kind is RepositoryKind.LINKED_WORKTREE or (
            ours and (_leaves_to_itself(workspace, kind) or is_left_out(workspace, place))
        ):
            return own_project(place, directory) or place
    return None


def _leaves_to_itself(workspace: Path, kind: RepositoryKind | None) -> bool:
    return kind is not None and not is_project(workspace)


def project_top(directory: Path) -> Path | None:
    """The top of the repository or project that contains the directory; stores do not matter."""
    return repository_top(directory) or _signed_project(directory)


def repository_top(directory: Path) -> Path | None:
    """The top of the innermost repository. One above counts only if it belongs to the current user,
    or to the directory's owner, because any user can create a `.git` in a shared directory."""
    owners = {os.geteuid(), _owner(directory)}
    for above in _upwards(directory):
        if _kind_at(above) is None:
            continue
        if above == directory or os.geteuid() == 0 or _owner(above / ".git") in owners:
            return above
    return None


def _signed_project(directory: Path) -> Path | None:
    """A forgotten package.json far above must not turn all projects below it into one."""
    for above in _upwards(directory):
        if is_project(above):
            return above if above == directory or not holds_repositories(above) else None
    return None


def is_project(directory: Path) -> bool:
    """Whether the directory itself has signs of a project."""
    try:
        return shows_project(os.listdir(os.fsencode(directory)))
    except OSError:
        return False


def holds_repositories(directory: Path) -> bool:
    """Whether there is a repository a few levels below, as far as a quick search finds."""
    level, looked_at = [directory], 0
    for _ in range(_DEEPEST):
        below: list[Path] = []
        for place in level:
            for child in _directories_in(place):
                looked_at += 1
                if looked_at > _MOST_LOOKED_AT:
                    return False
                if (child / ".git").exists() and _kind_at(child) is not None:
                    return True
                below.append(child)
        level = below
    return False


def require_choosable(directory: Path) -> None:
    """Refuse a directory that is not a project but contains some: such a choice must be
    explicit."""
    if is_refused_as_workspace(directory):
        return  # refused later, with the reason
    if not is_project(directory) and holds_repositories(directory):
        raise WorkspaceRefused(
            f"{directory} is not a project, and the repositories in it are separate workspaces",
            hint="change to one of them; to protect the other files here: holdfast init",
        )


def is_left_out(workspace: Path, directory: Path) -> bool:
    """Whether the workspace's current rules and settings leave the directory out. False if unknown:
    the save meets the same problem and reports it."""
    inside = os.fsencode(directory.relative_to(workspace))
    try:
        try:
            with open_workspace(workspace, create=False, passive=True) as opened:
                policy = capture_policy(opened.engine.vault)
        except NotFound:  # nothing was ever saved there
            settings = make_settings(gather_settings({}, workspace).values)
            policy = CapturePolicy(settings, workspace)
        root_fd = os.open(workspace, _DIRECTORY)
        try:
            return leaves_out(LocalFilesystem(), policy, root_fd, inside)
        finally:
            os.close(root_fd)
    except (HoldfastError, OSError):
        return False


def _is_wholly_ignored(workspace: Path, directory: Path) -> bool:
    """People do not work inside a `.git`; a command there means the repository."""
    inside = directory.relative_to(workspace)
    return ".git" not in inside.parts and is_left_out(workspace, directory)


def _upwards(directory: Path) -> Iterator[Path]:
    for above in (directory, *directory.parents):
        if is_refused_as_workspace(above):
            return
        yield above


def _kind_at(directory: Path) -> RepositoryKind | None:
    try:
        fd = os.open(directory, _DIRECTORY)
    except OSError:
        return None
    try:
        return repository_kind(LocalFilesystem(), fd)
    finally:
        os.close(fd)


def _directories_in(directory: Path) -> Iterator[Path]:
    try:
        with os.scandir(directory) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return
    yield from (directory / name for name in names if name != ".git")


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


def _resolved(directory: Path) -> Path:
    return directory.expanduser().resolve()

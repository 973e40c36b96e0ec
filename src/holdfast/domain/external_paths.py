"""The target of a named path outside the workspace, derived from its text alone.

Shell expansions are followed as far as possible: the home directory is filled in, and a pattern or
a variable becomes the directory it refers to. Packages can be installed again.

System directories do not hold user files, except for directories in the memory disk. A file
directly in it may be the shared memory of a running program, whose name has no directory. Replacing
it would disconnect that program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.domain.trees.objects import digest_of

MOST_NAMES = 500
MEMORY_DISK = "/dev/shm"
SYSTEM_TREES = ("/proc", "/sys", "/dev", "/run", "/System", "/boot")
_HOME = re.compile(r"(?:~|\$HOME|\$\{HOME\})(?=/|\Z)")
INSTALLED_TREES = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/snap", "/Library")
_PATTERN = re.compile(r"[*?\[{$`]")


class UnresolvedPath(ValueError):
    """The path cannot be resolved, or Holdfast saves nothing there. The message says why."""


def key_of(path: bytes) -> str:
    """A short key for a path, used to choose it in a restore."""
    return digest_of(path).hex()[:16]


def expand_home(place: str, home: str | None) -> str:
    """The path with its home directory filled in."""
    match = _HOME.match(place)
    if match is not None and home is not None and home.startswith("/"):
        return home.rstrip("/") + place[match.end() :]
    return place


def resolve_path(place: str, home: str | None) -> str:
    """The absolute path it refers to; `UnresolvedPath` if unknown."""
    place = expand_home(place, home)
    if not place.startswith("/") or "\0" in place:
        raise UnresolvedPath("only the shell can expand it")
    parts = [part for part in place.split("/") if part not in ("", ".")]
    for number, part in enumerate(parts):
        if _PATTERN.search(part):
            parts = parts[:number]
            break
    path = "/" + "/".join(parts)
    if ".." in parts:
        raise UnresolvedPath("it contains ..")
    require_user_path(path)
    return path


def resolve_paths(places: Iterable[str], home: str | None) -> Iterator[str]:
    """The absolute paths of those that can be resolved. A path below the home directory may be
    inside the workspace."""
    for place in places:
        try:
            yield resolve_path(place, home)
        except UnresolvedPath:
            continue


def is_installed(path: str) -> bool:
    """Whether the path belongs to a package manager."""
    return any(path.startswith(tree + "/") for tree in INSTALLED_TREES)


def is_device(path: str) -> bool:
    """Whether the path is below /dev, but not in the memory disk."""
    in_memory = path == MEMORY_DISK or path.startswith(MEMORY_DISK + "/")
    return path.startswith("/dev/") and not in_memory


def require_user_path(path: str) -> None:
    """Raise `UnresolvedPath` for system paths."""
    if path == "/":
        raise UnresolvedPath("it is the whole file system")
    if path.startswith(MEMORY_DISK + "/"):
        return
    if any(path == tree or path.startswith(tree + "/") for tree in SYSTEM_TREES):
        raise UnresolvedPath("it belongs to the system")

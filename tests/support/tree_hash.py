"""An independent description of a directory tree, to compare what a restore brought about.

Nothing here comes from the engine: names are bytes as the kernel gives them, content is hashed
with SHA-256, and every directory is reached through handles, so depth and length do not matter.
The workspace's own `.holdfast` directory is left out; `debris` looks into that one.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

OWN_DIRECTORY = b".holdfast"
EXPECTED_OWN_NAMES = {b".gitignore", b"workspace.json", b"config.toml"}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Node:
    """One path: `names` are all paths of a file with several, `holes` whether it is sparse."""

    kind: str
    mode: int
    content: str = ""
    target: bytes = b""
    names: tuple[bytes, ...] = ()
    holes: bool = False
    mtime_ns: int = 0


def describe(root: Path, *, mtimes: bool = False, holes: bool = False) -> dict[bytes, Node]:
    """Every path below `root` but the root itself and `.holdfast`.

    Times are those of files and links: a directory's time says only that something in it changed.
    """
    found: dict[bytes, Node] = {}
    links: defaultdict[tuple[int, int], list[bytes]] = defaultdict(list)
    pending = [(os.open(root, _DIRECTORY), b"")]
    while pending:
        fd, above = pending.pop()
        try:
            for name in os.listdir(fd):
                raw = os.fsencode(name)
                path = above + b"/" + raw if above else raw
                if path == OWN_DIRECTORY:
                    continue
                status = os.stat(raw, dir_fd=fd, follow_symlinks=False)
                found[path] = _node(fd, raw, status, mtimes=mtimes, holes=holes)
                if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                    links[status.st_dev, status.st_ino].append(path)
                if stat.S_ISDIR(status.st_mode):
                    pending.append((os.open(raw, _DIRECTORY, dir_fd=fd), path))
        finally:
            os.close(fd)
    for paths in links.values():
        if len(paths) > 1:
            for path in paths:
                found[path] = replace(found[path], names=tuple(sorted(paths)))
    return found


def _node(fd: int, name: bytes, status: os.stat_result, *, mtimes: bool, holes: bool) -> Node:
    mode = stat.S_IMODE(status.st_mode)
    mtime_ns = status.st_mtime_ns if mtimes else 0
    if stat.S_ISDIR(status.st_mode):
        return Node("directory", mode)
    if stat.S_ISLNK(status.st_mode):
        return Node("symlink", 0, target=os.readlink(name, dir_fd=fd), mtime_ns=mtime_ns)
    if stat.S_ISREG(status.st_mode):
        return Node(
            "file",
            mode,
            content=_content(fd, name),
            holes=holes and status.st_blocks * 512 < status.st_size,
            mtime_ns=mtime_ns,
        )
    return Node(f"special {stat.S_IFMT(status.st_mode):o}", mode)


def _content(fd: int, name: bytes) -> str:
    file = os.open(name, _FILE, dir_fd=fd)
    try:
        hasher = hashlib.sha256()
        while block := os.read(file, _BLOCK_BYTES):
            hasher.update(block)
        return hasher.hexdigest()
    finally:
        os.close(file)


def differences(found: dict[bytes, Node], expected: dict[bytes, Node]) -> list[str]:
    """What a person needs to see when two trees are not equal."""
    return [
        f"{path!r}: {found.get(path)} instead of {expected.get(path)}"
        for path in sorted(found.keys() | expected.keys())
        if found.get(path) != expected.get(path)
    ]


def debris(root: Path) -> list[bytes]:
    """Names that a finished operation must not leave behind, anywhere in the tree."""
    left: list[bytes] = []
    for directory, subdirectories, files in os.walk(os.fsencode(root)):
        here = os.path.relpath(directory, os.fsencode(root))
        for name in (*subdirectories, *files):
            staged = name.startswith(b".holdfast-staging-")
            if staged or (here == OWN_DIRECTORY and name not in EXPECTED_OWN_NAMES):
                left.append(os.path.join(here, name))
    return sorted(left)

"""Pieces of workspaces that tools of this kind lose, each with a way to wreck it.

Every piece lives below a directory of its own name, so that pieces can be tried alone or together.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.support.composition import configure

Build: TypeAlias = Callable[[Path], None]

LARGE_BYTES = 12_000_000
DEEP_LEVELS = 500


@dataclass(frozen=True, slots=True)
class Piece:
    """`build` makes it in an empty directory, `wreck` changes what `build` made."""

    build: Build
    wreck: Build
    include: tuple[str, ...] = ()
    gitignore: str = ""


def fill(path: Path, content: bytes = b"content\n", mode: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if mode is not None:
        path.chmod(mode)
    return path


def noise(size: int, seed: int = 1) -> bytes:
    """Bytes that do not compress, the same on every run."""
    import random

    return random.Random(seed).randbytes(size)


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True)


def remove_all(directory: Path) -> None:
    for entry in list(directory.iterdir()):
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _files(*names: str) -> Build:
    def build(root: Path) -> None:
        for name in names:
            fill(root / name, f"{name} as it was\n".encode())

    return build


def _rewrite(*names: str) -> Build:
    def wreck(root: Path) -> None:
        for name in names:
            fill(root / name, b"overwritten by the agent")

    return wreck


def _delete(*names: str) -> Build:
    def wreck(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return wreck


def _edited(*names: str, gitignore: str = "", include: tuple[str, ...] = ()) -> Piece:
    return Piece(_files(*names), _rewrite(*names), include, gitignore)


def _build_executable(root: Path) -> None:
    fill(root / "run.sh", b"#!/bin/sh\n", 0o755)


def _build_links(root: Path) -> None:
    fill(root / "real")
    (root / "link").symlink_to("real")
    (root / "dangling").symlink_to("nowhere/at/all")
    (root / "absolute").symlink_to("/etc/hostname")
    (root / "to-directory").symlink_to(".")


def _wreck_links(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("elsewhere")
    (root / "dangling").unlink()
    (root / "to-directory").unlink()
    (root / "to-directory").mkdir()


def _build_nested_repository(root: Path) -> None:
    inner = root / "vendor" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    fill(inner / "code.py", b"x = 1\n")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "one")
    fill(inner / "untracked.txt")


def _wreck_nested_repository(root: Path) -> None:
    fill(root / "vendor/inner/code.py", b"x = 2\n")
    (root / "vendor/inner/untracked.txt").unlink()


def _build_empty_directories(root: Path) -> None:
    (root / "empty" / "deeper").mkdir(parents=True)
    (root / "logs").mkdir()


def _build_private(root: Path) -> None:
    fill(root / "key", b"secret", 0o600)
    fill(root / "shared", b"shared", 0o664)


def _wreck_private(root: Path) -> None:
    (root / "key").chmod(0o644)
    fill(root / "shared", b"changed").chmod(0o600)


def _add_new(root: Path) -> None:
    fill(root / "made/by/agent/file.txt")
    (root / "made/link").symlink_to("by")
    (root / "made/empty").mkdir()


def _build_hardlinks(root: Path) -> None:
    fill(root / "one", b"shared by three names")
    (root / "sub").mkdir()
    os.link(root / "one", root / "two")
    os.link(root / "one", root / "sub/three")
    fill(root / "alone", b"shared by three names")


def _wreck_hardlinks(root: Path) -> None:
    (root / "two").unlink()
    fill(root / "two", b"its own file now")
    (root / "sub/three").unlink()
    (root / "alone").unlink()
    os.link(root / "one", root / "alone")


def _build_sparse(root: Path) -> None:
    with (root / "image").open("wb") as file:
        file.write(b"head")
        file.seek(3_000_000)
        file.write(b"tail")
    with (root / "all-hole").open("wb") as file:
        file.truncate(500_000)


def _build_odd_names(root: Path) -> None:
    here = os.fsencode(root)
    for name in (
        b"not-\xff\xfe-utf8",
        b"new\nline",
        b"tab\t",
        b" space ",
        b"-rf",
        b"*",
        b"\\",
        b"'\"",
    ):
        Path(os.fsdecode(here + b"/" + name)).write_bytes(name)
    os.mkdir(here + b"/dir-\xe9")
    Path(os.fsdecode(here + b"/dir-\xe9/\xc3\x28")).write_bytes(b"inside")
    Path(os.fsdecode(here + b"/" + b"n" * 255)).write_bytes(b"longest")
    os.symlink(b"target-\xff\n", here + b"/link-\xff")


@contextmanager
def descended(root: Path, levels: int, *, create: bool) -> Iterator[int]:
    """A handle on the directory `levels` below `root`, however long its path is."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(levels):
            if create:
                os.mkdir(b"d", dir_fd=fd)
            below = os.open(b"d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def remove_deep(directory: Path) -> None:
    """What the standard library's own removal cannot do: it recurses."""
    subprocess.run(["rm", "-rf", "--", directory], check=True)


def write_at(fd: int, name: bytes, content: bytes) -> None:
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=fd)
    try:
        os.write(file, content)
    finally:
        os.close(file)


def _build_deep(root: Path) -> None:
    with descended(root, DEEP_LEVELS, create=True) as bottom:
        write_at(bottom, b"treasure", b"at the bottom")


def _wreck_deep(root: Path) -> None:
    with descended(root, DEEP_LEVELS, create=False) as bottom:
        write_at(bottom, b"treasure", b"changed")
        write_at(bottom, b"new", b"")
    (root / "d" / "above").write_bytes(b"new")


def _build_case_pairs(root: Path) -> None:
    for name in ("README", "readme", "ReadMe"):
        fill(root / name, name.encode())
    fill(root / "Src/a", b"upper")
    fill(root / "src/a", b"lower")


def _wreck_case_pairs(root: Path) -> None:
    (root / "README").unlink()
    (root / "readme").rename(root / "README")
    fill(root / "src/a", b"changed")


def _build_special_modes(root: Path) -> None:
    fill(root / "setuid", b"#!", 0o4755)
    fill(root / "setgid", b"#!", 0o2755)
    fill(root / "all-bits", b"#!", 0o7777)
    fill(root / "read-only", b"r", 0o444)
    fill(root / "write-only", b"w", 0o600)
    (root / "sticky").mkdir()
    (root / "sticky").chmod(0o1777)
    (root / "group").mkdir()
    (root / "group").chmod(0o2750)


def _wreck_special_modes(root: Path) -> None:
    for entry in root.iterdir():
        entry.chmod(0o755 if entry.is_dir() else 0o640)
    fill(root / "setuid", b"rewritten")
    (root / "read-only").unlink()


def _build_read_only_directory(root: Path) -> None:
    fill(root / "locked/deep/file", b"kept")
    fill(root / "locked/other", b"kept")
    (root / "locked/deep").chmod(0o555)
    (root / "locked").chmod(0o555)


def _wreck_read_only_directory(root: Path) -> None:
    (root / "locked").chmod(0o755)
    (root / "locked/deep").chmod(0o755)
    (root / "locked/deep/file").unlink()
    fill(root / "locked/other", b"changed")
    fill(root / "locked/deep/extra", b"new")
    (root / "locked/deep").chmod(0o555)
    (root / "locked").chmod(0o555)


def _wreck_modes(root: Path) -> None:
    (root / "run.sh").chmod(0o644)


def _append_to_large(root: Path) -> None:
    with (root / "data.bin").open("r+b") as file:
        file.seek(LARGE_BYTES // 2)
        file.write(b"an edit in the middle")


PIECES: dict[str, Piece] = {
    "tracked-edit": _edited("a.py", "pkg/b.py"),
    "exec-bit": Piece(_build_executable, _wreck_modes),
    "symlinks": Piece(_build_links, _wreck_links),
    "binary": Piece(lambda r: void(fill(r / "x.png", noise(5000))), _rewrite("x.png")),
    "deleted-file": Piece(_files("gone.txt", "sub/gone.txt"), _delete("gone.txt", "sub/gone.txt")),
    "deleted-directory": Piece(_files("d/a", "d/e/b"), remove_all),
    "lock-and-dat": _edited("poetry.lock", "yarn.lock", "x.dat"),
    "large-untracked": Piece(
        lambda r: void(fill(r / "data.bin", noise(LARGE_BYTES))), _append_to_large
    ),
    "nested-repository": Piece(_build_nested_repository, _wreck_nested_repository),
    "dot-env": _edited(".env", gitignore=".env\n", include=(".env",)),
    "ignored-database": _edited("app.db", gitignore="*.db\n", include=("*.db",)),
    "node-modules": _edited(
        "node_modules/m/index.js", gitignore="node_modules/\n", include=("node_modules/",)
    ),
    "empty-directories": Piece(_build_empty_directories, remove_all),
    "mode-0600": Piece(_build_private, _wreck_private),
    "new-file-and-directory": Piece(_files("old"), _add_new),
    "hardlinks": Piece(_build_hardlinks, _wreck_hardlinks),
    "sparse": Piece(_build_sparse, _rewrite("image", "all-hole")),
    "odd-names": Piece(_build_odd_names, remove_all),
    "deep": Piece(_build_deep, _wreck_deep),
    "zero-bytes": Piece(
        lambda r: void(fill(r / "empty", b""), fill(r / "also", b"")), _rewrite("empty")
    ),
    "case-pairs": Piece(_build_case_pairs, _wreck_case_pairs),
    "special-modes": Piece(_build_special_modes, _wreck_special_modes),
    "read-only-directory": Piece(_build_read_only_directory, _wreck_read_only_directory),
}


def void(*_: object) -> None:
    """For builds that are one expression."""


def prepare(workspace: Path, pieces: Iterable[tuple[str, Piece]]) -> None:
    """Each piece in a directory of its own, and captured although rules may ignore it."""
    pieces = list(pieces)
    configure(workspace, include=[pattern for _, piece in pieces for pattern in piece.include])
    for name, piece in pieces:
        root = workspace / name
        root.mkdir()
        piece.build(root)
        if piece.gitignore:
            (root / ".gitignore").write_text(piece.gitignore)


def wreck(workspace: Path, pieces: Iterable[tuple[str, Piece]]) -> None:
    for name, piece in pieces:
        piece.wreck(workspace / name)

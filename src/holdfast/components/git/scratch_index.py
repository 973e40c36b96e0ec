"""A scratch copy of the index and of some files, from which a commit is built.

    the user's index → scratch index with HEAD's content → write a checkpoint's files beside it
    → git adds them by its own rules (ignores, filters, line ends, modes)

Guarantee: the user's index and files are not changed. With `quarantine`, not even an object is
added to the repository. Everything is removed at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from holdfast.components.files import NEW_FLAGS, blocks_of, write_all
from holdfast.components.git.commands import Git, GitFailed
from holdfast.components.git.repository import (
    Repository,
    opened,
    read_whole,
    sync_directory,
    write_new,
)
from holdfast.components.git.staged import ABSENT_MODE, GITLINK_MODE, TreeRow, staged_rows
from holdfast.domain.errors import Refused
from holdfast.domain.trees.entries import SymlinkEntry
from holdfast.ports.repository import ContentReader, PathChange

_FILE_MODE, _EXECUTABLE_MODE, _INDEX_MODE = 0o600, 0o700, 0o644


class Scratch:
    """Created by `scratch`; `index` is the scratch index, which may be passed to other programs."""

    def __init__(
        self,
        repository: Repository,
        environment: Mapping[str, str],
        timeout_s: float,
        place: bytes,
        *,
        quarantine: bool,
    ) -> None:
        self._place = place
        self._repository = repository
        self.index = os.path.join(place, b"index")
        self._tree = os.path.join(place, b"tree")
        variables = {"GIT_INDEX_FILE": self.index, "GIT_LITERAL_PATHSPECS": b"1"}
        if quarantine:
            objects = os.path.join(place, b"objects")
            os.mkdir(objects)
            variables["GIT_OBJECT_DIRECTORY"] = objects
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = repository.shared(b"objects")
        os.mkdir(self._tree)
        self.git = Git(repository, environment, timeout_s, variables)
        variables = {**variables, "GIT_DIR": repository.git_dir, "GIT_WORK_TREE": self._tree}
        self._on_tree = Git(
            Repository(self._tree, repository.git_dir, repository.common_dir),
            environment,
            timeout_s,
            variables,
        )

    def begin(self, head: str | None) -> None:
        """Set the scratch index to HEAD's content."""
        if head is None:
            self.git.run("read-tree", "--empty")
            return
        with opened(self._repository.own(b"index")) as fd:
            if fd is not None:
                write_new(self.index, blocks_of(fd), _FILE_MODE)
        # With the old index present, git keeps the stat data of unchanged files.
        self.git.run("read-tree", "--reset", head)

    def write_files(
        self, prefix: bytes, changes: Sequence[PathChange], read: ContentReader
    ) -> None:
        """Write content to the scratch tree; existing files stay."""
        for change in changes:
            path = os.path.join(self._tree, prefix + change.path)
            if change.content is None or os.path.lexists(path):
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(change.content, SymlinkEntry):
                os.symlink(change.content.target, path)
                continue
            mode = _EXECUTABLE_MODE if change.content.mode & 0o100 else _FILE_MODE
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
            with os.fdopen(fd, "wb") as file:
                for piece in read(change.content):
                    file.write(piece)

    def copy_file(self, path: bytes, source: bytes) -> None:
        """Copy a small file of the working tree to the scratch tree, if it exists."""
        target = os.path.join(self._tree, path)
        with opened(source) as fd:
            if fd is not None and not os.path.lexists(target):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                write_new(target, blocks_of(fd), _FILE_MODE)

    def ignored(self) -> set[bytes]:
        """Files in the scratch tree that git ignores by the rules there."""
        options = ("--others", "--ignored", "--exclude-standard", "-z")
        return set(self._on_tree.run("ls-files", *options).split(b"\0")) - {b""}

    def remove(self, paths: Sequence[bytes]) -> None:
        if paths:
            self.git.run("update-index", "-z", "--force-remove", "--stdin", given=_joined(paths))

    def add(self, paths: Sequence[bytes]) -> None:
        """Git reads them from the scratch tree, with the user's filters."""
        if paths:
            options = ("--add", "--replace", "-z", "--stdin")
            self._on_tree.run("update-index", *options, given=_joined(paths))

    def put(self, rows: Sequence[TreeRow]) -> None:
        """Set these entries in the scratch index, whatever it had there."""
        if rows:
            lines = b"".join(
                b"%b %b\t%b\0" % (b"0" if row.mode == ABSENT_MODE else row.mode, row.oid, row.path)
                for row in rows
            )
            self.git.run("update-index", "-z", "--index-info", given=lines)

    def differences(self, tree: str) -> list[TreeRow]:
        """Differences between the scratch index and a tree."""
        return staged_rows(self.git, tree)

    def known(self, paths: Sequence[bytes]) -> set[bytes]:
        """Which of these are in the scratch index."""
        wanted = set(paths)
        return wanted & set(self.git.run("ls-files", "-z").split(b"\0")) if wanted else set()

    def take(self, index: bytes) -> None:
        """Start with one of the user's indexes; empty for none."""
        if index:
            write_new(self.index, [index], _FILE_MODE)

    def refresh(self) -> None:
        """Update the stat data in the scratch index from the user's working tree."""
        with contextlib.suppress(GitFailed):  # its exit status says that some have changed
            self.git.run("update-index", "-q", "--refresh")

    def nested(self) -> set[bytes]:
        """Paths of submodules in the scratch index."""
        listed = self.git.run("ls-files", "--stage", "-z").split(b"\0")
        return {line.partition(b"\t")[2] for line in listed if line.startswith(GITLINK_MODE)}


@contextmanager
def scratch(
    repository: Repository,
    environment: Mapping[str, str],
    timeout_s: float,
    *,
    quarantine: bool = False,
) -> Iterator[Scratch]:
    place = tempfile.mkdtemp(prefix="holdfast-commit-")
    try:
        yield Scratch(repository, environment, timeout_s, os.fsencode(place), quarantine=quarantine)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _joined(paths: Sequence[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


class IndexLock:
    """Git's own lock for changing the index; use it as a context."""

    def __init__(self, repository: Repository) -> None:
        self._index = repository.own(b"index")
        self._lock = repository.own(b"index.lock")
        self._directory = repository.git_dir
        exists = os.path.exists(self._index)
        mode = os.stat(self._index).st_mode & 0o777 if exists else _INDEX_MODE
        try:
            self._fd: int | None = os.open(self._lock, NEW_FLAGS, mode)
        except FileExistsError:
            raise Refused(
                f"{os.fsdecode(self._lock)} exists: another git process is running, or has crashed",
                hint="try again; if no git is running, remove that file",
            ) from None

    def place(self, index: bytes) -> None:
        """Put an index in place with its times, by which git decides which files to check."""
        assert self._fd is not None
        data, status = read_whole(index), os.stat(index)
        write_all(self._fd, data)
        os.fsync(self._fd)
        os.utime(self._fd, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(self._lock, self._index)
        os.close(self._fd)
        self._fd = None
        sync_directory(self._directory)

    def __enter__(self) -> IndexLock:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._lock)

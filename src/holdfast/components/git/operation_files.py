"""The files with which git tracks a merge, rebase, cherry-pick, revert or bisect in progress.

They are in the worktree's own git directory: single files, and directories of small files. A
checkpoint stores them as one content, because they belong together.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from holdfast.components.git.repository import Repository, read_small, replace_file
from holdfast.domain.paths import from_text, to_text

FILES = (
    b"MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR MERGE_AUTOSTASH AUTO_MERGE SQUASH_MSG "
    b"CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD ORIG_HEAD BISECT_LOG BISECT_START BISECT_TERMS "
    b"BISECT_NAMES BISECT_EXPECTED_REV BISECT_ANCESTORS_OK BISECT_FIRST_PARENT BISECT_RUN "
    b"BISECT_HEAD"
).split()
DIRECTORIES = (b"rebase-merge", b"rebase-apply", b"sequencer", b"refs/bisect", b"refs/rewritten")

_MEANINGS = (
    (b"rebase-merge/", "rebase"),
    (b"rebase-apply/applying", "applying patches"),
    (b"rebase-apply/", "rebase"),
    (b"MERGE_HEAD", "merge"),
    (b"CHERRY_PICK_HEAD", "cherry-pick"),
    (b"REVERT_HEAD", "revert"),
    (b"sequencer/", "series of picks"),
    (b"BISECT_LOG", "bisect"),
)
_FILE_BYTES = 8 << 20
_TOTAL_BYTES = 64 << 20
_MOST_FILES = 10_000
_NAME = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,200}\Z")
_COMMIT = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9a-f])")

Files: TypeAlias = dict[bytes, tuple[int, bytes]]
"""Path below the git directory, with mode and content."""


class TooMuch(Exception):
    """More files than any git operation leaves; they are not captured."""


def present_paths(repository: Repository, names: Iterable[bytes]) -> Iterator[bytes]:
    """The existing files, in order; `names` are the entries of the git directory itself."""
    known = set(names)
    yield from (name for name in FILES if name in known)
    for directory in DIRECTORIES:
        if directory.partition(b"/")[0] in known:
            yield from _below(repository, directory)


def _below(repository: Repository, directory: bytes) -> Iterator[bytes]:
    pending, found = [directory], 0
    while pending:
        at = pending.pop()
        try:
            names = sorted(os.listdir(repository.own(at)))
        except OSError:
            continue
        for name in names:
            found += 1
            if found > _MOST_FILES:
                raise TooMuch(os.fsdecode(repository.own(directory)))
            path = at + b"/" + name
            if stat.S_ISDIR(os.lstat(repository.own(path)).st_mode):
                pending.append(path)
            else:
                yield path


def read_files(repository: Repository, paths: Iterable[bytes]) -> Files:
    found: Files = {}
    total = 0
    for path in paths:
        data = read_small(repository.own(path), _FILE_BYTES)
        if data is None:
            continue
        total += len(data)
        if total > _TOTAL_BYTES:
            raise TooMuch(os.fsdecode(repository.git_dir))
        found[path] = (os.stat(repository.own(path)).st_mode & 0o777, data)
    return found


def operation_name(paths: Iterable[bytes]) -> str | None:
    """The operation in progress, in a word or two; None if there is none."""
    known = list(paths)
    for sign, meaning in _MEANINGS:
        if any(path.startswith(sign) for path in known):
            return meaning
    return None


def named_objects(files: Files) -> set[str]:
    """Everything in these files that looks like an object name."""
    return {
        oid.decode()
        for path, (_, data) in files.items()
        if not path.endswith((b"/patch", b"_MSG", b"/message"))
        for oid in _COMMIT.findall(data)
    }


def encode_files(files: Files) -> bytes:
    rows = [[to_text(path), mode, data.decode("latin-1")] for path, (mode, data) in files.items()]
    return json.dumps(sorted(rows), separators=(",", ":")).encode()


def decode_files(data: bytes) -> Files:
    """`ValueError` unless all are files that git itself creates."""
    files: Files = {}
    for text, mode, content in json.loads(data):
        path = from_text(text)
        if not _is_operation_file(path) or type(mode) is not int or mode & ~0o777:
            raise ValueError(f"{text!r:.80} is not a file of a git operation")
        files[path] = (mode, content.encode("latin-1"))
    return files


def _is_operation_file(path: bytes) -> bool:
    if path in FILES:
        return True
    inside = any(path.startswith(directory + b"/") for directory in DIRECTORIES)
    return inside and all(_NAME.match(name) and name != b".." for name in path.split(b"/"))


def put_files(repository: Repository, files: Mapping[bytes, tuple[int, bytes]]) -> None:
    """Write exactly these files, and remove others. Can be repeated after a crash."""
    import shutil  # late: no save needs it

    from holdfast.components.git.durability import sync_changed  # late, like above

    present = set(present_paths(repository, os.listdir(repository.git_dir)))
    for path, (mode, data) in files.items():
        place = repository.own(path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if path not in present or read_small(place, _FILE_BYTES) != data:
            replace_file(place, data, mode)
    for path in present - files.keys():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(repository.own(path))
    for directory in DIRECTORIES:
        if not any(path.startswith(directory + b"/") for path in files):
            shutil.rmtree(repository.own(directory), ignore_errors=True)
    sync_changed(repository.git_dir, [*files, *present])

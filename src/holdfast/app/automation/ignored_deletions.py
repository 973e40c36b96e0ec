"""Ignored files that a command deletes without naming them: `rm -rf *`, `git clean -fdx`.

    directories that the command empties → paths in them that git's rules leave out → their files

Files that built-in rules leave out do not count, because a tool makes them again. Neither do those
that the user's own rules for Holdfast leave out. Bounded: the smallest files come first, and the
agent is told about those that do not fit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.ignore.defaults import (
    cache_marker,
    is_made_by_tools,
)
from holdfast.domain.ignore.rules import precedence_of
from holdfast.domain.paths import GIT_DIRECTORY, MARKER_DIRECTORY, is_within, join

if TYPE_CHECKING:
    from holdfast.domain.risk.assessment import Assessment
    from holdfast.domain.shell.emptied_trees import EmptiedTree

MOST_FILES = 1_000
MOST_BYTES = 64 << 20
_MOST_LOOKED_AT = 20_000
_PATTERN_LETTERS = frozenset("*?[{$`")


class EmptiedFiles(NamedTuple):
    """`fitting` are to be captured; `others` did not fit, and there are `more` if not all of the
    ignored files were looked at."""

    fitting: tuple[bytes, ...] = ()
    others: tuple[bytes, ...] = ()
    more: bool = False


def emptied_files(opened: OpenWorkspace, risk: Assessment | None) -> EmptiedFiles:
    """Called with the lock held."""
    workspace = str(opened.engine.vault.workspace)
    trees = [] if risk is None else list(_trees_inside(opened, risk.emptied))
    if not trees:
        return EmptiedFiles()

    def takes(path: bytes) -> bool:
        return any(is_within(path, top) and tree.takes(_below(path, top)) for top, tree in trees)

    def concerns(path: bytes) -> bool:
        return any(is_within(path, top) or is_within(top, path) for top, _ in trees)

    top = os.fsencode(workspace)
    ignored = chain.from_iterable(_files(top, path) for path in _left_out_by_git(opened, concerns))
    sizes = [(size, path) for size, path in islice(ignored, _MOST_LOOKED_AT) if takes(path)]
    return _fitting(sorted(sizes), more=next(ignored, None) is not None)


def _fitting(sizes: list[tuple[int, bytes]], *, more: bool) -> EmptiedFiles:
    room = MOST_BYTES
    for number, (size, _) in enumerate(sizes):
        room -= size
        if number == MOST_FILES or room < 0:
            break
    else:
        number = len(sizes)
    paths = [path for _, path in sizes]
    return EmptiedFiles(tuple(sorted(paths[:number])), tuple(sorted(paths[number:])), more)


def _trees_inside(
    opened: OpenWorkspace, trees: tuple[EmptiedTree, ...]
) -> Iterator[tuple[bytes, EmptiedTree]]:
    """Those that are directories of the workspace, each with its path there. One above the
    workspace takes all of it."""
    from holdfast.domain.external_paths import NotFollowed, followed

    workspace, home = str(opened.engine.vault.workspace), opened.environment.get("HOME")
    for tree in trees:
        try:
            place = followed(tree.place, home)
            if _PATTERN_LETTERS & set(tree.place) and not os.path.lexists(tree.place):
                place = os.path.realpath(place)
            else:  # a link itself goes, and what it leads to stays
                directory, _, name = place.rpartition("/")
                place = os.path.join(os.path.realpath(directory or "/"), name)
            is_directory = stat.S_ISDIR(os.lstat(place).st_mode)
        except (NotFollowed, OSError, ValueError):
            continue
        if is_directory and is_within(os.fsencode(workspace), os.fsencode(place.rstrip("/"))):
            yield b"", tree
        elif is_directory and place.startswith(workspace.rstrip("/") + "/"):
            top = os.fsencode(place[len(workspace.rstrip("/")) + 1 :])
            if not is_made_by_tools(top, is_directory=True):
                yield top, tree


def _left_out_by_git(opened: OpenWorkspace, concerns: Callable[[bytes], bool]) -> Iterator[bytes]:
    from holdfast.domain.checkpoints import SkipReason

    for skip in opened.engine.left_out():
        by_git = skip.reason is SkipReason.IGNORED and precedence_of(skip.detail) is None
        if by_git and concerns(skip.path):
            yield skip.path


def _files(workspace: bytes, path: bytes) -> Iterator[tuple[int, bytes]]:
    """The files and links at an ignored path and below, each with its size."""
    waiting = [path]
    while waiting:
        one = waiting.pop()
        place = join(workspace, one)
        try:
            status = os.lstat(place)
            is_directory = stat.S_ISDIR(status.st_mode)
            if is_made_by_tools(one, is_directory=is_directory):
                continue
            if is_directory:
                names = os.listdir(place)
                if cache_marker(names, partial(_first_bytes, place)) is None:
                    own = (GIT_DIRECTORY, MARKER_DIRECTORY)
                    waiting += [join(one, name) for name in sorted(names) if name not in own]
            elif stat.S_ISREG(status.st_mode):
                yield status.st_size, one
            elif stat.S_ISLNK(status.st_mode):
                yield 0, one
        except OSError:  # gone, or closed to us: nobody captures it
            continue


def _first_bytes(directory: bytes, name: bytes) -> bytes | None:
    try:
        fd = os.open(join(directory, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.read(fd, 64)
    finally:
        os.close(fd)


def _below(path: bytes, top: bytes) -> str:
    from holdfast.domain.paths import to_text

    return to_text(path[len(top) + 1 :] if top else path)

"""Ignored files that a command deletes without naming them: `rm -rf *`, `git clean -fdx`.

    what the command empties → what a scan leaves out there by the user's rules → the files in it

Not meant: what built-in rules leave out, because a tool makes it again, and what the user's own
rules for Holdfast leave out. Bounded: the smallest files come first, and of what does not fit there
is something to tell.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.ignore.defaults import (
    CACHEDIR_TAG,
    cache_marker,
    is_cachedir_tag,
    is_made_by_tools,
)
from holdfast.domain.paths import GIT_DIRECTORY, MARKER_DIRECTORY, is_within, join

if TYPE_CHECKING:
    from holdfast.domain.risk.assessment import Assessment
    from holdfast.domain.shell.emptied_trees import EmptiedTree

MOST_FILES = 1_000
MOST_BYTES = 64 << 20
_MOST_LOOKED_AT = 20_000
_PATTERN_LETTERS = frozenset("*?[{$`")
_NOT_MEANT = ("default: ", "setting 'ignore'")


class EmptiedFiles(NamedTuple):
    """`fitting` are to be captured; `others` did not fit, and there are `more` if not all of the
    ignored files were looked at."""

    fitting: tuple[bytes, ...] = ()
    others: tuple[bytes, ...] = ()
    more: bool = False


def emptied_files(opened: OpenWorkspace, risk: Assessment | None) -> EmptiedFiles:
    """Called with the lock held."""
    workspace = str(opened.engine.vault.workspace)
    trees = [] if risk is None else list(_trees_inside(risk.emptied, workspace))
    if not trees:
        return EmptiedFiles()

    def takes(path: bytes) -> bool:
        return any(is_within(path, top) and tree.takes(_below(path, top)) for top, tree in trees)

    def concerns(path: bytes) -> bool:
        return any(is_within(path, top) or is_within(top, path) for top, _ in trees)

    top = os.fsencode(workspace)
    ignored = chain.from_iterable(_files(top, path) for path in _left_out_by_user(opened, concerns))
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
    trees: tuple[EmptiedTree, ...], workspace: str
) -> Iterator[tuple[bytes, EmptiedTree]]:
    """Those that are directories of the workspace, each with its path there. One above the
    workspace takes all of it."""
    from holdfast.domain.external_paths import NotFollowed, followed

    home = os.environ.get("HOME")
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


def _left_out_by_user(opened: OpenWorkspace, concerns: Callable[[bytes], bool]) -> Iterator[bytes]:
    from holdfast.domain.checkpoints import SkipReason

    for skip in opened.engine.left_out():
        if skip.reason is not SkipReason.IGNORED or not concerns(skip.path):
            continue
        if skip.detail.startswith(_NOT_MEANT) or ".holdfastignore" in skip.detail:
            continue
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
                if not _is_cache(place, names):
                    own = (GIT_DIRECTORY, MARKER_DIRECTORY)
                    waiting += [join(one, name) for name in sorted(names) if name not in own]
            elif stat.S_ISREG(status.st_mode):
                yield status.st_size, one
            elif stat.S_ISLNK(status.st_mode):
                yield 0, one
        except OSError:  # gone, or closed to us: nobody captures it
            continue


def _is_cache(place: bytes, names: list[bytes]) -> bool:
    marker = cache_marker(names)
    if marker != CACHEDIR_TAG:
        return marker is not None
    try:
        fd = os.open(join(place, marker), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return is_cachedir_tag(os.read(fd, 64))
    finally:
        os.close(fd)


def _below(path: bytes, top: bytes) -> str:
    from holdfast.domain.paths import to_text

    return to_text(path[len(top) + 1 :] if top else path)

"""Ignored files of the workspace that a tool names: captured from then on, and reported once.

    a path of a tool, a redirection, an argument → a file of the workspace? → which rule ignores it?

A file that a tool is about to create counts too, so that the next checkpoint has it. Only files are
captured, never directories. A command may create a directory under the name, so a new file is
reported once it exists. Files that built-in rules ignore (`node_modules` and the like) count only
if the tool changes them, because programs in there are called all the time.

Files that a command deletes without naming them (`rm -rf *`, `git clean -fdx`) count too:

    directories that the command empties → paths in them that git's rules ignore → their files

Files excluded by built-in rules or by the user's own Holdfast rules do not count. Bounded: the
smallest files come first. The agent is notified of files that do not fit, of caches that the
command names, and of git data in nested repositories, which is never captured.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

from holdfast.app.open_workspace import OpenWorkspace
from holdfast.domain.agent_events import AgentEvent
from holdfast.domain.checkpoints import SkipReason
from holdfast.domain.ignore.defaults import (
    cache_marker,
    is_made_by_tools,
)
from holdfast.domain.ignore.includes import IncludePatterns, include_command
from holdfast.domain.ignore.rules import precedence_of
from holdfast.domain.paths import GIT_DIRECTORY, MARKER_DIRECTORY, is_within, join, parent
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.domain.checkpoints import Checkpoint, Skipped
    from holdfast.domain.shell.emptied_trees import EmptiedTree
    from holdfast.domain.shell.risk import Assessment

_SHOWN = 5
MOST_FILES = 1_000
MOST_BYTES = 64 << 20
_MOST_LOOKED_AT = 20_000
_PATTERN_LETTERS = frozenset("*?[{$`")


class IgnoredCapture:
    """The ignored files that a tool names."""

    def __init__(self, opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None) -> None:
        self._opened = opened
        self._event = event
        self._risk = risk
        self._new: dict[bytes, str] = {}
        self._deleted: dict[bytes, str] = {}
        self._emptied = EmptiedFiles()
        self._trouble: tuple[str, ...] = ()

    def remember(self) -> None:
        """Include them in this checkpoint and all later ones; called with the lock held."""
        vault = self._opened.engine.vault
        if vault.settings.capture_named_ignored != "on":
            return
        from holdfast.domain.errors import HoldfastError
        from holdfast.engine.scan.ignore_check import name_ignored_paths

        try:
            self._new = name_ignored_paths(
                vault, _candidates(self._opened, self._event, self._risk)
            )
            self._emptied = emptied_files(self._opened, self._risk)
            meant = dict.fromkeys(self._emptied.fitting, True)
            self._deleted = name_ignored_paths(vault, meant)
        except HoldfastError as error:  # the files of the workspace are saved anyway
            trouble = (
                f"Holdfast does not capture every ignored file that was named: {error.message}."
            )
            self._trouble = (trouble,)

    def messages(self, saved: Checkpoint) -> tuple[str, ...]:
        """The notice for the agent: which of them this checkpoint has, and which files the tool
        will create."""
        written = _candidates(self._opened, self._event, None) if self._new else ()
        top = os.fsencode(self._opened.engine.vault.workspace)
        captured = {
            path: rule
            for path, rule in self._new.items()
            if _holds(self._opened, saved, path)
            or (path in written and not os.path.lexists(os.path.join(top, path)))
        }
        deleted = {
            path: rule for path, rule in self._deleted.items() if _holds(self._opened, saved, path)
        }
        return (
            *self._trouble,
            *([_notice(captured, "a tool named {}")] if captured else ()),
            *([_notice(deleted, "this command may delete {}")] if deleted else ()),
            *([_not_captured(self._emptied)] if self._emptied.others or self._emptied.more else ()),
            *([self._caches_words()] if self._emptied.caches else ()),
            *([_git_data_words(self._emptied.repositories)] if self._emptied.repositories else ()),
        )

    def _caches_words(self) -> str:
        caches = self._emptied.caches
        command = include_command(caches[:_SHOWN])
        return (
            f"Holdfast does not save {_list(caches)}, because tools can recreate such directories. "
            f"This command may delete {'it' if len(caches) == 1 else 'them'}, and undo cannot "
            f"restore {'it' if len(caches) == 1 else 'them'}. To save such directories: {command}"
        )


def created_ignored(
    opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None, before: Checkpoint
) -> tuple[str, ...]:
    """The notice after a command: which named files it created. `before` was saved before it."""
    vault = opened.engine.vault
    named = frozenset(vault.parts.named_paths.load())
    if not named or vault.settings.capture_named_ignored != "on":
        return ()
    from holdfast.engine.compare.tree_diff import IgnoredContent

    ignored = IgnoredContent(vault)
    captured: dict[bytes, str] = {}
    for path in _candidates(opened, event, risk):
        if path in named and not _holds(opened, before, path) and _is_captured(opened, path):
            rule = ignored.rule(path)
            captured |= {path: rule} if rule is not None else {}
    return (_notice(captured, "a tool named {}"),) if captured else ()


def _holds(opened: OpenWorkspace, saved: Checkpoint, path: bytes) -> bool:
    from holdfast.engine.stored_objects import entry_at

    return entry_at(opened.engine.vault.load_tree, saved.tree, path) is not None


def _is_captured(opened: OpenWorkspace, path: bytes) -> bool:
    """Whether the next checkpoint will include a named file."""
    vault = opened.engine.vault
    place = os.path.join(os.fsencode(vault.workspace), path)
    try:
        status = os.lstat(place)
    except OSError:
        return False
    if stat.S_ISLNK(status.st_mode):
        return True
    is_small = status.st_size <= vault.settings.max_file_size
    return stat.S_ISREG(status.st_mode) and is_small and os.access(place, os.R_OK)


def _candidates(
    opened: OpenWorkspace, event: AgentEvent, risk: Assessment | None
) -> dict[bytes, bool]:
    """Workspace paths, and whether the tool changes them."""
    from holdfast.domain.external_paths import resolve_paths
    from holdfast.domain.shell.expansion import join

    workspace, home = str(opened.engine.vault.workspace), opened.environment.get("HOME")
    base = event.cwd or workspace
    places = [(join(base, path), True) for path in event.paths]
    if risk is not None:
        places += [(place, True) for place in (*risk.inside, *resolve_paths(risk.places, home))]
        handed = resolve_paths(risk.handed, home)
        places += [(place, False) for place in (*risk.mentioned, *handed)]
    found: dict[bytes, bool] = {}
    for place, changes in places:
        for path in _files(place, workspace, changes=changes):
            found[path] = found.get(path, False) or changes
    return found


def _files(place: str, workspace: str, *, changes: bool) -> Iterable[bytes]:
    """The file at a place and, for a link, its target."""
    try:
        os.fsencode(place)
    except ValueError:  # not a possible path
        return
    if not place.startswith("/") or "\0" in place:
        return
    directory, _, name = place.rpartition("/")
    try:
        real = os.path.join(os.path.realpath(directory), name)
        mode = os.lstat(real).st_mode if os.path.lexists(real) else None
    except (OSError, ValueError):
        return
    if mode is None:
        ends = [real] if changes and not set(name) & set("*?[{$`~") else []
    elif stat.S_ISLNK(mode):
        ends = [real, os.path.realpath(real)]
    else:
        ends = [real] if stat.S_ISREG(mode) else []
    for end in ends:
        if end.startswith(workspace.rstrip("/") + "/") and not os.path.isdir(end):
            yield os.fsencode(end[len(workspace.rstrip("/")) + 1 :])


def _notice(new: dict[bytes, str], why: str) -> str:
    rules, one = set(new.values()), len(new) == 1
    by_rule = f" ({rules.pop()})" if len(rules) == 1 else ""
    return (
        f"Holdfast now captures {_list(new)}, although {('it is' if one else 'they are')} "
        f"ignored{by_rule}, because {why.format('it' if one else 'them')}. To turn this off: "
        "holdfast config set capture_named_ignored off"
    )


def _not_captured(emptied: EmptiedFiles) -> str:
    """For ignored files that this command may delete, and that are too many or too large."""
    others = _list(emptied.others) if emptied.others else "more files than were checked"
    unseen = " and files that were not checked" if emptied.others and emptied.more else ""
    return (
        f"Holdfast does not capture {others}{unseen}. They are ignored, and this command may "
        f"delete them. The limit for such files is {MOST_FILES:,} files and {MOST_BYTES >> 20} "
        "MB. To capture them: holdfast config add include PATTERN"
    )


def _git_data_words(repositories: tuple[bytes, ...]) -> str:
    git_data = _list(join(top, GIT_DIRECTORY) for top in repositories)
    return (
        f"Holdfast saves the files of nested repositories, but not {git_data}. This command may "
        "delete it, and undo cannot restore its commits and branches. Push them first, or copy "
        "the directory."
    )


def _list(paths: Iterable[bytes]) -> str:
    from holdfast.domain.paths import to_text

    shown = ["".join(c if c.isprintable() else "?" for c in to_text(path)) for path in paths]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


class EmptiedFiles(NamedTuple):
    """`fitting` will be captured; `others` exceed the limits. `more`: not all ignored files were
    checked. `caches` are directories that built-in rules ignore. `repositories` are nested ones
    that lose their git data."""

    fitting: tuple[bytes, ...] = ()
    others: tuple[bytes, ...] = ()
    more: bool = False
    caches: tuple[bytes, ...] = ()
    repositories: tuple[bytes, ...] = ()


def emptied_files(opened: OpenWorkspace, risk: Assessment | None) -> EmptiedFiles:
    """The ignored files that a command may delete. Called with the lock held."""
    workspace = str(opened.engine.vault.workspace)
    named = [] if risk is None else list(_trees_inside(opened, risk.emptied))
    caches = {top for top, _ in named if top and is_made_by_tools(top, is_directory=True)}
    unsaved = tuple(_not_included(opened, sorted(caches))) if caches else ()
    trees = [(top, tree) for top, tree in named if top not in caches]
    if not trees:
        return EmptiedFiles(caches=unsaved)

    def takes(path: bytes) -> bool:
        return any(is_within(path, top) and tree.takes(_below(path, top)) for top, tree in trees)

    def concerns(path: bytes) -> bool:
        return any(is_within(path, top) or is_within(top, path) for top, _ in trees)

    top = os.fsencode(workspace)
    left_out = [skip for skip in opened.engine.left_out() if concerns(skip.path)]
    ignored = chain.from_iterable(
        _ignored_files(top, skip.path) for skip in left_out if _is_left_out_by_git(skip)
    )
    sizes = [(size, path) for size, path in islice(ignored, _MOST_LOOKED_AT) if takes(path)]
    fitting = _fitting(sorted(sizes), more=next(ignored, None) is not None)
    return fitting._replace(caches=unsaved, repositories=tuple(_repositories(left_out, trees)))


def _not_included(opened: OpenWorkspace, directories: list[bytes]) -> Iterator[bytes]:
    included = IncludePatterns.parse(opened.engine.vault.settings.include)
    yield from (path for path in directories if not included.matches(path, is_dir=True))


def _repositories(
    left_out: list[Skipped], trees: list[tuple[bytes, EmptiedTree]]
) -> Iterator[bytes]:
    """Nested repositories that a command deletes by name or with a directory above. Others are
    safe, because `git clean` skips repositories."""
    named = [place for place, tree in trees if place and not tree.patterns]
    for skip in left_out:
        top = parent(skip.path)
        is_git_data = skip.reason is SkipReason.GIT_DATA and bool(top)
        if is_git_data and any(is_within(top, place) for place in named):
            yield top


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
    """The trees that are workspace directories, with their workspace path. A tree above the
    workspace covers all of it."""
    from holdfast.domain.external_paths import UnresolvedPath, resolve_path

    workspace, home = str(opened.engine.vault.workspace), opened.environment.get("HOME")
    for tree in trees:
        try:
            place = resolve_path(tree.place, home)
            if _PATTERN_LETTERS & set(tree.place) and not os.path.lexists(tree.place):
                place = os.path.realpath(place)
            else:  # a link is deleted itself, and its target stays
                directory, _, name = place.rpartition("/")
                place = os.path.join(os.path.realpath(directory or "/"), name)
            is_directory = stat.S_ISDIR(os.lstat(place).st_mode)
        except (UnresolvedPath, OSError, ValueError):
            continue
        if is_directory and is_within(os.fsencode(workspace), os.fsencode(place.rstrip("/"))):
            yield b"", tree
        elif is_directory and place.startswith(workspace.rstrip("/") + "/"):
            yield os.fsencode(place[len(workspace.rstrip("/")) + 1 :]), tree


def _is_left_out_by_git(skip: Skipped) -> bool:
    return skip.reason is SkipReason.IGNORED and precedence_of(skip.detail) is None


def _ignored_files(workspace: bytes, path: bytes) -> Iterator[tuple[int, bytes]]:
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
        except OSError:  # gone or unreadable, so it is not captured
            continue


def _first_bytes(directory: bytes, name: bytes) -> bytes | None:
    try:
        fd = os.open(join(directory, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.read(fd, 64)
    except OSError:  # a directory, for example
        return None
    finally:
        os.close(fd)


def _below(path: bytes, top: bytes) -> str:
    from holdfast.domain.paths import to_text

    return to_text(path[len(top) + 1 :] if top else path)

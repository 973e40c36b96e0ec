"""Which directory each command of a shell script runs in, by its letters alone.

    cd, pushd, popd       → from here on, in this subshell
    a subshell, bash -c   → what changes in it ends with it
    git -C, make -C, env  → for one command

Pure. What only the shell knows (`cd $X`) stays as it is written, and so does whatever is named from
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_MOST_PUSHED = 50


def program(word: str) -> str:
    return word.rsplit("/", 1)[-1].lstrip("\\")


def flags(arguments: Sequence[str]) -> set[str]:
    """Single letters of bundled short options, and long options without their values."""
    found: set[str] = set()
    for word in arguments:
        if word == "--":
            break
        if word.startswith("--"):
            found.add(word.split("=")[0])
        elif word.startswith("-"):
            found.update(word[1:])
    return found


class Standing(NamedTuple):
    """Where a shell is, where it was before, and what `pushd` has put aside."""

    directory: str
    before: str
    pushed: tuple[str, ...] = ()


class WorkingDirectory:
    """Follows one script. `directory` is where the command that is looked at runs."""

    def __init__(self, directory: str) -> None:
        self._now = Standing(directory, directory)
        self._outer: list[tuple[int, Standing]] = []

    @property
    def directory(self) -> str:
        return self._now.directory

    def enter(self, scope: tuple[int, ...]) -> None:
        """The next command is in these subshells. Those that it is not in any more are left."""
        same = 0
        while same < min(len(scope), len(self._outer)) and scope[same] == self._outer[same][0]:
            same += 1
        if len(self._outer) > same:
            self._now = self._outer[same][1]
            del self._outer[same:]
        self._outer += [(number, self._now) for number in scope[same:]]

    def apart(self) -> WorkingDirectory:
        """The same place for a shell of its own, such as `bash -c`."""
        inner = WorkingDirectory(self.directory)
        inner._now = self._now
        return inner

    def at(self, chosen: str | None) -> WorkingDirectory:
        """Where a single command runs that is told to run elsewhere, such as `git -C`."""
        return self if chosen is None else WorkingDirectory(join(self.directory, chosen))

    def follow(self, words: Sequence[str]) -> None:
        """Go where a command leads, if it is one that does."""
        name = program(words[0])
        targets = [word for word in words[1:] if word == "-" or not word.startswith(("-", "+"))]
        here, _, pushed = self._now
        if name in ("cd", "chdir"):
            self._go(targets[-1] if targets else "~", pushed)
        elif name == "pushd" and targets:
            self._go(targets[-1], (*pushed, here)[-_MOST_PUSHED:])
        elif name == "pushd" and pushed:
            self._go(pushed[-1], (*pushed[:-1], here))
        elif name == "popd" and pushed:
            self._go(pushed[-1], pushed[:-1])

    def _go(self, target: str, pushed: tuple[str, ...]) -> None:
        here = self.directory
        there = self._now.before if target == "-" else join(here, target)
        self._now = Standing(there, here, pushed)


def join(directory: str, path: str) -> str:
    """Where a path leads, by its letters alone. What only the shell knows (`~`, `$X`) counts as
    somewhere else, unless it says that it is here."""
    if path.startswith(("$PWD", "${PWD}")):
        path = path.replace("${PWD}", ".", 1).replace("$PWD", ".", 1)
    if path.startswith(("~", "$")):
        return path
    if directory.startswith(("~", "$")) and not path.startswith("/"):
        return _below_unknown(directory, path)
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{directory}/{path}").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def findable(workspace: str, path: str, place: str) -> str:
    """A path for somebody in the workspace: as it was written if it leads to `place` from there,
    else from the workspace if it is beside it, else in full."""
    if path.startswith(("/", "~", "$")) or join(workspace, path) == place:
        return path
    beside = workspace.rstrip("/").rpartition("/")[0] + "/"
    is_near = place.startswith(beside) and beside != "/"
    return f"../{place[len(beside) :]}" if is_near else place


def _below_unknown(directory: str, path: str) -> str:
    """The same from a directory that begins with what the shell has to expand."""
    parts = directory.rstrip("/").split("/")
    for part in path.split("/"):
        if part == ".." and len(parts) > 1:
            del parts[-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)

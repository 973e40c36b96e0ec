"""Which directory each command of a shell script runs in, by its letters alone.

    cd, pushd, popd       → from here on, in this subshell
    a subshell, bash -c   → what changes in it ends with it
    git -C, make -C, env  → for one command

Pure. What only the shell knows (`cd $X`) stays as it is written, and so does whatever is named from
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_MOST_PUSHED = 50


def program(word: str) -> str:
    return word.rsplit("/", 1)[-1].lstrip("\\")


class WorkingDirectory:
    """Follows one script. `directory` is where the command that is looked at runs."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._before = directory
        self._pushed: list[str] = []
        self._outer: list[tuple[int, str, str, list[str]]] = []

    @contextmanager
    def within(self, scope: tuple[int, ...]) -> Iterator[None]:
        """A command of these subshells. Those that it is not in any more are left."""
        entered = [number for number, *_ in self._outer]
        same = 0
        while same < min(len(scope), len(entered)) and scope[same] == entered[same]:
            same += 1
        if len(self._outer) > same:
            _, self.directory, self._before, self._pushed = self._outer[same]
            del self._outer[same:]
        for number in scope[same:]:
            self._outer.append((number, self.directory, self._before, list(self._pushed)))
        yield

    @contextmanager
    def apart(self, *, keep: bool = False) -> Iterator[None]:
        """A shell of its own, such as `bash -c`; `keep` is for one that is the same, as `eval`."""
        before = (self.directory, self._before, list(self._pushed), self._outer)
        self._outer = []
        yield
        if keep:
            self._outer = before[3]
        else:
            self.directory, self._before, self._pushed, self._outer = before

    @contextmanager
    def at(self, chosen: str | None) -> Iterator[None]:
        """Another directory for one command."""
        before = self.directory
        if chosen is not None:
            self.directory = join(before, chosen)
        yield
        if chosen is not None:
            self.directory = before

    def follow(self, words: Sequence[str]) -> None:
        """Go where a command leads, if it is one that does."""
        name = program(words[0])
        targets = [word for word in words[1:] if word == "-" or not word.startswith(("-", "+"))]
        if name in ("cd", "chdir"):
            self._go(targets[-1] if targets else "~")
        elif name == "pushd" and targets:
            self._pushed = [*self._pushed, self.directory][-_MOST_PUSHED:]
            self._go(targets[-1])
        elif name == "pushd" and self._pushed:
            here = self.directory
            self._go(self._pushed.pop())
            self._pushed.append(here)
        elif name == "popd" and self._pushed:
            self._go(self._pushed.pop())

    def _go(self, target: str) -> None:
        here = self.directory
        self.directory = self._before if target == "-" else join(here, target)
        self._before = here


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


def _below_unknown(directory: str, path: str) -> str:
    """The same from a directory that begins with what the shell has to expand."""
    parts = directory.rstrip("/").split("/")
    for part in path.split("/"):
        if part == ".." and len(parts) > 1:
            del parts[-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)

"""The directory of each command in a shell script, and the expansion of its words, from the text
alone.

    cd, pushd, popd       → for the rest of this subshell
    a subshell, bash -c   → changes end with it
    git -C, make -C, env  → for one command
    $NAME, {a,b}, *.txt   → variables that the script sets, braces, patterns

Pure: the caller looks up patterns. Values that only the shell knows (`cd $X`) stay as written, and
so do words with too many expansions. Quotes are already removed, so a quoted pattern is looked up
too: one file too many is better than one too few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence

from holdfast.values.classes import NamedTuple

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


def plain_words(words: Sequence[str], value_options: Container[str] = ()) -> list[str]:
    """The words that are neither options nor values of these options."""
    values = {n + 1 for n, word in enumerate(words) if word in value_options}
    return [w for n, w in enumerate(words) if n not in values and not w.startswith("-")]


def after_options(words: Sequence[str], takes_value: Callable[[str], bool]) -> list[str]:
    """The words after the leading options; `takes_value`: whether the next word is its value."""
    position = 0
    while position < len(words) and words[position].startswith("-"):
        position += 2 if takes_value(words[position]) else 1
    return list(words[position:])


class Directories(NamedTuple):
    """The current directory of a shell, the previous one, and the `pushd` stack."""

    directory: str
    before: str
    pushed: tuple[str, ...] = ()


class WorkingDirectory:
    """Tracks one script. `directory` is where the current command runs."""

    def __init__(self, directory: str) -> None:
        self._now = Directories(directory, directory)
        self._outer: list[tuple[int, Directories]] = []

    @property
    def directory(self) -> str:
        return self._now.directory

    def enter(self, scope: tuple[int, ...]) -> None:
        """The next command is in these subshells. Directories of subshells that ended are
        dropped."""
        same = 0
        while same < min(len(scope), len(self._outer)) and scope[same] == self._outer[same][0]:
            same += 1
        if len(self._outer) > same:
            self._now = self._outer[same][1]
            del self._outer[same:]
        self._outer += [(number, self._now) for number in scope[same:]]

    def apart(self) -> WorkingDirectory:
        """A copy for a separate shell, such as `bash -c`."""
        inner = WorkingDirectory(self.directory)
        inner._now = self._now
        return inner

    def at(self, chosen: str | None) -> WorkingDirectory:
        """The directory for a single command with an option such as `git -C`."""
        return self if chosen is None else WorkingDirectory(join(self.directory, chosen))

    def follow(self, words: Sequence[str]) -> None:
        """Change directory if the command does."""
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
        self._now = Directories(there, here, pushed)


def join(directory: str, path: str) -> str:
    """The path in a directory, resolved as text. Values that only the shell knows (`~`, `$X`) count
    as elsewhere, except `$PWD`."""
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


def path_from_workspace(workspace: str, path: str, place: str) -> str:
    """A path as seen from the workspace: as written if it leads to `place` from there, else
    relative if it is next to the workspace, else in full."""
    if path.startswith(("/", "~", "$")) or join(workspace, path) == place:
        return path
    beside = workspace.rstrip("/").rpartition("/")[0] + "/"
    is_near = place.startswith(beside) and beside != "/"
    return f"../{place[len(beside) :]}" if is_near else place


def _below_unknown(directory: str, path: str) -> str:
    """`join` for a directory that starts with a value only the shell knows."""
    parts = directory.rstrip("/").split("/")
    for part in path.split("/"):
        if part == ".." and len(parts) > 1:
            del parts[-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


MOST_WORDS = 1_000
"""The most words of a command after expansion."""
_MOST_VALUES = 200
_NAME = r"[A-Za-z_]\w*"
_ASSIGNMENT = re.compile(rf"({_NAME})(\+?)=(.*)", re.DOTALL)
_VARIABLE = re.compile(rf"\$(?:({_NAME})|\{{({_NAME})\}})")
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_PATTERN = re.compile(r"[*?\[]")
_SETTERS = frozenset("export declare local readonly typeset".split())
UNKNOWN = re.compile(r"[$`]")


class Variables:
    """The variables a script has set so far, with their possible values: several for a loop
    variable."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, ...]] = {}

    def follow(self, words: Sequence[str]) -> None:
        """Apply assignments of a command: `A=x`, `export A=x`, `for a in x y`."""
        if not words:
            return
        if words[0] in ("for", "select") and words[2:3] == ("in",):
            values = [value for word in words[3:] for value in self.replaced(word)]
            self._set(words[1], tuple(values[:_MOST_VALUES]))
            return
        given = words[1:] if words[0] in _SETTERS else words
        if words[0] not in _SETTERS and not all(map(_ASSIGNMENT.match, words)):
            return  # `A=x run` sets it for that command only
        for word in given:
            match = _ASSIGNMENT.match(word)
            if match is not None:
                before = self._values.get(match.group(1), ("",)) if match.group(2) else ("",)
                self._set(
                    match.group(1),
                    tuple(b + v for b in before for v in self.replaced(match.group(3))),
                )

    def _set(self, name: str, values: tuple[str, ...]) -> None:
        if len(self._values) < _MOST_VALUES or name in self._values:
            self._values[name] = values[:_MOST_VALUES]

    def replaced(self, word: str) -> list[str]:
        """The word with known variables replaced, once per combination of values."""
        if "$" not in word or not self._values:
            return [word]
        words = [word]
        for match in _VARIABLE.finditer(word):
            values = self._values.get(match.group(1) or match.group(2))
            if values is not None:
                words = [one.replace(match.group(), value, 1) for one in words for value in values]
            if len(words) > _MOST_VALUES:
                return [word]
        return words


def expanded(
    words: Sequence[str], variables: Variables, look_up: Callable[[str], Sequence[str]]
) -> tuple[str, ...]:
    """The expanded words of a command; `look_up` returns the names that match a pattern."""
    found: list[str] = []
    for word in words:
        for one in variables.replaced(word):
            for part in _without_braces(one):
                found += (look_up(part) if _PATTERN.search(part) else ()) or (part,)
        if len(found) > MOST_WORDS:
            return tuple(words)
    return tuple(found)


def _without_braces(word: str) -> Iterator[str]:
    waiting = [word]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        one = waiting.pop(0)
        match = None if "${" in one else _BRACES.search(one)
        if match is None:
            yield one
        else:
            waiting[:0] = [
                one[: match.start()] + part + one[match.end() :]
                for part in match.group(1).split(",")
            ]

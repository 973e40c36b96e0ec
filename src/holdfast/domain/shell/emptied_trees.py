"""Directories in which a command deletes files that it does not name, including ignored ones.

    rm -rf build/*, mv src ../away     → everything in build, in src
    git clean -fdx, git stash --all    → everything in the directory, in the repository
    find . -name '*.db' -delete        → everything that matches, or is in a matching directory
    python3 -c "shutil.rmtree('data')" → everything in data

Pure: paths are relative to the command's directory. It includes one file too many rather than one
too few: a `find` condition that is not about a name counts as true. Not detected: files that a
program deletes from its own list, as `make clean` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from holdfast.domain.shell.changed_paths import moved_paths, only_reads, operands, searched
from holdfast.domain.shell.expansion import UNKNOWN, program
from holdfast.domain.shell.inline_code import deletes_files, is_code, literal_paths
from holdfast.values.classes import NamedTuple

TOP_OF_REPOSITORY = ":/"
"""Git's notation."""
_REMOVERS = frozenset("rm srm rimraf del-cli trash trash-put trash-cli".split())
_DELETERS = _REMOVERS | frozenset("mv unlink shred truncate".split())
_LISTERS = frozenset("ls fd fdfind".split())
_NAMES = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname")
_NEGATIONS = ("!", "-not")
_ALTERNATIVES = ("-o", "-or", ",")
_RUNS = ("-exec", "-execdir", "-ok", "-okdir")


class EmptiedTree(NamedTuple):
    """A directory of which everything may be deleted, or everything that matches one of the
    `patterns`."""

    place: str
    patterns: tuple[str, ...] = ()

    def takes(self, path: str) -> bool:
        """Whether it covers a file, given by its path below the directory."""
        if not self.patterns:
            return True
        parts = path.lower().split("/")
        ways = [f"./{'/'.join(parts[: end + 1])}" for end in range(len(parts))]
        return any(
            fnmatchcase(name, pattern.lower() if "/" not in pattern else f"*{pattern.lower()}")
            for pattern in self.patterns
            for name in (ways if "/" in pattern else parts)
        )


def deletes_its_arguments(words: Sequence[str]) -> bool:
    """Whether this command would delete files whose names another command prints."""
    return program(words[0]) in _DELETERS


def emptied_trees(
    words: Sequence[str], written: Sequence[str], fed: str, *, handed_on: bool
) -> Iterator[EmptiedTree]:
    """The trees that one command empties, from its words after shell expansion and as `written`.
    `handed_on`: the names that it prints are deleted."""
    name = program(words[0])
    if name in _REMOVERS:
        yield from map(EmptiedTree, operands(words))
    elif name == "mv":
        yield from map(EmptiedTree, moved_paths(words))
    elif name == "find":
        if handed_on or _find_deletes(words):
            yield from (EmptiedTree(place, _patterns(written)) for place in searched(words))
    elif name in _LISTERS and handed_on:
        yield from map(EmptiedTree, operands(words) or ["."])
    elif name == "rsync" and any(word.startswith("--del") for word in words):
        yield from map(EmptiedTree, operands(words)[-1:])
    elif name == "git":
        from holdfast.domain.shell.git_risk import emptied_trees as emptied_by_git

        yield from map(EmptiedTree, emptied_by_git(words[1:]))
    elif is_code(name) and deletes_files(text := "\n".join((*words[1:], fed))):
        yield from map(EmptiedTree, list(literal_paths(text)) or ["."])


def _find_deletes(words: Sequence[str]) -> bool:
    if "-delete" in words:
        return True
    return any(
        word in _RUNS and position + 1 < len(words) and not only_reads(words[position + 1 :])
        for position, word in enumerate(words)
    )


def _patterns(words: Sequence[str]) -> tuple[str, ...]:
    """The names that find searches for. Empty if other files may match as well: if only the shell
    knows one of the names, if a group is negated, or if an alternative has no name."""
    found: list[str] = []
    has_name = False
    for position, word in enumerate(words):
        following = words[position + 1] if position + 1 < len(words) else ""
        if word in _NEGATIONS and following.lstrip("\\") == "(":
            return ()
        if word in _ALTERNATIVES:
            if not has_name:
                return ()
            has_name = False
        elif word in _NAMES and following and words[position - 1] not in _NEGATIONS:
            if UNKNOWN.search(following):
                return ()
            found.append(following)
            has_name = True
    return tuple(found) if has_name else ()

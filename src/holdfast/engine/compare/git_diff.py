"""Hunks from git: its histogram diff of two contents outside any repository.

Both contents go into files of a private directory (0700, files 0600), `git diff --no-index` writes
into an anonymous temporary file, and the hunks are read from there, one at a time.

Guarantee: git runs without a shell and sees no configuration, attributes, pager, hook, external
diff or repository, neither the user's nor the workspace's. It is stopped after a bounded time. Its
output is read completely and checked before the first hunk is returned.
Not guaranteed: that no file is left behind when this process is killed while git runs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Literal

from holdfast.domain.diff.hunks import DiffLine, Hunk, hunks_of
from holdfast.values.classes import dataclass

_TIMEOUT_S = 60.0
_DIFFERENT = 1
_HEADER = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(?: (.*))?\n", re.DOTALL)
_KINDS: dict[bytes, Literal[" ", "+", "-"]] = {b" ": " ", b"+": "+", b"-": "-"}


class GitDiffFailed(Exception):
    """Git cannot do this comparison; another differ has to."""


@dataclass(frozen=True, slots=True)
class GitProgram:
    """The git program, the directory for its input files, and its time limit."""

    executable: str
    scratch_dir: str | None = None
    timeout_s: float = _TIMEOUT_S


def find_git() -> GitProgram | None:
    """The git program in PATH, without relative entries.

    A relative entry depends on the current directory, and a workspace may contain its own `git`.
    """
    entries = [entry for entry in os.get_exec_path() if os.path.isabs(entry)]
    executable = shutil.which("git", path=os.pathsep.join(entries)) if entries else None
    return GitProgram(executable) if executable else None


def git_hunks(
    git: GitProgram,
    old: Iterable[bytes],
    new: Iterable[bytes],
    *,
    context: int,
    lines_before: int = 0,
    heading: bytes = b"",
) -> Iterator[Hunk]:
    """Git's hunks of two different contents; `GitDiffFailed` comes before the first or never.

    The contents follow `lines_before` equal lines, under `heading`.
    """
    with _output_file(git) as output:
        _run(git, old, new, context, output)
        output.seek(0)
        if not sum(1 for _ in parse_hunks(output)):
            raise GitDiffFailed("git found no difference in contents that differ")
        output.seek(0)
        yield from parse_hunks(output, lines_before=lines_before, heading=heading)


def parse_hunks(diff: IO[bytes], *, lines_before: int = 0, heading: bytes = b"") -> Iterator[Hunk]:
    """The hunks of a unified diff of one file, shifted down by `lines_before`.

    Lines are identified by the counts in the header, never by their text. Hunks without a heading
    from git get the given one.
    """
    line = diff.readline()
    while line and not line.startswith(b"@@ "):
        line = diff.readline()
    while line:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise GitDiffFailed(f"not the header of a hunk: {line[:80]!r}")
        old_start, old_count, new_start, new_count = (int(n or 1) for n in match.groups()[:4])
        lines = _HunkLines(diff, old_count, new_count)
        yield from hunks_of(
            lines,
            lines_before + old_start + (old_count == 0),
            lines_before + new_start + (new_count == 0),
            match[5] or heading,
        )
        line = lines.following


class _HunkLines:
    """The lines of one hunk, as many as its header counts; then the line after them."""

    def __init__(self, diff: IO[bytes], old_count: int, new_count: int) -> None:
        self._diff = diff
        self._old_count = old_count
        self._new_count = new_count
        self.following = b""

    def __iter__(self) -> Iterator[DiffLine]:
        line = self._diff.readline()
        while self._old_count or self._new_count:
            kind = _KINDS.get(line[:1])
            if kind is None or not line.endswith(b"\n"):
                raise GitDiffFailed(f"a hunk ends early: {line[:80]!r}")
            self._old_count -= kind != "+"
            self._new_count -= kind != "-"
            if self._old_count < 0 or self._new_count < 0:
                raise GitDiffFailed("a hunk has more lines than its header counts")
            # The marker of a missing line end follows its line.
            following = self._diff.readline()
            no_newline = following.startswith(b"\\")
            yield DiffLine(kind, line[1:-1], no_newline)
            line = self._diff.readline() if no_newline else following
        self.following = line


def _output_file(git: GitProgram) -> IO[bytes]:
    try:
        return tempfile.TemporaryFile(dir=git.scratch_dir)
    except OSError as error:
        raise GitDiffFailed(f"no place for the output of git: {error}") from error


def _run(
    git: GitProgram, old: Iterable[bytes], new: Iterable[bytes], context: int, output: IO[bytes]
) -> None:
    """Run git on the two contents and require that it reports a difference."""
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-", dir=git.scratch_dir) as name:
            directory = Path(name)
            _write(directory / "old", old)
            _write(directory / "new", new)
            completed = subprocess.run(
                _arguments(git.executable, context),
                cwd=directory,
                env=_environment(directory),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                timeout=git.timeout_s,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitDiffFailed(f"git did not finish: {error}") from error
    if completed.returncode != _DIFFERENT:
        raise GitDiffFailed(f"git ended with status {completed.returncode}")


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def _arguments(executable: str, context: int) -> list[str]:
    before = ["--no-pager", "-c", f"core.attributesFile={os.devnull}"]
    options = "--histogram --indent-heuristic --no-color --no-ext-diff --no-textconv --text".split()
    compare = ["diff", "--no-index", *options, f"--unified={context}", "--", "old", "new"]
    return [executable, *before, *compare]


def _environment(directory: Path) -> dict[str, str]:
    """All that git can see: nothing from the caller's environment."""
    return {
        "PATH": os.defpath,
        "HOME": str(directory),
        "XDG_CONFIG_HOME": str(directory),
        "LC_ALL": "C",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(directory),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_DIR": str(directory / "no-repository"),
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }

"""Runs git with argument vectors, without a shell, and without user code that could run.

Guarantees for every command: no hook, file system monitor, pager, editor or prompt. No optional
lock. No connection to a remote: missing objects of a partial clone are not fetched. No environment
variable leads it to another repository. Git is found on absolute paths only, so a program named
`git` in the workspace is never started. File content is never read, so filters do not run either.
Ownership is checked by git itself (`safe.directory`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.components.git.references import LEAVE_GIT_OUT
from holdfast.components.git.repository import Repository
from holdfast.ports.component import ComponentProblem

if TYPE_CHECKING:
    from subprocess import Popen

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.fsync=committed,loose-object",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
)
_COMMANDS_OF_A_STEP = 5
_KEPT = ("HOME", "PATH", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME", "SUDO_UID")
_KEPT_OF_GIT = ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_IDENTITY = tuple(
    f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
)

_RESET_INDEX = "its index is damaged: remove {index} and run: git reset"
_DAMAGED_OBJECTS = "objects are damaged or missing; to list them: git fsck --full"
_FIXES = (
    (
        "dubious ownership",
        "git does not trust this directory: git config --global --add safe.directory {top}",
    ),
    ("index file", _RESET_INDEX),
    ("bad signature", _RESET_INDEX),
    (
        "index.lock",
        "another git process is running or has crashed: if none is running, remove {index}.lock",
    ),
    ("cannot lock ref", "another git process is running, or a branch name conflicts"),
    ("object file", _DAMAGED_OBJECTS),
    ("bad object", _DAMAGED_OBJECTS),
    ("bad tree", _DAMAGED_OBJECTS),
    ("unable to read", _DAMAGED_OBJECTS),
    ("inflate:", _DAMAGED_OBJECTS),
    ("loose object", _DAMAGED_OBJECTS),
    ("nonexistent object", _DAMAGED_OBJECTS),
    ("packfile", _DAMAGED_OBJECTS),
    ("invalid object", _DAMAGED_OBJECTS),
    ("Not a valid", _DAMAGED_OBJECTS),
    ("not a git repository", "the repository is damaged; for details: git fsck --full"),
    (
        "transport",
        "objects are only on the remote, which Holdfast never contacts; to get them: git fetch",
    ),
)


NO_REFLOG = ("core.logAllRefUpdates=false",)
"""For Holdfast's own references."""


class GitFailed(ComponentProblem):
    """A failed command: git's message, and what to do about it."""

    def __init__(self, message: str, fix: str | None = None) -> None:
        super().__init__(message if fix is None else f"{message}; {fix}")


class Git:
    """Runs commands in one repository; `timeout_s` is the limit for a step of several commands."""

    def __init__(
        self,
        repository: Repository,
        environment: Mapping[str, str],
        timeout_s: float,
        variables: Mapping[str, bytes] | None = None,
    ) -> None:
        """`variables` lead git to another index, working tree or repository."""
        self.repository = repository
        # A step has several commands, which together must end before the caller gives up.
        self._timeout_s = timeout_s / _COMMANDS_OF_A_STEP
        self._variables = environment
        self._environment = _clean(environment, repository)
        self._environment |= {n: os.fsdecode(value) for n, value in (variables or {}).items()}

    def run(
        self,
        *arguments: str | bytes,
        given: bytes = b"",
        config: Sequence[str] = (),
        as_user: bool = False,
    ) -> bytes:
        """The standard output; `GitFailed` for a status other than 0."""
        import subprocess  # late: most saves find that nothing in git has changed

        command = self._command(arguments, config)
        environment = self._environment
        if as_user:
            named = {n: self._variables[n] for n in _IDENTITY if n in self._variables}
            environment = {**environment, **named}
        try:
            done = subprocess.run(
                command,
                input=given,
                capture_output=True,
                cwd=self.repository.top,
                env=environment,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git {_shown(arguments)} took too long and was stopped") from None
        except OSError as error:
            raise GitFailed(f"git cannot be run: {error.strerror}") from None
        if done.returncode != 0:
            raise self.failure(arguments, done.stderr)
        return done.stdout

    def start(self, *arguments: str, config: Sequence[str] = (), errors: int) -> Popen[bytes]:
        """A running process, for input that is too large to pass at once; `errors` is a file for
        its error output."""
        import subprocess

        command = self._command(arguments, config)
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self.repository.top,
                env=self._environment,
            )
        except OSError as error:
            raise GitFailed(f"git cannot be run: {error.strerror}") from None

    def _command(
        self, arguments: Sequence[str | bytes], config: Sequence[str]
    ) -> list[str | bytes]:
        settings = [part for setting in (*_CONFIG, *config) for part in ("-c", setting)]
        return [find_git(self._variables), "--no-pager", *settings, *arguments]

    def require_own_repository(self) -> None:
        """Require that git uses this repository, and no other."""
        seen = self.run("rev-parse", "--absolute-git-dir").rstrip(b"\n")
        if not os.path.samefile(seen, self.repository.git_dir):
            raise GitFailed(f"git uses {os.fsdecode(seen)} instead", "see: git fsck")

    def damaged_index(self) -> str:
        """What git would report of an index if it verified all of it."""
        return _RESET_INDEX.format(index=os.fsdecode(self.repository.own(b"index")))

    def failure(self, arguments: Sequence[str | bytes], errors: bytes) -> GitFailed:
        said = errors.decode("utf-8", "replace")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        chosen = next((x for x in lines if x.startswith(("fatal:", "error:"))), "")
        line = "".join(c for c in (chosen or "it failed") if c.isprintable())[:300]
        top, index = os.fsdecode(self.repository.top), os.fsdecode(self.repository.own(b"index"))
        for sign, fix in _FIXES:
            if sign in said:
                return GitFailed(line, fix.format(top=top, index=index))
        return GitFailed(f"git {_shown(arguments)}: {line}")


def find_git(environment: Mapping[str, str]) -> str:
    for directory in environment.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(directory, "git")
        if os.path.isabs(directory) and os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    raise GitFailed(
        "git is not installed", f"install git, or turn its component off: {LEAVE_GIT_OUT}"
    )


def _clean(environment: Mapping[str, str], repository: Repository) -> dict[str, str]:
    kept = {n: environment[n] for n in (*_KEPT, *_KEPT_OF_GIT) if n in environment}
    return kept | {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_SSH_COMMAND": "false",
        "GIT_ASKPASS": "false",
        "GIT_EDITOR": "false",
        "GIT_PAGER": "cat",
        "GIT_ATTR_NOSYSTEM": "1",
        # If the repository is broken, git must not use the next one above it.
        "GIT_CEILING_DIRECTORIES": os.path.dirname(os.fsdecode(repository.top)),
    }


def _shown(arguments: Sequence[str | bytes]) -> str:
    return os.fsdecode(arguments[0])

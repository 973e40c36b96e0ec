"""Runs `git commit` as the user would: their hooks, identity, signature, editor and terminal.

This is the only git command that runs with the user's configuration, because the user asked for a
commit. It gets a scratch index, so it commits only that. Variables that would lead it to another
repository are removed from its environment.

On Ctrl-C or a time limit, git is ended with all its child processes:

    stop all of them, until no new one appears → kill the children, and wait for them
    → ask git to end, which removes its lock files → kill it if it does not

They are not a process group of their own, because a signature may ask for a passphrase in the
shared terminal. Without /proc, only git itself is ended; nothing waits for the rest.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping

from holdfast.components.git.commands import Git, find_git
from holdfast.components.git.repository import Repository
from holdfast.domain.errors import Refused
from holdfast.domain.git.commits import without_comments
from holdfast.ports.repository import CommitWish

_PATIENCE_S = 10.0


def end_with_children(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    stopped: set[int] = set()
    while found := {process.pid, *_descendants(process.pid)} - stopped:
        for pid in found:
            _send(pid, signal.SIGSTOP)
        stopped |= found
    _kill(stopped - {process.pid})
    _send(process.pid, signal.SIGTERM)
    _send(process.pid, signal.SIGCONT)
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kill(pids: set[int]) -> None:
    """Kill and wait for processes that are not Holdfast's own children."""
    handles = [handle for pid in pids if (handle := _handle(pid)) is not None]
    try:
        for pid in pids:
            _send(pid, signal.SIGKILL)
        for handle in handles:
            ended = select.poll()
            ended.register(handle, select.POLLIN)
            ended.poll(_PATIENCE_S * 1000)
    finally:
        for handle in handles:
            os.close(handle)


def _handle(pid: int) -> int | None:
    """A handle that becomes readable when the process has ended."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None  # the process has ended, or the system has no such call


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants(pid: int) -> set[int]:
    children: dict[int, list[int]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return set()
    for name in names:
        if name.isdigit() and (above := _parent(name)) is not None:
            children.setdefault(above, []).append(int(name))
    found: set[int] = set()
    pending = [pid]
    while pending:
        below = children.get(pending.pop(), [])
        found.update(below)
        pending += below
    return found


def _parent(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            # The program's name is in parentheses, and may contain anything.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


_ELSEWHERE = (
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES "
    "GIT_COMMON_DIR GIT_NAMESPACE GIT_PREFIX GIT_CEILING_DIRECTORIES GIT_LITERAL_PATHSPECS"
).split()
_SHOWN_CHARACTERS = 2000
_STANDARD_ERROR = 2


def run_commit(
    git: Git,
    environment: Mapping[str, str],
    index: bytes,
    message_file: bytes,
    wish: CommitWish,
) -> bool:
    """Returns whether it had to be ended because a hook took too long: there may be a commit or
    not. `Refused`, with the message of git or a hook, if there is none for another reason."""
    edit = wish.edit
    comment = comment_string(git) if edit else ""
    with open(message_file, "w", encoding="utf-8", newline="\n") as file:
        file.write(without_comments(wish.message, comment))
    how = ("--edit", "--cleanup=strip") if edit else ("--no-edit", "--cleanup=whitespace")
    arguments = [find_git(environment), "commit", "--quiet", *how, "-F", os.fsdecode(message_file)]
    variables = {name: value for name, value in environment.items() if name not in _ELSEWHERE}
    variables["GIT_INDEX_FILE"] = os.fsdecode(index)
    # Output goes to a file, because a process left by a hook could keep a pipe open forever.
    with tempfile.TemporaryFile() as output:
        # An editor needs the terminal; its output must not mix with Holdfast's answer.
        process = subprocess.Popen(
            arguments,
            cwd=git.repository.top,
            env=variables,
            stdin=None if edit else subprocess.DEVNULL,
            stdout=_STANDARD_ERROR if edit else output,
            stderr=None if edit else subprocess.STDOUT,
        )
        if not has_ended(process, None if edit else wish.timeout_s):
            end_with_children(process)
            return True
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip()
    if process.returncode != 0:
        raise _refusal(git.repository, said)
    return False


def has_ended(process: subprocess.Popen[bytes], timeout_s: float | None) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    except BaseException:
        end_with_children(process)
        raise
    return True


def comment_string(git: Git) -> str:
    """The start of a comment line in an edited message; empty if git chooses it itself."""
    value = "#"
    for row in git.run("config", "-z", "--list").split(b"\0"):
        key, _, text = row.partition(b"\n")
        if key in (b"core.commentchar", b"core.commentstring"):
            value = text.decode("utf-8", "replace")
    return "" if value == "auto" else value


def _refusal(repository: Repository, said: str) -> Refused:
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in said[-_SHOWN_CHARACTERS:])
    why = f": {text}" if text else "; the message was empty, or a hook refused it"
    hint = "nothing was changed; fix the problem and run accept again"
    if "tell me who you are" in text.lower() or "ident" in text.lower():
        hint = "nothing was changed; set git config user.name and user.email"
    return Refused(f"git made no commit{why}", hint=hint)

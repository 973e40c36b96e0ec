"""Running `git commit` as the user would: their hooks, identity, signature, editor and terminal.

The one command of Holdfast that runs what the user has configured, because that is what is asked
for. It is given a scratch index, so it commits that and nothing else; variables that would lead it
to another repository are taken out of its environment.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from holdfast.components.git.commands import Git, find_git
from holdfast.components.git.finding import Repository
from holdfast.domain.commit_messages import without_comments
from holdfast.domain.errors import Refused

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
    message: str,
    *,
    edit: bool,
) -> None:
    """`Refused`, with what git or a hook said, when there is no commit."""
    comment = comment_string(git) if edit else ""
    with open(message_file, "w", encoding="utf-8", newline="\n") as file:
        file.write(without_comments(message, comment))
    how = ("--edit", "--cleanup=strip") if edit else ("--no-edit", "--cleanup=whitespace")
    arguments = [find_git(environment), "commit", "--quiet", *how, "-F", os.fsdecode(message_file)]
    variables = {name: value for name, value in environment.items() if name not in _ELSEWHERE}
    variables["GIT_INDEX_FILE"] = os.fsdecode(index)
    if edit:
        # The editor needs the terminal; what it prints must not mix with an answer of ours.
        done = subprocess.run(
            arguments, cwd=git.repository.top, env=variables, stdout=_STANDARD_ERROR, check=False
        )
        said = ""
    else:
        captured = subprocess.run(
            arguments,
            cwd=git.repository.top,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        done, said = captured, captured.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0:
        raise _refusal(git.repository, said)


def comment_string(git: Git) -> str:
    """How a comment begins in a message that is edited; nothing where git chooses it itself."""
    value = "#"
    for row in git.run("config", "-z", "--list").split(b"\0"):
        key, _, text = row.partition(b"\n")
        if key in (b"core.commentchar", b"core.commentstring"):
            value = text.decode("utf-8", "replace")
    return "" if value == "auto" else value


def _refusal(repository: Repository, said: str) -> Refused:
    text = "".join(c if c.isprintable() or c == "\n" else " " for c in said[-_SHOWN_CHARACTERS:])
    why = f": {text}" if text else "; the message was empty, or a hook refused it"
    hint = "nothing was changed; correct what it says and accept again"
    if "tell me who you are" in text.lower() or "ident" in text.lower():
        hint = "nothing was changed; say who you are: git config user.name, git config user.email"
    return Refused(f"git made no commit{why}", hint=hint)

"""`holdfast completion SHELL`: a script that makes the shell complete commands and checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterator

from holdfast.api.workspace import Workspace
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError, UsageError
from holdfast.domain.ids import short
from holdfast.domain.paths import to_text
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import ago, first_line, shortened

ANSWERS = True
AGENT_WARNING = False
_MOST = 200
_LONGEST = 60


def configure(parser: Parser) -> None:
    parser.usage = "holdfast completion bash | zsh | fish"
    parser.description = """\
Print a completion script for your shell. It completes commands, options, checkpoints, sessions,
settings and paths, including deleted files.

Load it when the shell starts, as in the examples, so that it matches the installed version."""
    parser.epilog = """\
examples:
  $ echo 'eval "$(holdfast completion bash)"' >> ~/.bashrc
  $ echo 'eval "$(holdfast completion zsh)"' >> ~/.zshrc      # after compinit
  $ holdfast completion fish > ~/.config/fish/completions/holdfast.fish"""
    parser.add_argument("words", nargs="*", metavar="SHELL", help="bash, zsh or fish")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.completion_scripts import SHELLS, Kind, script

    words = invocation.all_words
    if words and words[0] in (Kind.CHECKPOINT, Kind.SESSION, Kind.PATH):
        return _list_candidates(invocation, Kind(words[0]), words[1:])
    invocation.at_most(1, "one shell")
    if not words:
        raise UsageError("missing shell", hint="usage: holdfast completion bash, zsh or fish")
    if words[0] not in SHELLS:
        raise UsageError(
            f"no completion for {words[0]!r}", hint=f"supported shells: {', '.join(SHELLS)}"
        )
    if invocation.json:
        from holdfast.api.views.setup import CompletionScriptView

        invocation.emit(CompletionScriptView(shell=words[0], script=script(words[0])))
    else:
        invocation.terminal.write(script(words[0]))
    return 0


def _list_candidates(invocation: Invocation, kind: str, words: list[str]) -> int:
    """What the scripts ask while somebody types: one candidate a line, then a tab and what it is.
    Nothing is changed and nothing is waited for. After an error there are no candidates."""
    from holdfast.interfaces.cli.completion_scripts import Kind

    try:
        with invocation.open(passive=True) as opened:
            if kind == Kind.PATH:
                found = list(_paths(invocation, opened, words[0] if words else ""))
            elif kind == Kind.SESSION:
                found = list(_sessions(opened))
            else:
                found = list(_checkpoints(invocation, opened))
    except HoldfastError:
        return 0
    if invocation.json:
        from holdfast.api.views.setup import CandidateView

        invocation.emit([CandidateView(value=value, description=said) for value, said in found])
        return 0
    for value, said in found:
        invocation.terminal.line(f"{value}\t{said}")
    return 0


def _checkpoints(invocation: Invocation, opened: Workspace) -> Iterator[tuple[str, str]]:
    """Ways to write HEAD first, then names, then ids, each newest first."""
    scope = invocation.scope(opened)
    found = opened.history.checkpoints(scope, limit=_MOST)
    if not found:
        return
    yield "HEAD", "the newest state"
    yield from ((f"HEAD~{n}", "") for n in range(1, min(len(found), 4)))
    yield "initial", "the first checkpoint"
    named = [one for one in found if one.name is not None and one.name.isprintable()]
    yield from ((str(one.name), _describe(invocation, one)) for one in named)
    yield from ((short(one.id), _describe(invocation, one)) for one in found)


def _sessions(opened: Workspace) -> Iterator[tuple[str, str]]:
    for session in reversed(opened.sessions.listed()):
        said = session.title or opened.sessions.status(session).value
        yield str(session.id), visible(said)


def _paths(invocation: Invocation, opened: Workspace, typed: str) -> Iterator[tuple[str, str]]:
    """What HEAD has there, even if it is gone from the disk."""
    head = opened.head(invocation.scope(opened))
    directory, begun = os.path.split(typed)
    if head is None:
        return
    [inside] = invocation.paths([directory or "."], opened.path) or [b""]
    for name, entry in opened.contents.names(head, inside):
        text = to_text(name)
        if text.startswith(begun) and text.isprintable():
            slash = "/" if isinstance(entry, DirectoryEntry) else ""
            yield os.path.join(directory, text) + slash, ""


def _describe(invocation: Invocation, one: Checkpoint) -> str:
    reason = visible(shortened(first_line(one.intent.reasoning), _LONGEST))
    return f"{ago(one.created_at, invocation.now)}: {reason}"

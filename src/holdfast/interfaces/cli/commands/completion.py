"""`holdfast completion SHELL`: a script that makes the shell complete commands and checkpoints."""

from __future__ import annotations

from importlib import import_module

from holdfast.domain.errors import HoldfastError, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

ANSWERS = True
AGENT_WARNING = False


def configure(parser: Parser) -> None:
    parser.usage = "holdfast completion bash | zsh | fish"
    parser.description = """\
Print a script that makes the shell complete commands, options, checkpoints with their names and
ids, sessions, settings and paths, also of files that are gone from the disk. It is made from the
commands of this version: print it anew after an upgrade, or let the shell do so when it starts, as
below."""
    parser.epilog = """\
examples:
  $ echo 'eval "$(holdfast completion bash)"' >> ~/.bashrc
  $ echo 'eval "$(holdfast completion zsh)"' >> ~/.zshrc      # after compinit
  $ holdfast completion fish > ~/.config/fish/completions/holdfast.fish"""
    parser.add_argument("words", nargs="*", metavar="SHELL", help="bash, zsh or fish")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.completion.grammar import SHELLS, Kind, verbs

    words = invocation.all_words
    if words and words[0] in (Kind.CHECKPOINT, Kind.SESSION, Kind.PATH):
        return _list_candidates(invocation, Kind(words[0]), words[1:])
    invocation.at_most(1, "one shell")
    if not words:
        raise UsageError("the shell is missing", hint="use: holdfast completion bash, zsh or fish")
    if words[0] not in SHELLS:
        raise UsageError(
            f"there is no completion for {words[0]!r}", hint=f"there is for: {', '.join(SHELLS)}"
        )
    script = import_module(f"holdfast.interfaces.cli.completion.{words[0]}").script(verbs())
    if invocation.json:
        invocation.emit({"shell": words[0], "script": script})
    else:
        invocation.terminal.write(script)
    return 0


def _list_candidates(invocation: Invocation, kind: str, words: list[str]) -> int:
    """What the scripts ask while somebody types; there is nobody to read an error."""
    from holdfast.interfaces.cli.completion import candidates
    from holdfast.interfaces.cli.completion.grammar import Kind

    try:
        with invocation.open(passive=True) as opened:
            if kind == Kind.PATH:
                found = list(candidates.paths(invocation, opened, words[0] if words else ""))
            elif kind == Kind.SESSION:
                found = list(candidates.sessions(invocation, opened))
            else:
                found = list(candidates.checkpoints(invocation, opened))
    except HoldfastError:
        return 0
    if invocation.json:
        invocation.emit([{"value": value, "description": said} for value, said in found])
        return 0
    for value, said in found:
        invocation.terminal.line(f"{value}\t{said}")
    return 0

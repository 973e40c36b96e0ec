"""`holdfast completion SHELL`: a script that lets the shell complete commands and checkpoints.

--install writes it to the directory where the shell looks for it:

    bash  $BASH_COMPLETION_USER_DIR or $XDG_DATA_HOME/bash-completion, completions/holdfast
    zsh   $XDG_DATA_HOME/zsh/site-functions/_holdfast, a directory that `fpath` must name
    fish  $XDG_CONFIG_HOME/fish/completions/holdfast.fish

Guarantees: a file that Holdfast did not write is never replaced. The new file replaces the old one
atomically.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError, Refused, UsageError
from holdfast.domain.ids import short
from holdfast.domain.paths import to_text
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import visible
from holdfast.interfaces.cli.wording import ago, headline

if TYPE_CHECKING:
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint

ANSWERS = True
AGENT_WARNING = False
_MOST = 200
_OURS = b"holdfast: completion for "
_NEXT_STEPS = {
    "bash": "Open a new shell. It needs the package bash-completion.",
    "zsh": "Add its directory to fpath before compinit, then open a new shell:"
    " fpath=(~/.local/share/zsh/site-functions $fpath)",
    "fish": "Open a new shell.",
}
_LONGEST = 60


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast completion bash | zsh | fish\n"
        "       holdfast completion [bash | zsh | fish] --install [--dry-run]"
    )
    parser.description = """\
Make the shell complete commands, options, checkpoints, sessions, settings and paths, including
deleted files that a checkpoint has. --install writes the completion file to the directory where
the shell looks for it. Without --install the script is printed."""
    parser.epilog = """\
examples:
  $ holdfast completion --install
  $ holdfast completion zsh --install --dry-run
  $ echo 'eval "$(holdfast completion bash)"' >> ~/.bashrc"""
    parser.add_argument(
        "--install", action="store_true", help="write the file; the shell is $SHELL unless named"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what --install would do")
    parser.add_argument("words", nargs="*", metavar="SHELL", help="bash, zsh or fish")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.completion_scripts import SHELLS, Kind, script

    words = invocation.all_words
    if words and words[0] in (Kind.CHECKPOINT, Kind.SESSION, Kind.PATH):
        return _list_candidates(invocation, Kind(words[0]), words[1:])
    invocation.at_most(1, "one shell")
    options = invocation.options
    if options.dry_run and not options.install:
        raise UsageError(
            "--dry-run needs --install", hint="holdfast completion --install --dry-run"
        )
    if not words and options.install:
        words = [os.path.basename(os.environ.get("SHELL", ""))]
    if not words or not words[0]:
        raise UsageError(
            "missing shell", hint="usage: holdfast completion bash, zsh or fish [--install]"
        )
    if words[0] not in SHELLS:
        raise UsageError(
            f"no completion for {words[0]!r}", hint=f"supported shells: {', '.join(SHELLS)}"
        )
    if options.install:
        return _install(invocation, words[0])
    if invocation.json:
        from holdfast.api.views.setup import CompletionScriptView

        invocation.emit(CompletionScriptView(shell=words[0], script=script(words[0])))
    else:
        invocation.terminal.write(script(words[0]))
    return 0


def _install(invocation: Invocation, shell: str) -> int:
    """Write the file that the shell loads. An identical file is kept."""
    dry_run = invocation.options.dry_run
    target = _target(shell)
    changed = _write_script(shell, target, dry_run=dry_run)
    if invocation.json:
        from holdfast.api.views.setup import CompletionInstallView

        invocation.emit(
            CompletionInstallView(shell=shell, file=str(target), changed=changed, dry_run=dry_run)
        )
        return 0
    terminal = invocation.terminal
    path = terminal.path(os.fsencode(target))
    if not changed:
        terminal.line(f"✓ {path} is up to date.")
    elif dry_run:
        terminal.line(f"would write {path}")
    else:
        terminal.line(f"✓ Wrote {path}")
        terminal.line(f"  {_NEXT_STEPS[shell]}")
    return 0


def _target(shell: str) -> Path:
    environment = os.environ
    if not environment.get("HOME"):
        raise Refused("HOME is not set", hint=f"print the script: holdfast completion {shell}")
    home = Path(environment["HOME"])
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "bash":
        chosen = environment.get("BASH_COMPLETION_USER_DIR", "").partition(":")[0]
        return Path(chosen or data / "bash-completion") / "completions" / "holdfast"
    if shell == "zsh":
        return data / "zsh" / "site-functions" / "_holdfast"
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "fish" / "completions" / "holdfast.fish"


def _write_script(shell: str, target: Path, *, dry_run: bool) -> bool:
    """Write the file, unless `dry_run`. Returns whether it differs from this version's script."""
    from holdfast.interfaces.cli.completion_scripts import script

    wanted = script(shell).encode()
    try:
        present = target.read_bytes()
    except FileNotFoundError:
        present = None
    if present == wanted:
        return False
    if present is not None and _OURS not in present[:200]:
        raise Refused(
            f"{target} exists and was not written by Holdfast",
            hint=f"move it away, or print the script: holdfast completion {shell}",
        )
    if not dry_run:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_bytes(wanted)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    return True


def _list_candidates(invocation: Invocation, kind: str, words: list[str]) -> int:
    """Answer the scripts' queries while the user types: one candidate per line, with a description
    after a tab. Changes nothing, waits for nothing, and after an error offers no candidates."""
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
    """Forms of HEAD first, then names, then ids, each newest first."""
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
    """Paths in HEAD, even if they are gone from the disk."""
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
    return f"{ago(one.created_at, invocation.now)}: {headline(one.intent.reasoning, _LONGEST)}"

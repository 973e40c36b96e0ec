"""`holdfast init`: make the store of a workspace, or say where it is."""

from __future__ import annotations

from pathlib import Path

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, GREEN, visible


def configure(parser: Parser) -> None:
    parser.usage = "holdfast init [-C DIR] [--force] [--json]"
    parser.description = """\
Make the store of a workspace and the marker that ties the two together. The store lies outside
the workspace, under HOLDFAST_HOME or the user's data directory, where no clean-up of the workspace
can reach it. The marker is the directory .holdfast in the workspace; it ignores itself for git.

Running it again changes nothing. It is never needed: the first checkpoint makes the store too."""
    parser.epilog = """\
example:
  $ holdfast init -C ~/projects/shop
  Holdfast protects /home/ada/projects/shop
  The store is /home/ada/.local/share/holdfast/stores/1d6c…"""


def run(invocation: Invocation) -> int:
    from holdfast.bootstrap import nearest_workspace

    known = nearest_workspace(invocation.directory)
    with invocation.open(create=True, exact=True) as opened:
        workspace = opened.engine.vault.workspace
        store = opened.store.directory
    created = known != workspace
    if invocation.json:
        invocation.emit({"workspace": str(workspace), "store": str(store), "created": created})
        return 0
    terminal = invocation.terminal
    word = "protects" if created else "already protects"
    terminal.line(f"{terminal.paint('✓', GREEN)} Holdfast {word} {visible(str(workspace))}")
    terminal.line(f"  The store is {visible(str(store))}")
    if created and known is not None:
        terminal.line(_inside(known))
    terminal.line(terminal.paint('  Save it: holdfast checkpoint "why"', DIM))
    return 0


def _inside(outer: Path) -> str:
    return f"  It lies in {visible(str(outer))}, which stays a workspace of its own."

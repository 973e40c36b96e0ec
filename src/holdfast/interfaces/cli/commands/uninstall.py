"""`holdfast uninstall`: remove an agent's hooks."""

from __future__ import annotations

from functools import partial

from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.commands.install import (
    add_scope,
    chosen_scope,
    save_around,
    show,
    workspace_of,
)
from holdfast.interfaces.cli.invocation import Invocation

AGENT_WARNING = False


def configure(parser: Parser) -> None:
    parser.usage = "holdfast uninstall AGENT [--project | --user] [--dry-run]"
    parser.description = """\
Remove from the agent's settings everything that holdfast install added, including the MCP server
and skills. Nothing else is changed. Holdfast files that you edited are kept and listed, and the
exit status is then 3. Your checkpoints are kept; the output shows how to delete them. --dry-run
shows the difference and writes nothing."""
    parser.epilog = """\
example:
  $ holdfast uninstall claude-code"""
    parser.add_argument("words", nargs="*", metavar="AGENT", help="the agent whose hooks to remove")
    add_scope(parser)


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.agent_setup.installation import require_agent, uninstall

    agent = require_agent(invocation.all_words)
    scope, workspace = chosen_scope(invocation), workspace_of(invocation)
    act = partial(uninstall, agent, scope, workspace)
    done = save_around(invocation, f"holdfast uninstall {agent}", workspace, act)
    return show(invocation, agent, done, "uninstalled")

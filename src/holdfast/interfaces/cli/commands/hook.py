"""`holdfast hook`: answer an event of an agent."""

from __future__ import annotations

from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

AGENT_WARNING = False


def configure(parser: Parser) -> None:
    parser.usage = "holdfast hook AGENT [EVENT] < EVENT.json"
    parser.description = f"""\
Read one event of an agent as JSON from standard input, save the workspace if the agent is about to
change it, and print the answer that the agent expects. EVENT names the event where the JSON does
not. Agents call this; holdfast install sets it up. AGENT is one of:
{", ".join(AGENTS)}.

It returns when the checkpoint is durable. Events after a change are answered at once. The exit
status is always 0 and the answer never stops the agent, whatever happens: what could not be saved
is written to hooks.log beside the stores, and holdfast status tells it."""
    parser.epilog = """\
example:
  $ holdfast hook claude-code < event.json"""
    parser.add_argument("words", nargs="*", metavar="AGENT", help="who sends the event")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.hooks.in_process import answer

    directory = invocation.options.directory
    where = ["-C", directory] if directory is not None else []
    return answer([*invocation.all_words, *where], own_process=False)

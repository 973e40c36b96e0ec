"""`holdfast hook`: handle an agent event."""

from __future__ import annotations

from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation

AGENT_WARNING = False


def configure(parser: Parser) -> None:
    parser.usage = "holdfast hook AGENT [EVENT] < EVENT.json"
    parser.description = f"""\
Handle one agent event. Agents call this; holdfast install sets it up. It reads the event as JSON
from standard input, saves the workspace if the agent is about to change it, and prints the answer
that the agent expects. EVENT is the event name, if the JSON does not contain it. AGENT is one of:
{", ".join(AGENTS)}.

The command returns when the checkpoint is safely on disk. Events after a change are answered
immediately. It never blocks the agent: the exit status is always 0. Failures are logged to
hooks.log next to the stores, and holdfast status shows them."""
    parser.epilog = """\
example:
  $ holdfast hook claude-code < event.json"""
    parser.add_argument("words", nargs="*", metavar="AGENT", help="the agent that sends the event")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.hooks.in_process import answer

    directory = invocation.options.directory
    where = ["-C", directory] if directory is not None else []
    return answer([*invocation.all_words, *where], own_process=False)

"""`holdfast doctor`: find problems with the setup, and how to fix them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import HoldfastError
from holdfast.interfaces.agents import AGENTS
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.terminal import DIM, YELLOW, visible
from holdfast.interfaces.cli.wording import count
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.domain.repair_plan import Symptom
    from holdfast.interfaces.agent_setup.protection import Protection

ANSWERS = True
AGENT_WARNING = False


def configure(parser: Parser) -> None:
    parser.usage = "holdfast doctor"
    parser.description = """\
Check the setup: the store, permissions, disk space and budget, file systems, inotify limits,
SQLite, locks, leftovers of interrupted operations, git, the clock, and the hooks and MCP servers of
your agents. Each problem comes with a fix. Nothing is changed.

The exit status is 0 if everything is fine, and 3 if there are problems. To verify the content of
the store, use holdfast check."""
    parser.epilog = """\
example:
  $ holdfast doctor"""


def _agents(invocation: Invocation) -> Iterator[Symptom]:
    """A line per agent with installed hooks, and one for events that they could not save."""
    from holdfast.api.stores import workspace_with_store
    from holdfast.domain.repair_plan import Gravity, Symptom
    from holdfast.interfaces.agent_setup.protection import examine_servers, protections
    from holdfast.interfaces.hooks.runtime_files import problem_log

    directory = invocation.directory.absolute()
    workspace = workspace_with_store(directory) or directory
    installed = protections(workspace, _last_events(workspace), now=invocation.now)
    if not installed:
        cure = f"protect one: holdfast install {AGENTS[0]} (or another one)"
        yield Symptom("agents", Gravity.NOTE, "no agent is protected here", cure)
    for found in installed:
        one = _with_test_event(found, workspace)
        gravity = Gravity.FINE if one.cure is None else Gravity.WARNING
        if not one.protected:
            gravity = Gravity.NOTE if one.removed_by_user else Gravity.PROBLEM
        finding = one.finding if one.protected else f"not protected: {one.finding}"
        subject = f"{one.agent} ({one.scope})" if one.scope else one.agent
        yield Symptom(subject, gravity, finding, one.cure)
    for server in examine_servers(workspace):
        gravity = Gravity.FINE if server.cure is None else Gravity.WARNING
        yield Symptom(f"{server.agent} MCP ({server.scope})", gravity, server.finding, server.cure)
    hooks_log = problem_log(os.environ)
    problems = hooks_log.problems_of(workspace, invocation.now - timedelta(days=1))
    if problems:
        finding = f"{count(len(problems), 'event')} could not be saved: {problems[-1].message}"
        yield Symptom(
            "hooks", Gravity.WARNING, finding, "see " + ", ".join(map(str, hooks_log.files()))
        )


def _with_test_event(one: Protection, workspace: Path) -> Protection:
    """Run a test event, because an existing program may fail to run."""
    from holdfast.interfaces.agent_setup.installation import try_hook

    if one.program is None or not one.protected:
        return one
    try:
        took = try_hook(one.agent, one.program, workspace)
    except HoldfastError as error:
        finding = error.message.removesuffix("; nothing was changed")
        cure = f"holdfast install {one.agent} --{one.scope}"
        return replace(one, protected=False, finding=finding, cure=cure)
    if one.cure is not None:
        return one
    return replace(one, finding=f"{one.finding}; a test event ran in {took} ms")


def _last_events(workspace: Path) -> dict[str, datetime]:
    """Empty if the store is unreadable; its problems are reported elsewhere."""
    from holdfast.api.workspace import open_workspace

    try:
        with open_workspace(workspace, create=False, purpose="holdfast doctor") as opened:
            return opened.sessions.last_checkpoint_by_agent()
    except (HoldfastError, OSError):
        return {}


def run(invocation: Invocation) -> int:
    from holdfast.api.health import examine_surroundings
    from holdfast.domain.repair_plan import Gravity

    invocation.at_most(0)
    symptoms = [
        *examine_surroundings(invocation.directory),
        *_agents(invocation),
    ]
    sound = (Gravity.FINE, Gravity.NOTE)
    found = [symptom for symptom in symptoms if symptom.gravity not in sound]
    if invocation.json:
        from holdfast.api.views.health import symptoms_view

        invocation.emit(symptoms_view(symptoms, ok=not found))
        return PARTIAL if found else 0
    terminal = invocation.terminal
    marks = {
        Gravity.FINE: terminal.tick,
        Gravity.NOTE: terminal.paint("-", YELLOW),
        Gravity.WARNING: terminal.paint("!", YELLOW),
        Gravity.PROBLEM: terminal.cross,
    }
    for symptom in symptoms:
        mark = marks[symptom.gravity]
        terminal.sentence(f"{mark} {symptom.subject}: {visible(symptom.finding)}")
        if symptom.cure is not None and symptom.gravity is not Gravity.FINE:
            terminal.sentence(f"    {visible(symptom.cure)}", DIM)
    if found:
        terminal.sentence(f"{count(len(found), 'problem')}; the line below each one shows the fix")
        return PARTIAL
    terminal.sentence("No problems found")
    return 0

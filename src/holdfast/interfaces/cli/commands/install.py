"""`holdfast install`: install hooks that save before an agent changes anything."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import SETUP_TAG
from holdfast.domain.errors import HoldfastError, NotFound, UsageError
from holdfast.domain.paths import MARKER_DIRECTORY
from holdfast.interfaces.agents import AGENTS, agent_named, every_agent
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import PARTIAL, Invocation
from holdfast.interfaces.cli.terminal import DIM, visible

if TYPE_CHECKING:
    from holdfast.api.views.setup import InstallationView
    from holdfast.interfaces.agent_setup.installation import Installation

AGENT_WARNING = False


def configure(parser: Parser) -> None:
    with_plugins = " and ".join(agent.title for agent in every_agent() if agent.plugin_files())
    parser.usage = (
        "holdfast install AGENT [--project | --user] [--mcp] [--skills] [--plugin DIR] [--dry-run]"
    )
    parser.description = f"""\
Install the hooks that save the workspace before an agent changes it. AGENT is one of:
{", ".join(AGENTS)}.

--project (the default) installs for this workspace, --user for all your projects. Only Holdfast's
own lines are added to the settings; comments, order and formatting stay. Running it again changes
nothing. The hook command is tested before anything is written.

--mcp also registers the MCP server (holdfast mcp) under the name holdfast. If you changed that
entry, it is kept. --skills adds the skills /checkpoint, /checkpoints, /restore, /rollback,
/checkpoint-delete, /checkpoint-cleanup and the /replay family. --plugin DIR writes a plug-in for
{with_plugins} to DIR instead, with hooks, skills and the MCP server. --dry-run shows the
difference and writes nothing."""
    parser.epilog = """\
examples:
  $ holdfast install claude-code
  $ holdfast install codex --user --mcp --dry-run"""
    parser.add_argument("words", nargs="*", metavar="AGENT", help="the agent to protect")
    add_scope(parser)
    parser.add_argument("--mcp", action="store_true", help="also register the MCP server")
    parser.add_argument("--skills", action="store_true", help="add skills that you call by name")
    parser.add_argument("--plugin", metavar="DIR", help="write a plug-in directory instead")


def add_scope(parser: Parser) -> None:
    parser.add_argument("--project", action="store_true", help="for this workspace (the default)")
    parser.add_argument("--user", action="store_true", help="for all your projects")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the difference, and write nothing"
    )


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.agent_setup.installation import install, require_agent

    agent = require_agent(invocation.all_words)
    options = invocation.options
    if options.plugin is not None:
        return _plugin(invocation, agent)
    scope, workspace = chosen_scope(invocation), workspace_of(invocation)
    act = partial(
        install, agent, scope, workspace, with_skills=options.skills, with_mcp=options.mcp
    )
    done = save_around(invocation, f"holdfast install {agent}", workspace, act)
    return show(invocation, agent, done, "installed")


def save_around(
    invocation: Invocation, what: str, workspace: Path, act: Callable[..., Installation]
) -> Installation:
    """If there is a store, save before and after, with this name. `undo` then neither reverts the
    change together with an edit nor reports it as a deletion."""
    if invocation.options.dry_run or _store(workspace) is None:
        return act(dry_run=invocation.options.dry_run)
    planned = [change.path for change in act(dry_run=True).changes if change.differs]
    if not any(path.is_relative_to(workspace) for path in planned):
        return act(dry_run=False)
    trouble = _save(invocation, f"Before {what}")
    done = act(dry_run=False)
    trouble = trouble or _save(invocation, what)
    return replace(done, notes=(*done.notes, trouble)) if trouble else done


def _store(workspace: Path) -> Path | None:
    """None also if the store has problems, which other commands report."""
    from holdfast.api.stores import store_directory

    try:
        return store_directory(workspace)
    except HoldfastError:
        return None


def _save(invocation: Invocation, reason: str) -> str | None:
    """The problem, which does not prevent the installation; None also without a store."""
    from holdfast.domain.intent import make_intent

    try:
        with invocation.open() as opened:
            session = invocation.session(opened, create=True)
            opened.save(session, make_intent(reason, tags=(SETUP_TAG,)), reuse=True)
    except NotFound:
        return None
    except HoldfastError as error:
        return f"could not save the workspace: {error.message}"
    return None


def chosen_scope(invocation: Invocation) -> str:
    if invocation.options.project and invocation.options.user:
        raise UsageError("--project cannot be used with --user")
    return "user" if invocation.options.user else "project"


def workspace_of(invocation: Invocation) -> Path:
    """The workspace that contains the directory, or the directory itself."""
    from holdfast.api.stores import workspace_for

    return workspace_for(invocation.directory)


def show(invocation: Invocation, agent: str, done: Installation, word: str) -> int:
    dry_run = invocation.options.dry_run
    changed = [change for change in done.changes if change.word != "unchanged"]
    kept = any(change.kept for change in changed)
    if invocation.json:
        invocation.emit(_view(agent, chosen_scope(invocation), done, dry_run=dry_run))
        return PARTIAL if kept else 0
    terminal = invocation.terminal
    if dry_run:
        for change in changed:
            terminal.write("".join(visible(line) + "\n" for line in change.diff.splitlines()))
    else:
        for change in changed:
            terminal.sentence(f"  {change.word:<9} {visible(str(change.path))}")
    for note in done.notes:
        terminal.note(f"note: {visible(note)}")
    if not changed and word == "uninstalled":
        place = "in this project" if chosen_scope(invocation) == "project" else "for your user"
        terminal.sentence(f"Nothing to do: {agent} is not installed {place}")
    elif not changed:
        terminal.sentence(f"Nothing to do: {agent} is already {word}")
    elif kept:
        terminal.sentence(f"{agent}: {word}, except for the files listed above")
    elif not dry_run:
        terminal.sentence(f"{terminal.tick} {agent}: {word}")
        if word == "installed" and done.withheld is None:
            terminal.sentence(
                "  Holdfast now saves before the agent changes anything. To go back: holdfast undo"
            )
            terminal.sentence(
                "  Files that .gitignore names, such as .env, are not saved until a tool names "
                "them. To save them: holdfast config add include .env"
            )
    if changed and not dry_run and word == "uninstalled":
        _show_remains(invocation)
    if done.test_event_ms is not None:
        ran = f"verified: a test event ran in {done.test_event_ms} ms"
        terminal.sentence(f"{terminal.tick} {ran}")
        if done.withheld is not None:
            terminal.warn(f"not protected yet: {visible(done.withheld.reason)}")
            terminal.sentence(f"  {visible(done.withheld.cure)}")
        elif changed:
            terminal.sentence("  Restart the agent.", DIM)
    return PARTIAL if kept else 0


def _view(agent: str, scope: str, done: Installation, *, dry_run: bool) -> InstallationView:
    from holdfast.api.views.setup import FileChangeView, InstallationView, WithheldView

    held = done.withheld
    return InstallationView(
        agent=agent,
        scope=scope,
        files=[
            FileChangeView(path=str(one.path), change=one.word, diff=one.diff)
            for one in done.changes
        ],
        dry_run=dry_run,
        verified=None if done.test_event_ms is None else True,
        test_event_ms=done.test_event_ms,
        withheld=None if held is None else WithheldView(reason=held.reason, cure=held.cure),
        notes=list(done.notes),
    )


def _show_remains(invocation: Invocation) -> None:
    """Show what remains of Holdfast in this workspace, and how to remove it too."""
    workspace = workspace_of(invocation)
    store = _store(workspace)
    if store is None:
        return
    marker = workspace / os.fsdecode(MARKER_DIRECTORY)
    if (marker / "config.toml").exists():
        marker /= "workspace.json"
    commands = [shlex.join(("rm", "-rf", str(store), str(marker)))]
    if (workspace / ".git").exists():
        git = shlex.join(("git", "-C", str(workspace)))
        refs = f"--format='delete %(refname)' refs/holdfast/{store.name}"
        commands.append(f"{git} for-each-ref {refs} | {git} update-ref --stdin")
    terminal = invocation.terminal
    terminal.sentence("  Your checkpoints are kept: holdfast log.")
    terminal.sentence("  To delete every checkpoint of this workspace for good:")
    for command in commands:
        terminal.line(f"  {visible(command)}")  # on one line, to be copied
    home = visible(str(store.parent.parent))
    terminal.sentence(f"  Other projects' checkpoints and the token for programs stay in {home}.")
    terminal.sentence("  A running daemon stops when it is idle for daemon_idle minutes.")


def _plugin(invocation: Invocation, agent: str) -> int:
    from holdfast.interfaces.agent_setup.shipped_files import write_plugin

    if not agent_named(agent).plugin_files():
        others = " and ".join(one.name for one in every_agent() if one.plugin_files())
        raise UsageError(f"plug-ins are only for {others}")
    target = invocation.directory / Path(invocation.options.plugin).expanduser()
    written = write_plugin(target, dry_run=invocation.options.dry_run)
    if invocation.json:
        from holdfast.api.views.setup import PluginView

        paths = [str(path) for path in written]
        dry_run = invocation.options.dry_run
        view = PluginView(agent=agent, plugin=str(target), files=paths, dry_run=dry_run)
        invocation.emit(view)
        return 0
    for path in written:
        invocation.terminal.sentence(f"  {visible(str(path))}")
    return 0

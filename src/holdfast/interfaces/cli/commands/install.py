"""`holdfast install`: let an agent's hooks save before it changes anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.errors import UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, GREEN, visible

if TYPE_CHECKING:
    from holdfast.interfaces.agent_setup.installation import Installation


_LEFT = 3
"""Done in part: something of ours is left, and named."""


def configure(parser: Parser) -> None:
    parser.usage = "holdfast install AGENT [--project | --user] [--mcp] [--skills] [--dry-run]"
    parser.description = """\
Write the hooks that save the workspace before an agent changes it into the settings of AGENT:
claude-code, codex, gemini, cursor, copilot, opencode, cline or goose. --project (the default)
writes into the workspace, --user into the home directory, for all projects. Only lines of ours are
added; comments, order and formatting stay. Running it again changes nothing. The command is tried
once before anything is written.

--mcp also registers the MCP server, holdfast mcp, in the settings of the agent: an entry holdfast
among its servers, JSON or TOML. An entry of that name that is not as we write it is not touched.
--skills adds the skills /checkpoint, /checkpoints, /restore, /rollback, /checkpoint-delete and
/checkpoint-cleanup. --plugin DIR writes a plug-in for Claude Code and Codex into DIR instead, with
hooks, skills and the MCP server. --dry-run shows the difference and writes nothing."""
    parser.epilog = """\
examples:
  $ holdfast install claude-code
  $ holdfast install codex --user --mcp --dry-run"""
    parser.add_argument("words", nargs="*", metavar="AGENT", help="whom to protect")
    add_scope(parser)
    parser.add_argument("--mcp", action="store_true", help="register the MCP server, too")
    parser.add_argument("--skills", action="store_true", help="add skills to call by name")
    parser.add_argument("--plugin", metavar="DIR", help="write a plug-in directory instead")


def add_scope(parser: Parser) -> None:
    parser.add_argument(
        "--project", action="store_true", help="in the workspace; this is the default"
    )
    parser.add_argument("--user", action="store_true", help="for all projects of the user")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the difference, and write nothing"
    )


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.agent_setup.installation import install, require_agent

    agent = require_agent(invocation.all_words)
    options = invocation.options
    if options.plugin is not None:
        return _plugin(invocation, agent)
    done = install(
        agent,
        chosen_scope(invocation),
        workspace_of(invocation),
        with_skills=options.skills,
        with_mcp=options.mcp,
        dry_run=options.dry_run,
    )
    return show(invocation, agent, done, "installed")


def chosen_scope(invocation: Invocation) -> str:
    if invocation.options.project and invocation.options.user:
        raise UsageError("--project and --user exclude each other")
    return "user" if invocation.options.user else "project"


def workspace_of(invocation: Invocation) -> Path:
    """The workspace that the directory belongs to, or the directory itself."""
    from holdfast.workspace_choice import workspace_for

    return workspace_for(invocation.directory)


def show(invocation: Invocation, agent: str, done: Installation, word: str) -> int:
    dry_run = invocation.options.dry_run
    changed = [change for change in done.changes if change.word != "unchanged"]
    kept = any(change.kept for change in changed)
    if invocation.json:
        invocation.emit(
            {
                "agent": agent,
                "scope": chosen_scope(invocation),
                "files": [
                    {"path": str(c.path), "change": c.word, "diff": c.diff} for c in done.changes
                ],
                "dry_run": dry_run,
                "verified": None if done.test_event_ms is None else True,
                "test_event_ms": done.test_event_ms,
                "withheld": None if done.withheld is None else done.withheld._asdict(),
                "notes": list(done.notes),
            }
        )
        return _LEFT if kept else 0
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
        terminal.sentence(f"{terminal.paint('✓', GREEN)} {agent}: {word}")
        if word == "installed":
            terminal.sentence(
                "  Every state is saved before the agent changes it. Go back: holdfast undo"
            )
            terminal.sentence("  Files that git ignores are not saved: holdfast status --skipped")
    if done.test_event_ms is not None:
        ran = f"verified: a test event ran in {done.test_event_ms} ms"
        terminal.sentence(f"{terminal.paint('✓', GREEN)} {ran}")
        if done.withheld is not None:
            terminal.warn(f"not protected yet: {visible(done.withheld.reason)}")
            terminal.sentence(f"  {visible(done.withheld.cure)}")
        elif changed:
            terminal.sentence(terminal.paint("  Restart the agent.", DIM))
    return _LEFT if kept else 0


def _plugin(invocation: Invocation, agent: str) -> int:
    from holdfast.interfaces.agent_setup.plugin import write_plugin

    if agent not in ("claude-code", "codex"):
        raise UsageError("plug-ins are for claude-code and codex")
    target = invocation.directory / Path(invocation.options.plugin).expanduser()
    written = write_plugin(target, dry_run=invocation.options.dry_run)
    if invocation.json:
        paths = [str(path) for path in written]
        dry_run = invocation.options.dry_run
        invocation.emit({"agent": agent, "plugin": str(target), "files": paths, "dry_run": dry_run})
        return 0
    for path in written:
        invocation.terminal.sentence(f"  {visible(str(path))}")
    return 0

"""The verbs, what each does in one line, and the page that lists them.

Kept as plain data, so that `holdfast --help` imports no command.
"""

from __future__ import annotations

from holdfast import __version__

VERBS: dict[str, str] = {
    "init": "make the store of a workspace",
    "status": "what has changed since the last checkpoint, and what is left out",
    "checkpoint": "save the workspace with the reason",
    "log": "the checkpoints, newest first",
    "sessions": "the sessions of the workspace; rename, end, archive or delete one",
    "search": "find a moment by what was meant, said or touched",
    "show": "everything about one checkpoint",
    "diff": "what differs between checkpoints, or from the workspace",
    "why": "which step wrote each line of a file, and its reason",
    "replay": "walk through the session step by step, read-only",
    "restore": "put the workspace, or some paths, back to a checkpoint",
    "undo": "undo the last thing that happened (an agent's command, your edits, a restore)",
    "redo": "go forward again after an undo",
    "attempt": "run a command, and roll everything back if it fails",
    "annotate": "write something about a checkpoint",
    "name": "name or tag an existing checkpoint",
    "approve": "lock in the work of a round, and begin the next one",
    "reset": "throw the round away: back to what was approved last",
    "accept": "make the work of some checkpoints one commit of git",
    "delete": "drop a checkpoint from the history",
    "export": "write sessions or checkpoints into one file",
    "import": "take sessions or checkpoints in from such a file",
    "purge": "remove a path or a checkpoint for good, and prove it",
    "install": "let an agent's hooks save before it changes anything",
    "uninstall": "take those hooks out again",
    "hook": "answer an event of an agent (its hooks call this)",
    "config": "read and change settings",
    "key": "the keys of an encrypted store",
    "stats": "how much is stored, and how much space it takes",
    "check": "verify the store",
    "repair": "make a damaged store sound again",
    "cleanup": "delete expired checkpoints, and free their space",
    "doctor": "find what is wrong around the store, and the cure",
    "mcp": "serve checkpoints to agents by the Model Context Protocol",
    "completion": "let the shell complete commands, checkpoints and paths",
    "watch": "make checkpoints by itself while somebody works",
    "serve": "run the daemon that keeps workspaces watched, in the foreground",
    "demo": "watch an agent wreck a project and Holdfast bring it back",
}

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Save and look",
        (
            "checkpoint",
            "status",
            "log",
            "sessions",
            "search",
            "show",
            "diff",
            "why",
            "annotate",
            "name",
            "replay",
        ),
    ),
    ("Go back", ("undo", "restore", "redo", "attempt")),
    ("Approve", ("approve", "reset", "accept")),
    ("Keep house", ("init", "config", "key", "delete", "cleanup", "stats")),
    ("Look after the store", ("check", "repair", "doctor")),
    ("Carry away, wipe out", ("export", "import", "purge")),
    ("Protect an agent", ("install", "uninstall", "hook", "mcp", "watch", "serve")),
    ("Set up", ("completion",)),
    ("Try it", ("demo",)),
)

ANSWERING = frozenset(
    "check completion config demo diff doctor key log mcp replay search serve sessions show stats "
    "status why".split()
)
"""What they print is what they were asked for, `--quiet` or not."""

ALIASES: dict[str, str] = {
    "save": "checkpoint",
    "list": "log",
    "rewind": "restore",
    "rename": "name",
}

# Words that other tools use for the same thing, and the commands that do it here.
OTHER_WORDS: dict[str, str] = {
    "add": "checkpoint",
    "back": "undo restore",
    "backup": "export",
    "blame": "why",
    "bundle": "export",
    "changes": "status",
    "clean": "cleanup",
    "find": "search",
    "fix": "repair",
    "gc": "cleanup",
    "note": "annotate",
    "prune": "cleanup",
    "checkout": "restore",
    "commit": "checkpoint",
    "create": "checkpoint",
    "erase": "purge",
    "fsck": "check",
    "grep": "search",
    "history": "log",
    "info": "show",
    "comment": "annotate",
    "load": "import",
    "ls": "log",
    "recover": "undo restore",
    "remove": "delete",
    "revert": "undo restore",
    "rm": "delete",
    "rollback": "undo restore",
    "daemon": "serve",
    "settings": "config",
    "size": "stats",
    "snapshot": "checkpoint",
    "squash": "accept",
    "tag": "name",
    "try": "attempt",
    "verify": "check",
    "version": "--version",
    "wipe": "purge",
}

GLOBAL_NAMES = (
    *("-C", "--session", "--json", "--color", "-q", "--quiet"),
    *("--force", "-h", "--help", "--version"),
)

GLOBAL_OPTIONS = """\
Options of every command, before or after its name:
  -C DIR         work on DIR instead of the current directory
  --session ID   use this session instead of the workspace's current one
  --json         print one JSON value; errors become JSON on standard error
  --color WHEN   auto, always or never
  -q, --quiet    print errors and warnings only
  --force        accept a directory that does not look like a project
  -h, --help     help on the command
  --version      the version of Holdfast
"""


def overview() -> str:
    """The page behind `holdfast --help`."""
    parts = [
        f"holdfast {__version__}: save games for AI coding agents.",
        "",
        "usage: holdfast [-C DIR] [--session ID] [--json] COMMAND ...",
    ]
    for title, names in _GROUPS:
        parts += ["", f"{title}:"]
        parts += [f"  {name:<12} {VERBS[name]}" for name in names]
    parts += [
        "",
        GLOBAL_OPTIONS.rstrip(),
        "",
        "Examples:",
        "  holdfast undo",
        "  holdfast restore HEAD --dry-run",
        '  holdfast checkpoint "before the refactor"',
        "",
        "Aliases: " + ", ".join(f"{name} = {verb}" for name, verb in ALIASES.items()),
        "More: holdfast help COMMAND",
        "      holdfast help references | paths | exit-codes | environment | lost-keys",
    ]
    return "\n".join(parts) + "\n"

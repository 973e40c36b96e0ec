"""The verbs, what each does in one line, and the page that lists them.

Kept as plain data, so that `holdfast --help` imports no command.
"""

from __future__ import annotations

from holdfast import __version__

VERBS: dict[str, str] = {
    "init": "create the store for a workspace",
    "status": "where you are, what is unsaved, what happened last, what to do next",
    "checkpoint": "save the workspace, with a reason",
    "log": "list checkpoints, newest first",
    "sessions": "list sessions; rename, end, archive or delete one",
    "search": "search reasons, messages and paths",
    "show": "show one checkpoint in full, or a file as it was",
    "diff": "compare checkpoints, or a checkpoint with the workspace",
    "why": "show which step wrote each line of a file, and why",
    "replay": "step through a session, read-only",
    "restore": "put the workspace, or some paths, back to a checkpoint",
    "undo": "undo the last thing that happened (an agent's command, your edits, a restore)",
    "redo": "go forward again after an undo",
    "attempt": "run a command, and roll everything back if it fails",
    "annotate": "add a note to a checkpoint",
    "name": "name or tag an existing checkpoint",
    "approve": "approve the current round, and start the next one",
    "reset": "discard everything since the last approval",
    "accept": "squash checkpoints into one git commit",
    "delete": "delete a checkpoint",
    "export": "export sessions or checkpoints to one file",
    "import": "import sessions or checkpoints from an exported file",
    "purge": "remove a path or a checkpoint for good, and prove it",
    "install": "let an agent's hooks save before it changes anything",
    "uninstall": "remove those hooks",
    "hook": "handle an agent event (hooks call this)",
    "config": "read and change settings",
    "key": "manage the keys of an encrypted store",
    "stats": "show what is stored, and how much space it takes",
    "check": "verify the store",
    "repair": "repair a damaged store",
    "cleanup": "delete expired checkpoints, and free their space",
    "doctor": "find problems with the setup, and how to fix them",
    "mcp": "serve checkpoints to agents by the Model Context Protocol",
    "completion": "let the shell complete commands, checkpoints and paths",
    "watch": "make checkpoints automatically while you work",
    "serve": "run the daemon in the foreground",
    "demo": "watch an agent wreck a project and Holdfast bring it back",
}

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Save and inspect",
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
    ("Manage", ("init", "config", "key", "delete", "cleanup", "stats")),
    ("Maintain the store", ("check", "repair", "doctor")),
    ("Export and erase", ("export", "import", "purge")),
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

"""The list of commands, the overview page, and the help topics.

A command is a module in `commands/` and its entry here. The list is plain data, so that neither
`holdfast --help` nor a mistyped verb imports a command.
"""

from __future__ import annotations

from types import ModuleType

from holdfast import __version__

ALIASES = {"save": "checkpoint", "list": "log", "rewind": "restore", "rename": "name"}
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
TOPICS = {
    "references": """\
How to name a checkpoint

  3f2a9c81d4          an id, or its first four or more characters
  before-refactor     a name
  HEAD                the current checkpoint of the workspace
  HEAD~2              two checkpoints before it; ~2 and ^ work after any reference
  initial             the first checkpoint of the workspace
  approved            the last approved one
  @{2 hours ago}      the newest one at that time; also @{yesterday}, @{2026-11-15 09:30}
  SESSION:REF         a checkpoint of a session, by the session's id or title

  holdfast show REF:PATH      a file as it was
  holdfast diff A..B          the differences between two checkpoints

References cover every session of the workspace. --session ID limits a command to one.

Find a checkpoint: holdfast log, holdfast log PATH, holdfast search WORDS
""",
    "paths": """\
How to name files

Paths are relative to the current directory. From the workspace root: :/src/app.py

Put paths after -- if they could mean something else:

  holdfast diff HEAD -- README.md
  holdfast log -- src
""",
    "exit-codes": """\
Exit codes

  0   done
  1   a bug in Holdfast
  2   wrong usage
  3   partly done; missing parts are listed
  4   not found
  5   refused: needs --yes, a conflict, or a limit
  6   the store is damaged: holdfast check, then holdfast repair
  7   no space left, or over budget
  8   busy: another process is using the store

With --json, an error is {"error": {"code", "message", "hint"}} on standard error.
""",
    "environment": """\
Environment variables

  HOLDFAST_HOME               where stores are kept
  HOLDFAST_KEY_FILE           the key file of encrypted stores
  HOLDFAST_PASSPHRASE_FILE    a file with the passphrase of encrypted stores
  HOLDFAST_POSTGRES_URL       the PostgreSQL database to save
  HOLDFAST_<SETTING>          any setting, such as HOLDFAST_AUTO_INTERVAL=30
  HOLDFAST_DAEMON             off: hooks neither use nor start the daemon
  HOLDFAST_PAGER, PAGER       the pager for log, diff and show; cat for none
  VISUAL, EDITOR              the editor of holdfast config edit
  NO_COLOR, FORCE_COLOR       never use colours, or use them even in a pipe
  COLUMNS                     the output width
""",
    "lost-keys": """\
If you lose every key of an encrypted store

First look for another key. The key file may be on another disk or in a backup, and a store can have
a passphrase as a second key. Set HOLDFAST_KEY_FILE or HOLDFAST_PASSPHRASE_FILE to the file you
find. Your project's files are not encrypted and not affected.

Without a key, the checkpoints cannot be read. To continue with a new store, keep the old one in
case you find a key:

  1. find the store's directory: the error message shows it
  2. move that directory elsewhere
  3. holdfast init --new-store --encrypt --key-file ~/keys/new.key
""",
}


class Verb:
    """A one-line summary of a command, and the words that other tools use for it."""

    __slots__ = ("known_as", "summary")

    def __init__(self, summary: str, *, known_as: str = "") -> None:
        self.summary, self.known_as = summary, known_as


GROUPS: dict[str, dict[str, Verb]] = {
    "Save and inspect": {
        "checkpoint": Verb(
            "save the workspace, with a reason", known_as="add commit create snapshot"
        ),
        "status": Verb(
            "show unsaved changes, the last change, and what to do next",
            known_as="changes",
        ),
        "log": Verb("list checkpoints, newest first", known_as="history ls"),
        "sessions": Verb("list sessions; rename, end, archive or delete one"),
        "search": Verb("search reasons, messages and paths", known_as="find grep"),
        "show": Verb("show one checkpoint in full, or a file as it was", known_as="info"),
        "diff": Verb("compare checkpoints, or a checkpoint with the workspace"),
        "why": Verb("show which step wrote each line of a file, and why", known_as="blame"),
        "annotate": Verb("add a note to a checkpoint", known_as="note comment"),
        "name": Verb("name or tag an existing checkpoint", known_as="tag"),
        "replay": Verb("step through a session, read-only"),
    },
    "Go back": {
        "undo": Verb(
            "undo the last change (an agent's command, your edits, a restore)",
            known_as="back recover revert rollback",
        ),
        "restore": Verb(
            "restore the workspace, or some paths, to a checkpoint",
            known_as="back checkout recover revert rollback",
        ),
        "redo": Verb("go forward again after an undo"),
        "attempt": Verb("run a command, and roll everything back if it fails", known_as="try"),
    },
    "Approve": {
        "approve": Verb("approve the current round, and start the next one"),
        "reset": Verb("discard everything since the last approval"),
        "accept": Verb("squash checkpoints into one git commit", known_as="squash"),
    },
    "Manage": {
        "init": Verb("create the store for a workspace"),
        "config": Verb("read and change settings", known_as="settings"),
        "key": Verb("manage the keys of an encrypted store"),
        "delete": Verb("delete a checkpoint", known_as="remove rm"),
        "cleanup": Verb(
            "delete expired checkpoints, and free their space", known_as="clean gc prune"
        ),
        "stats": Verb("show what is stored, and how much space it takes", known_as="size"),
    },
    "Maintain the store": {
        "check": Verb("verify the store", known_as="fsck verify"),
        "repair": Verb("repair a damaged store", known_as="fix"),
        "doctor": Verb("find problems with the setup, and how to fix them"),
    },
    "Export and erase": {
        "export": Verb("export sessions or checkpoints to one file", known_as="backup bundle"),
        "import": Verb("import sessions or checkpoints from an exported file", known_as="load"),
        "purge": Verb(
            "remove a path or a checkpoint for good, and prove it", known_as="erase wipe"
        ),
    },
    "Protect an agent": {
        "install": Verb("save automatically before an agent changes anything"),
        "uninstall": Verb("remove the hooks of an agent"),
        "hook": Verb("handle an agent event (hooks call this)"),
        "mcp": Verb("run the MCP server for agents"),
        "watch": Verb("save automatically while you work"),
        "daemon": Verb("run the daemon in the foreground"),
    },
    "Look in a browser": {
        "ui": Verb("open the web page", known_as="dashboard web"),
        "serve": Verb("run the HTTP API and the web page"),
    },
    "Set up": {
        "completion": Verb("install or print shell completion"),
    },
    "Try it": {
        "demo": Verb("watch an agent delete a project's code, and Holdfast bring it back"),
    },
}

_COMMON = {
    "Go back": ("undo", "redo", "restore"),
    "See what happened": ("status", "log", "diff", "search", "why"),
    "Save, keep or discard": ("checkpoint", "approve", "reset"),
    "Set up": ("install", "demo"),
}
"""The commands for daily use, shown on the first page."""

VERBS: dict[str, Verb] = {name: verb for group in GROUPS.values() for name, verb in group.items()}


def command_module(verb: str) -> ModuleType:
    """The module of a command, imported now."""
    from importlib import import_module

    return import_module(f"holdfast.interfaces.cli.commands.{verb}")


def verbs_known_as(word: str) -> list[str]:
    """The commands that other tools call by this word."""
    return [name for name, verb in VERBS.items() if word in verb.known_as.split()]


def overview() -> str:
    """The page of `holdfast --help`: the common commands."""
    parts = _heading()
    for title, names in _COMMON.items():
        parts += _group(title, {name: VERBS[name] for name in names})
    parts += [
        "",
        "Examples:",
        "  holdfast undo",
        "  holdfast restore HEAD --dry-run",
        '  holdfast checkpoint "before the refactor"',
        "",
        "More: holdfast help COMMAND",
        "      holdfast help all          every command and the options they share",
        f"      holdfast help {' | '.join(TOPICS)}",
    ]
    return "\n".join(parts) + "\n"


def full_overview() -> str:
    """The page of `holdfast help all`."""
    parts = _heading()
    for title, group in GROUPS.items():
        parts += _group(title, group)
    parts += [
        "",
        GLOBAL_OPTIONS.rstrip(),
        "",
        "Aliases: " + ", ".join(f"{alias} = {name}" for alias, name in ALIASES.items()),
        "More: holdfast help COMMAND",
        f"      holdfast help {' | '.join(TOPICS)}",
    ]
    return "\n".join(parts) + "\n"


def _heading() -> list[str]:
    return [
        f"holdfast {__version__}: undo for AI coding agents.",
        "",
        "usage: holdfast [-C DIR] [--session ID] [--json] COMMAND ...",
    ]


def _group(title: str, group: dict[str, Verb]) -> list[str]:
    lines = [f"  {name:<12} {verb.summary}" for name, verb in group.items()]
    return ["", f"{title}:", *lines]

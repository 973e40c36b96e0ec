"""Pages of `holdfast help TOPIC` that are not about one command."""

from __future__ import annotations

TOPICS = {
    "references": """\
How to name a checkpoint

  3f2a9c81d4          an id, or the beginning of one
  before-refactor     a name
  HEAD                the checkpoint that the workspace is at
  HEAD~2              two checkpoints before it
  initial             the first checkpoint of the session
  approved            the last approved one
  @{2 hours ago}      the newest one at that time; also @{yesterday}, @{2026-11-15 09:30}
  SESSION:REF         a checkpoint of a session, by the session's id or title

  holdfast show REF:PATH      a file as it was
  holdfast diff A..B          what differs between two checkpoints

Every session of the workspace is looked through. --session ID limits a command to one.
Find a checkpoint: holdfast log, holdfast log PATH, holdfast search WORDS
""",
    "paths": """\
How to name files

Paths are relative to the current directory. From the top of the workspace: :/src/app.py
Paths stand behind -- where they could be taken for something else:

  holdfast diff HEAD -- README.md
  holdfast log -- src
""",
    "exit-codes": """\
Exit codes

  0   done
  1   a bug in Holdfast
  2   wrong usage
  3   done in part; what is missing is listed
  4   not found
  5   refused: needs --yes, a conflict, or a limit
  6   the store is damaged: holdfast check, then holdfast repair
  7   no space left, or over budget
  8   busy: another process is using the store

With --json, an error is {"error": {"code", "message", "hint"}} on standard error.
""",
    "environment": """\
Variables

  HOLDFAST_HOME               where stores are kept
  HOLDFAST_KEY_FILE           the key file of encrypted stores
  HOLDFAST_PASSPHRASE_FILE    a file with the passphrase of encrypted stores
  HOLDFAST_<SETTING>          any setting, such as HOLDFAST_AUTO_INTERVAL=30
  HOLDFAST_PAGER, PAGER       the pager for log, diff and show; cat for none
  VISUAL, EDITOR              the editor of holdfast config edit
  NO_COLOR, FORCE_COLOR       colours never, or even in a pipe
  COLUMNS                     the width to lay out for
""",
    "lost-keys": """\
When every key of an encrypted store is lost

First look for another key: the key file may be on another disk or in a backup, and a store
can have a passphrase as a second key. Name them in HOLDFAST_KEY_FILE or
HOLDFAST_PASSPHRASE_FILE. Your project's files are not encrypted and not affected.

Without any key, nobody can read the checkpoints in the store. To go on with a new store,
keep the old one in case a key turns up:

  1. find the directory of the store: it is named in the error of every command
  2. move that directory to another place
  3. holdfast init --new-store --encrypt --key-file ~/keys/new.key
""",
}

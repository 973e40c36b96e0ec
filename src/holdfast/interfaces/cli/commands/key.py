"""`holdfast key`: the keys that open an encrypted store."""

from __future__ import annotations

from holdfast.domain.errors import Refused, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.passphrases import (
    add_new_key_options,
    new_secret,
    wants_new_key,
    way_to_new_key,
)
from holdfast.interfaces.cli.terminal import DIM, GREEN, visible

ANSWERS = True
ACTIONS = {"list": 0, "add": 0, "change": 0, "remove": 1}


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast key [list | add | change | remove ID] [--key-file PATH | --passphrase-file PATH]"
    )
    parser.description = """\
The keys that open an encrypted store: key files and passphrases, each of which opens all of it.
add gives the store one more, change puts a new one in the place of the one that was used now, and
remove takes one away. A new key comes from --key-file or --passphrase-file; without either, a
passphrase is asked for.

Content is not written again: the store has a key of its own, and only that is wrapped anew.
Somebody who kept an old copy of the store can still open that copy with a key from then."""
    parser.epilog = """\
examples:
  $ holdfast key list
  $ holdfast key add --key-file ~/keys/second.key
  $ holdfast key change
  $ holdfast key remove 5be1f02a"""
    parser.add_argument(
        "words", nargs="*", metavar="KEY ACTION", help="list, add, change or remove"
    )
    add_new_key_options(parser)


def run(invocation: Invocation) -> int:
    action, *words = invocation.all_words or ["list"]
    if action not in ACTIONS or len(words) != ACTIONS[action]:
        raise UsageError(
            f"key does not take {' '.join([action, *words])!r}",
            hint="use: key list, key add, key change, key remove ID",
        )
    if action in ("list", "remove") and wants_new_key(invocation):
        raise UsageError(f"key {action} takes no new key", hint="see: holdfast key --help")
    with invocation.open() as opened:
        keys, used = opened.keys, opened.keys.used
        if used is None:
            raise Refused(
                f"the store of {opened.path} is not encrypted: it has no keys",
                hint="encryption is chosen when a store is made: holdfast init --encrypt",
            )
        if action in ("add", "change"):
            secret = new_secret(invocation)(opened.path)
            (keys.add if action == "add" else keys.change)(secret)
        elif action == "remove":
            keys.remove(words[0])
        slots = keys.all()
    listed = [{"id": slot.id, "kind": slot.kind, "used": slot.id == used} for slot in slots]
    if invocation.json:
        invocation.emit({"keys": listed})
        return 0
    terminal = invocation.terminal
    if action != "list":
        done = {"add": "Added a key", "change": "Changed the key", "remove": "Removed a key"}
        terminal.line(f"{terminal.paint('✓', GREEN)} {done[action]}")
    if action == "change" and (way := way_to_new_key(invocation)) is not None:
        terminal.line(f"  {way}")
    for slot in slots:
        note = terminal.paint("  (the one used now)", DIM) if slot.id == used else ""
        terminal.line(f"{visible(slot.id)}  {slot.kind}{note}")
    return 0

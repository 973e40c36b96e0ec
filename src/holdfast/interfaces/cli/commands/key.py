"""`holdfast key`: the keys that open an encrypted store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.domain.errors import KeyNeeded, Refused, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import ask_passphrase, can_ask
from holdfast.interfaces.cli.terminal import DIM, visible

if TYPE_CHECKING:
    from holdfast.api.stores import Secret
ANSWERS = True
ACTIONS = {
    "list": "list the keys",
    "add": "add one more key",
    "change": "replace the key that was used",
    "remove": "remove a key",
}


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
    if action not in ACTIONS or len(words) != (action == "remove"):
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
    if invocation.json:
        from holdfast.api.views.setup import keys_view

        invocation.emit(keys_view(slots, used))
        return 0
    terminal = invocation.terminal
    if action != "list":
        done = {"add": "Added a key", "change": "Changed the key", "remove": "Removed a key"}
        terminal.line(f"{terminal.tick} {done[action]}")
    if action == "change" and (way := way_to_new_key(invocation)) is not None:
        terminal.line(f"  {way}")
    for slot in slots:
        note = terminal.paint("  (the one used now)", DIM) if slot.id == used else ""
        terminal.line(f"{visible(slot.id)}  {slot.kind}{note}")
    return 0


def add_new_key_options(parser: Parser) -> None:
    parser.add_argument(
        "--key-file", metavar="PATH", help="the key is in this file, which is made if it is missing"
    )
    parser.add_argument(
        "--passphrase-file", metavar="PATH", help="the key is a passphrase, the first line of PATH"
    )


def wants_new_key(invocation: Invocation) -> bool:
    options = invocation.options
    return options.key_file is not None or options.passphrase_file is not None


def new_secret(invocation: Invocation) -> Callable[[Path], Secret]:
    """What the options name, or a passphrase that is asked for twice; called with the workspace."""
    options = invocation.options
    if options.key_file is not None and options.passphrase_file is not None:
        raise UsageError("a key is either a file or a passphrase, not both")

    def get(workspace: Path) -> Secret:
        from holdfast.api.stores import key_file_secret, passphrase_file_secret, passphrase_secret

        if options.key_file is not None:
            return key_file_secret(Path(options.key_file), workspace, os.environ)
        if options.passphrase_file is not None:
            return passphrase_file_secret(Path(options.passphrase_file))
        if not can_ask(invocation):
            raise KeyNeeded(
                "there is nobody to ask for a new passphrase",
                hint="give --key-file PATH, or --passphrase-file PATH",
            )
        first = ask_passphrase(invocation, "New passphrase: ")
        secret = passphrase_secret(first)
        if ask_passphrase(invocation, "The same again: ") != first:
            raise Refused("the two passphrases differ: nothing was changed")
        return secret

    return get


def way_to_new_key(invocation: Invocation) -> str | None:
    """What to do so that later commands find a new key that a file holds, if they do not yet."""
    options = invocation.options
    variable, named = "HOLDFAST_KEY_FILE", options.key_file
    if named is None:
        variable, named = "HOLDFAST_PASSPHRASE_FILE", options.passphrase_file
    if named is None:
        return None
    place, known = Path(named).expanduser().absolute(), os.environ.get(variable)
    if known and Path(known).expanduser().absolute() == place:
        return None
    return f"Later commands have to be told of it: export {variable}={quote(visible(str(place)))}"

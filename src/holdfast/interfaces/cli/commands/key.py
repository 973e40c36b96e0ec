"""`holdfast key`: the keys that open an encrypted store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.domain.errors import KeyNeeded, NothingSaved, Refused, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import ask_passphrase, can_ask
from holdfast.interfaces.cli.terminal import DIM, visible

if TYPE_CHECKING:
    from holdfast.api.stores import Secret
    from holdfast.api.workspace import Workspace

ANSWERS = True
ACTIONS = {
    "list": "list the keys",
    "add": "add one more key",
    "change": "replace the current key",
    "remove": "remove a key",
}


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast key [list | add | change | remove ID] [--key-file PATH | --passphrase-file PATH]"
    )
    parser.description = """\
Manage the keys of an encrypted store. A key is a key file or a passphrase, and any one key opens
the store. add adds a key, change replaces the key you used, and remove deletes one. New keys come
from --key-file or --passphrase-file; otherwise you are asked for a passphrase.

Changing keys does not re-encrypt the content. An old copy of the store can still be opened with its
old keys."""
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
            f"unknown action: key {' '.join([action, *words])!r}",
            hint="usage: key list, key add, key change, key remove ID",
        )
    if action in ("list", "remove") and wants_new_key(invocation):
        raise UsageError(f"key {action} takes no key options", hint="see: holdfast key --help")
    with _open(invocation) as opened:
        keys, used = opened.keys, opened.keys.used
        if used is None:
            raise Refused(
                f"the store of {opened.path} is not encrypted and has no keys",
                hint="only a new store can be encrypted: holdfast init --encrypt",
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
    if action == "change" and (way := new_key_hint(invocation)) is not None:
        terminal.line(f"  {way}")
    for slot in slots:
        note = terminal.paint("  (the one used now)", DIM) if slot.id == used else ""
        terminal.line(f"{visible(slot.id)}  {slot.kind}{note}")
    return 0


def _open(invocation: Invocation) -> Workspace:
    try:
        return invocation.open()
    except NothingSaved:
        from holdfast.api.stores import workspace_for

        raise NothingSaved(
            f"{workspace_for(invocation.directory)} has no store yet, so it has no keys",
            hint="create an encrypted store: holdfast init --encrypt",
        ) from None


def add_new_key_options(parser: Parser) -> None:
    parser.add_argument(
        "--key-file", metavar="PATH", help="the key file; created if it does not exist"
    )
    parser.add_argument(
        "--passphrase-file", metavar="PATH", help="a file whose first line is the passphrase"
    )


def wants_new_key(invocation: Invocation) -> bool:
    options = invocation.options
    return options.key_file is not None or options.passphrase_file is not None


def new_secret(invocation: Invocation) -> Callable[[Path], Secret]:
    """The key in the options, or a passphrase typed twice. The result is called with the
    workspace."""
    options = invocation.options
    if options.key_file is not None and options.passphrase_file is not None:
        raise UsageError("--key-file cannot be used with --passphrase-file")

    def get(workspace: Path) -> Secret:
        from holdfast.api.stores import key_file_secret, passphrase_file_secret, passphrase_secret

        if options.key_file is not None:
            return key_file_secret(Path(options.key_file), workspace, os.environ)
        if options.passphrase_file is not None:
            return passphrase_file_secret(Path(options.passphrase_file))
        if not can_ask(invocation):
            raise KeyNeeded(
                "cannot ask for a passphrase: this is not a terminal",
                hint="use --key-file PATH or --passphrase-file PATH",
            )
        first = ask_passphrase(invocation, "New passphrase: ")
        secret = passphrase_secret(first)
        if ask_passphrase(invocation, "Repeat the passphrase: ") != first:
            raise Refused("the passphrases do not match; nothing was changed")
        return secret

    return get


def new_key_hint(invocation: Invocation) -> str | None:
    """What to do so that later commands find a new key in a file; None if they already do."""
    options = invocation.options
    variable, named = "HOLDFAST_KEY_FILE", options.key_file
    if named is None:
        variable, named = "HOLDFAST_PASSPHRASE_FILE", options.passphrase_file
    if named is None:
        return None
    place, known = Path(named).expanduser().absolute(), os.environ.get(variable)
    if known and Path(known).expanduser().absolute() == place:
        return None
    return f"For later commands: export {variable}={quote(visible(str(place)))}"

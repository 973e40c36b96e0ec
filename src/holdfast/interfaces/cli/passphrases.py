"""Asking a person for a passphrase, unseen, and finding the secret that a new key is made of."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from holdfast.domain.errors import KeyNeeded, Refused, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.standard_input import can_ask
from holdfast.interfaces.cli.terminal import visible

if TYPE_CHECKING:
    from holdfast.api.keys import Secret


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
        from holdfast.api.keys import key_file_secret, passphrase_file_secret, passphrase_secret

        if options.key_file is not None:
            return key_file_secret(Path(options.key_file), workspace, os.environ)
        if options.passphrase_file is not None:
            return passphrase_file_secret(Path(options.passphrase_file))
        if invocation.json or not can_ask(invocation):
            raise KeyNeeded(
                "there is nobody to ask for a new passphrase",
                hint="give --key-file PATH, or --passphrase-file PATH",
            )
        first = ask(invocation, "New passphrase: ")
        secret = passphrase_secret(first)
        if ask(invocation, "The same again: ") != first:
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


def ask(invocation: Invocation, question: str) -> str:
    from getpass import getpass

    invocation.terminal.flush()
    try:
        return getpass(question)
    except EOFError:
        raise KeyNeeded("no passphrase was given") from None

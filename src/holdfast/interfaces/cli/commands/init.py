"""`holdfast init`: make the store of a workspace, or say where it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.domain.errors import StoreMissing, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.commands.key import (
    add_new_key_options,
    new_secret,
    wants_new_key,
    way_to_new_key,
)
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, visible

_IF_LOST = """\
  It is encrypted. Whoever loses every key of it loses what is in it: nobody can bring it back.
  Keep a copy of the key elsewhere, or add a second one: holdfast key add"""


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast init [--new-store [--no-encrypt] | --former-store]\n"
        "       holdfast init --encrypt [--key-file PATH | --passphrase-file PATH]"
    )
    parser.description = """\
Make the store of a workspace and the marker that ties the two together. The store lies outside
the workspace, under HOLDFAST_HOME or the user's data directory, where no clean-up of the workspace
can reach it. The marker is the directory .holdfast in the workspace; it ignores itself for git.

Running it again changes nothing. It is never needed: the first checkpoint makes the store too.

A workspace whose store is not there any more is refused by every command, because its checkpoints
may only be out of reach: a disk that is not mounted, another HOLDFAST_HOME. With --new-store it
gets a new, empty store; where there is one, nothing is changed. Hooks make a new store, because
they have nobody to ask; a marker that came with a clone gets one from any checkpoint. When the
store is back, --former-store uses it again.

With --encrypt everything in the store is encrypted. Its key is a file, or a passphrase that is
asked for. Later commands find a key file through HOLDFAST_KEY_FILE or the setting key_file of the
user's own file, a passphrase through HOLDFAST_PASSPHRASE_FILE or by asking. Without its key the
store is lost. A store that exists is not encrypted afterwards. A new store that replaces a missing
encrypted one is encrypted too; --no-encrypt makes it without encryption."""
    parser.epilog = """\
example:
  $ holdfast init -C ~/projects/shop
  Holdfast protects /home/ada/projects/shop
  The store is /home/ada/.local/share/holdfast/stores/1d6c…

  $ holdfast init --encrypt --key-file ~/keys/shop.key"""
    parser.add_argument(
        "--new-store", action="store_true", help="if the store is lost, start a new one"
    )
    parser.add_argument(
        "--former-store",
        action="store_true",
        help="use the store again that was missing when a new one was made",
    )
    parser.add_argument("--encrypt", action="store_true", help="make an encrypted store")
    parser.add_argument(
        "--no-encrypt",
        action="store_true",
        help="with --new-store: do not encrypt it, even if the missing store was encrypted",
    )
    add_new_key_options(parser)


def run(invocation: Invocation) -> int:
    if wants_new_key(invocation) and not invocation.options.encrypt:
        raise UsageError("a key is for an encrypted store", hint="add --encrypt")
    if invocation.options.encrypt and invocation.options.no_encrypt:
        raise UsageError("--encrypt and --no-encrypt exclude each other", hint="choose one")
    if invocation.options.former_store:
        from holdfast.api.stores import use_former_store

        use_former_store(invocation.directory.expanduser().resolve(), os.environ)
    secret = new_secret(invocation) if invocation.options.encrypt else None
    known = _known(invocation)
    new_store = invocation.options.new_store
    with invocation.open(
        create=True,
        exact=True,
        new_store=new_store,
        new_secret=secret,
        unencrypted=invocation.options.no_encrypt,
    ) as opened:
        workspace, store = opened.path, opened.store_directory
        encrypted = opened.is_encrypted
    created = known != workspace
    if invocation.json:
        from holdfast.api.views.setup import StoreView

        view = StoreView(
            workspace=str(workspace), store=str(store), created=created, encrypted=encrypted
        )
        invocation.emit(view)
        return 0
    terminal = invocation.terminal
    word = "protects" if created else "already protects"
    terminal.line(f"{terminal.tick} Holdfast {word} {visible(str(workspace))}")
    terminal.line(f"  The store is {visible(str(store))}")
    if created and encrypted:
        terminal.line(_IF_LOST)
        if (way := way_to_new_key(invocation)) is not None:
            terminal.line(f"  {way}")
    if created and known is not None:
        terminal.line(_inside(known))
    elif created:
        for line in _surroundings(workspace):
            terminal.line(line)
    terminal.line(terminal.paint('  Save it: holdfast checkpoint "why"', DIM))
    return 0


def _known(invocation: Invocation) -> Path | None:
    """The workspace there is already; one whose store is lost, here or above, is none."""
    from holdfast.api.stores import nearest_workspace

    try:
        return nearest_workspace(invocation.directory)
    except StoreMissing:
        return None


def _surroundings(workspace: Path) -> Iterator[str]:
    """What a new workspace does not cover, in case somebody expects it to."""
    from holdfast.api.stores import holds_repositories, is_project, repository_top

    top = repository_top(workspace)
    if top is not None and top != workspace:
        yield f"  It is a part of the repository {visible(str(top))}. The rest is not saved here."
    elif not is_project(workspace) and holds_repositories(workspace):
        yield "  Repositories below it are workspaces of their own and are left out. To capture"
        yield "  them here too: holdfast config set nested_repositories on"


def _inside(outer: Path) -> str:
    return f"  It lies in {visible(str(outer))}, which stays a workspace of its own."

"""`holdfast init`: create the store of a workspace, or show where it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.domain.errors import StoreMissing, UsageError
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.commands.key import (
    add_new_key_options,
    new_key_hint,
    new_secret,
    wants_new_key,
)
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import DIM, visible

_IF_LOST = """\
  The store is encrypted. If you lose every key, the data cannot be recovered.
  Keep a copy of the key elsewhere, or add a second one: holdfast key add"""


def configure(parser: Parser) -> None:
    parser.usage = (
        "holdfast init [--new-store [--no-encrypt] | --former-store]\n"
        "       holdfast init --encrypt [--key-file PATH | --passphrase-file PATH]"
    )
    parser.description = """\
Create the store for a workspace. You rarely need this: the first checkpoint creates the store too.
The store is outside the workspace, in HOLDFAST_HOME or your data directory, so deleting the
workspace does not delete it. A directory .holdfast in the workspace, which git ignores, links the
two. Running init again changes nothing.

If the store is missing, commands refuse to work, because it may be on an unmounted disk or in
another HOLDFAST_HOME. --new-store creates a new, empty store. Hooks do this automatically, and so
does the first checkpoint in a clone. If the old store comes back, --former-store uses it again.

With --encrypt, everything in the store is encrypted with a key file or a passphrase. Commands find
the key file in HOLDFAST_KEY_FILE or in the setting key_file of your user settings. They read the
passphrase from HOLDFAST_PASSPHRASE_FILE, or ask for it. Without its key, the store cannot be read.
An existing store cannot be encrypted later. A new store that replaces a missing encrypted one is
encrypted too, unless you use --no-encrypt."""
    parser.epilog = """\
example:
  $ holdfast init -C ~/projects/shop
  Holdfast protects /home/ada/projects/shop
  The store is /home/ada/.local/share/holdfast/stores/1d6c…

  $ holdfast init --encrypt --key-file ~/keys/shop.key"""
    parser.add_argument(
        "--new-store", action="store_true", help="if the store is missing, create a new one"
    )
    parser.add_argument(
        "--former-store",
        action="store_true",
        help="use the former store again, after a new one was created",
    )
    parser.add_argument("--encrypt", action="store_true", help="create an encrypted store")
    parser.add_argument(
        "--no-encrypt",
        action="store_true",
        help="with --new-store: do not encrypt it, even if the missing store was encrypted",
    )
    add_new_key_options(parser)


def run(invocation: Invocation) -> int:
    if wants_new_key(invocation) and not invocation.options.encrypt:
        raise UsageError("a key requires --encrypt", hint="add --encrypt")
    if invocation.options.encrypt and invocation.options.no_encrypt:
        raise UsageError("--encrypt cannot be used with --no-encrypt", hint="choose one")
    if invocation.options.former_store:
        from holdfast.api.stores import use_former_store

        use_former_store(invocation.directory.expanduser().resolve(), os.environ)
    secret = new_secret(invocation) if invocation.options.encrypt else None
    known = _existing_workspace(invocation)
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
        if (way := new_key_hint(invocation)) is not None:
            terminal.line(f"  {way}")
    if created and known is not None:
        outer = visible(str(known))
        terminal.line(f"  It is inside {outer}, which remains a separate workspace.")
    elif created:
        for line in _scope_notes(workspace):
            terminal.line(line)
    terminal.line('  Save it: holdfast checkpoint "why"', DIM)
    return 0


def _existing_workspace(invocation: Invocation) -> Path | None:
    """The existing workspace; None if its store, here or above, is missing."""
    from holdfast.api.stores import nearest_workspace

    try:
        return nearest_workspace(invocation.directory)
    except StoreMissing:
        return None


def _scope_notes(workspace: Path) -> Iterator[str]:
    """Lines about what the new workspace does not cover, in case the user expects it to."""
    from holdfast.api.stores import holds_repositories, is_project, repository_top

    top = repository_top(workspace)
    if top is not None and top != workspace:
        yield f"  It is part of the repository {visible(str(top))}. The rest is not saved here."
    elif not is_project(workspace) and holds_repositories(workspace):
        yield "  Repositories inside it are separate workspaces and are left out. To capture"
        yield "  them here too: holdfast config set nested_repositories on"

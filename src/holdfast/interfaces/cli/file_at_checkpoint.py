"""`show REF:PATH`: one file, link or directory as a checkpoint has it.

In a pipe, the exact bytes of a file. On a terminal, text with the colours of its language, made
harmless; what is not text is named.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, UnknownReference, UsageError
from holdfast.domain.paths import to_text
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.interfaces.cli.terminal import DIM, Terminal, visible_bytes, visible_line
from holdfast.interfaces.cli.wording import size

if TYPE_CHECKING:
    from holdfast.api.contents import Contents
    from holdfast.api.views.checkpoints import OldFileView
    from holdfast.api.workspace import Workspace
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.interfaces.cli.invocation import Invocation

_LARGEST_COLOURED_BYTES = 512_000
_LARGEST_SHOWN_BYTES = 64 << 20


def named_file(
    invocation: Invocation, opened: Workspace, word: str
) -> tuple[Checkpoint, bytes] | None:
    """The checkpoint and the path of `REF:PATH`; None where the word is no such thing."""
    for at, character in enumerate(word):
        if character != ":" or not 0 < at < len(word) - 1:
            continue
        try:
            found = invocation.resolve(opened, word[:at])
        except (UnknownReference, NotFound):
            continue
        return found, _path(invocation, opened, found, word[at + 1 :])
    return None


def _path(invocation: Invocation, opened: Workspace, found: Checkpoint, typed: str) -> bytes:
    """Relative to the current directory, or, if that has no such path, to the workspace."""
    [path] = invocation.paths([typed], opened.path) or [b""]
    if opened.contents.entry(found, path) is None:
        top = os.path.normpath(os.fsencode(typed)).lstrip(b"/")
        if opened.contents.entry(found, top) is not None:
            return top
    return path


def show_old_file(
    invocation: Invocation, opened: Workspace, found: Checkpoint, path: bytes
) -> None:
    from holdfast.domain.ids import short

    contents, terminal = opened.contents, invocation.terminal
    entry = contents.entry(found, path)
    if entry is None:
        raise NotFound(
            f"{terminal.path(path)} is not in checkpoint {short(found.id)}",
            hint=f"list its files: holdfast show {short(found.id)} --files",
        )
    if not isinstance(entry, DirectoryEntry):
        contents.require_shown(path, found)
    if invocation.json:
        invocation.emit(_as_json(contents, found, path, entry))
    elif isinstance(entry, DirectoryEntry):
        from holdfast.interfaces.cli.checkpoint_sheet import show_entries

        with invocation.paged():
            show_entries(terminal, contents.entries(found, path))
    elif isinstance(entry, SymlinkEntry):
        terminal.line(visible_bytes(entry.target))
    elif isinstance(entry, FileEntry) and not terminal.for_people:
        _write(terminal, contents, entry)
    elif isinstance(entry, FileEntry):
        with invocation.paged():
            _show(terminal, contents, path, entry)


def _write(terminal: Terminal, contents: Contents, entry: FileEntry) -> None:
    from holdfast.interfaces.cli.whole_output import whole_output

    with whole_output(terminal) as write:
        for piece in contents.read(entry):
            write(piece)


def _show(terminal: Terminal, contents: Contents, path: bytes, entry: FileEntry) -> None:
    data = _content(contents, entry) if entry.size <= _LARGEST_SHOWN_BYTES else b"\0"
    if b"\0" in data:
        said = f"binary file, {size(entry.size)}; redirect the output to write it"
        terminal.line(terminal.paint(said, DIM))
        return
    text = "\n".join(visible_line(line) for line in data.splitlines())
    if terminal.out_colour and len(data) <= _LARGEST_COLOURED_BYTES:
        from rich.console import Console
        from rich.syntax import Syntax

        theme = "ansi_light" if terminal.has_light_background else "ansi_dark"
        lexer = Syntax.guess_lexer(visible_bytes(path), text)
        console = Console(
            file=terminal.out,
            width=terminal.width,
            force_terminal=True,
            legacy_windows=False,
            highlight=False,
        )
        coloured = Syntax(text, lexer, theme=theme, background_color="default").highlight(text)
        console.print(coloured, end="", soft_wrap=True)
    elif text:
        terminal.line(text)


def _content(contents: Contents, entry: FileEntry) -> bytes:
    return b"".join(contents.read(entry))


def _as_json(contents: Contents, found: Checkpoint, path: bytes, entry: Entry) -> OldFileView:
    from holdfast.api.views.checkpoints import old_file_view

    if isinstance(entry, DirectoryEntry):
        names = (name for name, _ in contents.entries(found, path))
        return old_file_view(found, path, entry, paths=names)
    if not isinstance(entry, FileEntry):
        return old_file_view(found, path, entry)
    if entry.size > _LARGEST_SHOWN_BYTES:
        raise UsageError(
            f"{to_text(path)} has {size(entry.size)}, too much for one JSON value",
            hint="without --json, its bytes are written to standard output",
        )
    return old_file_view(found, path, entry, content=_content(contents, entry))

"""`holdfast show`: everything about one checkpoint, or with REF:PATH one old file.

A pipe gets the exact bytes of a file. A terminal gets highlighted text without control characters,
or a note if the file is not text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import NotFound, UnknownReference, UsageError
from holdfast.domain.ids import short
from holdfast.domain.paths import to_text
from holdfast.domain.restore.selections import selection_of
from holdfast.domain.story import Annotation, Message
from holdfast.domain.tool_calls import call_words
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.interfaces.cli.arguments import Parser
from holdfast.interfaces.cli.checkpoint_view import (
    change_words,
    confidence_mark,
    files_words,
    given_confidence,
    left_out_words,
)
from holdfast.interfaces.cli.invocation import Invocation
from holdfast.interfaces.cli.terminal import (
    BLUE,
    BOLD,
    CYAN,
    DIM,
    GREEN,
    YELLOW,
    Terminal,
    visible,
    visible_bytes,
    visible_line,
)
from holdfast.interfaces.cli.wording import (
    ago,
    headline,
    iso,
    moment,
    size,
    when_words,
)

if TYPE_CHECKING:
    from holdfast.api.contents import Contents
    from holdfast.api.views.checkpoints import OldFileView, ShownCheckpointView
    from holdfast.api.workspace import Workspace

ANSWERS = True
_LONGEST_MESSAGE = 120
_LARGEST_COLOURED_BYTES = 512_000
_LARGEST_SHOWN_BYTES = 64 << 20


def configure(parser: Parser) -> None:
    parser.usage = "holdfast show [REF] [--files]\n       holdfast show REF:PATH"
    parser.description = """\
Show one checkpoint: when and why it was made, the confidence, what changed, what was left out, and
its notes. REF is an id or its first characters, a name, HEAD, HEAD~n, initial, approved, or a time
such as @{2 hours ago} (default: HEAD). With --files, list every path in it.

REF:PATH shows a file as it was, or lists a directory. In a pipe, it writes the exact bytes."""
    parser.epilog = """\
examples:
  $ holdfast show before-refactor
  $ holdfast show HEAD~2 --files
  $ holdfast show HEAD~2:src/app.py
  $ holdfast show initial:data.csv > data.old.csv"""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="REF[:PATH]",
        help="the checkpoint (default: HEAD), or a file in it",
    )
    parser.add_argument("--files", action="store_true", help="list every path, mode and size")


def run(invocation: Invocation) -> int:
    from holdfast.interfaces.cli.path_arguments import path_mistaken_for_checkpoint

    words = invocation.at_most(1, "one checkpoint or one REF:PATH")
    with invocation.open() as opened:
        wanted = words[0] if words else "HEAD"
        try:
            with path_mistaken_for_checkpoint(invocation, opened, wanted, "holdfast show HEAD:{}"):
                found = invocation.resolve(opened, wanted)
        except (UnknownReference, NotFound):
            named = _named_file(invocation, opened, wanted) if ":" in wanted else None
            if named is None:
                raise
            with opened.contents.explain_deletion(named[:1], "shown"):
                _show_old_file(invocation, opened, *named)
            return 0
        entries = opened.contents.entries(found) if invocation.options.files else None
        with opened.contents.explain_deletion((found,), "shown"):
            if invocation.json:
                invocation.emit(_as_json(opened, found, entries))
            else:
                with invocation.paged():
                    _show(invocation, opened, found, entries)
    return 0


def _is_head(opened: Workspace, found: Checkpoint) -> bool:
    head = opened.head()
    return head is not None and head.id == found.id


def _is_approved(opened: Workspace, found: Checkpoint) -> bool:
    """Whether any round was approved with it, not only the last."""
    return found.id in opened.rounds.approved(found.session_id)


def _as_json(
    opened: Workspace, found: Checkpoint, entries: Iterator[tuple[bytes, Entry]] | None
) -> ShownCheckpointView:
    from holdfast.api.views.checkpoints import shown_checkpoint_view

    around = opened.conversation.around(found)
    return shown_checkpoint_view(
        found,
        is_head=_is_head(opened, found),
        is_approved=_is_approved(opened, found),
        message=around.message,
        annotations=around.annotations,
        skipped=opened.contents.skipped(found),
        components=opened.contents.component_states(found),
        entries=entries,
    )


def _show(
    invocation: Invocation,
    opened: Workspace,
    found: Checkpoint,
    entries: Iterator[tuple[bytes, Entry]] | None,
) -> None:
    """Facts, reasoning, notes and paths of a checkpoint."""
    terminal = invocation.terminal
    around = opened.conversation.around(found)
    for label, value in _facts(invocation, opened, found, around.message):
        if value:
            terminal.sentence(f"{terminal.paint(f'{label:<11}', DIM)} {value}", hang=12)
    terminal.line()
    _show_text(terminal, found.intent.reasoning)
    for call in () if found.kind.is_record else found.intent.tool_calls:
        terminal.sentence(f"    {terminal.paint('tool', DIM)} {visible(call_words(call))}")
    _show_annotations(terminal, around.annotations, invocation.now)
    if entries is not None:
        _show_entries(terminal, entries)


def _facts(
    invocation: Invocation, opened: Workspace, found: Checkpoint, message: Message | None
) -> Iterator[tuple[str, str | None]]:
    """Facts with their labels; empty if the checkpoint has none."""
    terminal, intent = invocation.terminal, found.intent
    head = terminal.paint("  HEAD", BOLD, CYAN) if _is_head(opened, found) else ""
    approved = terminal.paint("  approved", BOLD, GREEN) if _is_approved(opened, found) else ""
    yield "checkpoint", terminal.paint(found.id, CYAN) + head + approved
    yield "name", terminal.paint(visible(found.name or ""), BOLD)
    when, past = iso(found.created_at), ago(found.created_at, invocation.now)
    yield "when", f"{past} ({when})" if terminal.for_people else when
    yield "kind", found.kind.value
    session = opened.sessions.get(found.session_id)
    known = f'  "{visible(session.title)}"' if session is not None and session.title else ""
    yield "session", f"{visible(found.session_id)}{known}"
    yield "round", str(found.round)
    if found.message_index is not None:
        said = ""
        if message is not None:
            said = f", {message.role.value}: {headline(message.content, _LONGEST_MESSAGE)}"
        yield "message", f"{found.message_index + 1}{said}"
    yield "tool use", visible(found.tool_use_id or "")
    yield "parent", found.parent or "none"
    yield "restores", found.restores_from
    if (selected := selection_of(found)) is not None:
        yield "selected", ", ".join(terminal.path(path) for path in selected.paths)
    if (sure := given_confidence(found.kind, intent.confidence)) is not None:
        yield "confidence", confidence_mark(terminal, sure)
    yield "goal", visible(intent.goal_id or "")
    yield "task", visible(intent.task_id or "")
    yield "tags", ", ".join(visible(tag) for tag in intent.tags)
    yield "content", f"{files_words(found)}, {size(found.size_bytes)}"
    yield "changed", change_words(found.changed)
    if found.partial:
        partial = "partial: some paths or components could not be saved"
        yield "saved", terminal.paint(partial, YELLOW)
    for name, line in opened.contents.component_lines(found):
        yield name, visible(line)
    yield "left out", left_out_words(opened.contents.skipped(found))


def _show_text(terminal: Terminal, text: str) -> None:
    for line in text.splitlines() or [""]:
        terminal.sentence(f"    {visible(line)}", hang=4)


def _show_annotations(terminal: Terminal, notes: Sequence[Annotation], now: datetime) -> None:
    for note in notes:
        when = when_words(terminal, moment(note.at_ns), now)
        by = f" by {visible(note.author)}" if note.author else ""
        edited = f", revision {note.revision}" if note.revision > 1 else ""
        terminal.line()
        terminal.line(f"annotation {note.number}{by}, {when}{edited}", DIM)
        _show_text(terminal, note.text)


def _show_entries(terminal: Terminal, entries: Iterable[tuple[bytes, Entry]]) -> None:
    terminal.line()
    for path, entry in entries:
        terminal.line(_entry(terminal, path, entry))


def _entry(terminal: Terminal, path: bytes, entry: Entry) -> str:
    name = terminal.path(path)
    if isinstance(entry, DirectoryEntry):
        return f"{entry.mode:04o} {'-':>12} {terminal.paint(name + '/', BLUE)}"
    if isinstance(entry, SymlinkEntry):
        return f"link {'-':>12} {terminal.paint(name, CYAN)} -> {visible_bytes(entry.target)}"
    assert isinstance(entry, FileEntry)
    return f"{entry.mode:04o} {entry.size:>12} {name}"


def _named_file(
    invocation: Invocation, opened: Workspace, word: str
) -> tuple[Checkpoint, bytes] | None:
    """The checkpoint and path of `REF:PATH`; None if the word is something else."""
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
    """Relative to the current directory or, if there is no such path, to the workspace."""
    [path] = invocation.paths([typed], opened.path) or [b""]
    if opened.contents.entry(found, path) is None:
        top = os.path.normpath(os.fsencode(typed)).lstrip(b"/")
        if opened.contents.entry(found, top) is not None:
            return top
    return path


def _show_old_file(
    invocation: Invocation, opened: Workspace, found: Checkpoint, path: bytes
) -> None:
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
        invocation.emit(_file_view(contents, found, path, entry))
    elif isinstance(entry, DirectoryEntry):
        with invocation.paged():
            _show_entries(terminal, contents.entries(found, path))
    elif isinstance(entry, SymlinkEntry):
        terminal.line(visible_bytes(entry.target))
    elif isinstance(entry, FileEntry) and not terminal.for_people:
        from holdfast.interfaces.cli.long_output import whole_output

        with whole_output(terminal) as write:
            for piece in contents.read(entry):
                write(piece)
    elif isinstance(entry, FileEntry):
        with invocation.paged():
            _show_file(terminal, contents, path, entry)


def _show_file(terminal: Terminal, contents: Contents, path: bytes, entry: FileEntry) -> None:
    data = _content(contents, entry) if entry.size <= _LARGEST_SHOWN_BYTES else b"\0"
    if b"\0" in data:
        terminal.line(f"binary file, {size(entry.size)}; redirect the output to save it", DIM)
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


def _file_view(contents: Contents, found: Checkpoint, path: bytes, entry: Entry) -> OldFileView:
    from holdfast.api.views.checkpoints import old_file_view

    if isinstance(entry, DirectoryEntry):
        names = (name for name, _ in contents.entries(found, path))
        return old_file_view(found, path, entry, paths=names)
    if not isinstance(entry, FileEntry):
        return old_file_view(found, path, entry)
    if entry.size > _LARGEST_SHOWN_BYTES:
        raise UsageError(
            f"{to_text(path)} has {size(entry.size)}, too much for JSON",
            hint="leave out --json to write its bytes to standard output",
        )
    return old_file_view(found, path, entry, content=_content(contents, entry))

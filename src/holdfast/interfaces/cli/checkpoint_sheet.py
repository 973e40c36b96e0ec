"""One checkpoint in full: its facts one below the other, its reasoning, its paths."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from holdfast.domain.checkpoints import Checkpoint, Skipped
from holdfast.domain.messages import Annotation, Message
from holdfast.domain.restore.selections import selection_of
from holdfast.domain.tool_calls import call_words
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.interfaces.cli.checkpoint_view import (
    change_words,
    confidence_mark,
    files_words,
    given_confidence,
    left_out_words,
)
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
)
from holdfast.interfaces.cli.wording import ago, first_line, iso, shortened, size

_LONGEST_MESSAGE = 120


def show_sheet(
    terminal: Terminal,
    found: Checkpoint,
    skipped: Sequence[Skipped],
    *,
    is_head: bool,
    is_approved: bool,
    now: datetime,
    message: Message | None,
    session_title: str | None = None,
    components: Sequence[tuple[str, str]] = (),
) -> None:
    head = terminal.paint("  HEAD", BOLD, CYAN) if is_head else ""
    approved = terminal.paint("  approved", BOLD, GREEN) if is_approved else ""
    _fact(terminal, "checkpoint", terminal.paint(found.id, CYAN) + head + approved)
    if found.name:
        _fact(terminal, "name", terminal.paint(visible(found.name), BOLD))
    when = iso(found.created_at)
    _fact(
        terminal, "when", f"{ago(found.created_at, now)} ({when})" if terminal.for_people else when
    )
    _fact(terminal, "kind", found.kind.value)
    known = f'  "{visible(session_title)}"' if session_title else ""
    _fact(terminal, "session", f"{visible(found.session_id)}{known}")
    _fact(terminal, "round", str(found.round))
    _show_position(terminal, found, message)
    _fact(terminal, "parent", found.parent or "none")
    if found.restores_from:
        _fact(terminal, "restores", found.restores_from)
    if (selected := selection_of(found)) is not None and selected.paths:
        _fact(terminal, "selected", ", ".join(terminal.path(path) for path in selected.paths))
    if (sure := given_confidence(found.kind, found.intent.confidence)) is not None:
        _fact(terminal, "confidence", confidence_mark(terminal, sure))
    for label, value in (("goal", found.intent.goal_id), ("task", found.intent.task_id)):
        if value:
            _fact(terminal, label, visible(value))
    if found.intent.tags:
        _fact(terminal, "tags", ", ".join(visible(tag) for tag in found.intent.tags))
    _fact(terminal, "content", f"{files_words(found)}, {size(found.size_bytes)}")
    _fact(terminal, "changed", change_words(found.changed))
    if found.partial:
        _fact(terminal, "saved", terminal.paint("in part: something could not be read", YELLOW))
    for name, line in components:
        _fact(terminal, name, visible(line))
    if left_out := left_out_words(skipped):
        _fact(terminal, "left out", left_out)
    terminal.line()
    for line in found.intent.reasoning.splitlines() or [""]:
        terminal.sentence(f"    {visible(line)}", hang=4)
    for call in () if found.kind.is_record else found.intent.tool_calls:
        terminal.sentence(f"    {terminal.paint('tool', DIM)} {visible(call_words(call))}")


def _show_position(terminal: Terminal, found: Checkpoint, message: Message | None) -> None:
    """Where in the conversation it was taken, and for which use of a tool."""
    if found.message_index is not None:
        said = ""
        if message is not None:
            words = shortened(first_line(message.content), _LONGEST_MESSAGE)
            said = f", {message.role.value}: {visible(words)}"
        _fact(terminal, "message", f"{found.message_index + 1}{said}")
    if found.tool_use_id is not None:
        _fact(terminal, "tool use", visible(found.tool_use_id))


def show_annotations(terminal: Terminal, notes: Sequence[Annotation], now: datetime) -> None:
    for note in notes:
        at = datetime.fromtimestamp(note.at_ns / 1e9, tz=UTC)
        when = ago(at, now) if terminal.for_people else iso(at)
        by = f" by {visible(note.author)}" if note.author else ""
        edited = f", revision {note.revision}" if note.revision > 1 else ""
        terminal.line()
        terminal.line(terminal.paint(f"annotation {note.number}{by}, {when}{edited}", DIM))
        for line in note.text.splitlines() or [""]:
            terminal.sentence(f"    {visible(line)}", hang=4)


def show_entries(terminal: Terminal, entries: Iterable[tuple[bytes, Entry]]) -> None:
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


def _fact(terminal: Terminal, label: str, value: str) -> None:
    terminal.sentence(f"{terminal.paint(f'{label:<11}', DIM)} {value}", hang=12)

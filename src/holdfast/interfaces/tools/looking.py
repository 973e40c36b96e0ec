"""The tools that only look: list, history, show, stats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from holdfast.domain.checkpoints import Checkpoint, Kind, SkipReason
from holdfast.domain.trees.entries import DirectoryEntry
from holdfast.domain.wording import size_words
from holdfast.engine.components.breaker import degraded
from holdfast.engine.components.manifests import describe_components
from holdfast.engine.conversation.best_effort_story import BestEffortStory
from holdfast.engine.stored_objects import list_entries
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.nothing_saved import EMPTY
from holdfast.interfaces.tools.results import (
    DegradedPart,
    LineOfWork,
    Listed,
    NoteInfo,
    Shown,
    Statistics,
)
from holdfast.interfaces.tools.wording import (
    MOST_LISTED,
    bullets,
    count,
    cut,
    info,
    label,
    many_lines,
    noted,
    notes,
    one_line,
    path_text,
    row,
    said,
    within_an_answer,
)

_PAGE = 500
_MOST_NOTES = 50
_LONGEST_NOTE = 5_000


def list_checkpoints(bench: Bench, arguments: dict[str, Any]) -> Answer:
    limit: int = arguments["limit"]
    found, following = within_an_answer(_matching(bench, arguments), limit)
    head = bench.session.head
    rows = [info(checkpoint, head=head) for checkpoint in found]
    cursor = None if following is None else str(found[-1].sequence)
    if not rows:
        first = "No checkpoint matches." if bench.session.checkpoint_count else EMPTY
        return Answer(first, Listed([], None))
    lines = [row(one) for one in rows]
    if cursor:
        lines.append(f'There are more: checkpoint_list {{"cursor": "{cursor}"}}.')
    return Answer("\n".join(lines), Listed(rows, cursor))


def _matching(bench: Bench, arguments: dict[str, Any]) -> Iterator[Checkpoint]:
    kind = _kind(arguments["kind"])
    before = _cursor(arguments["cursor"])
    catalog = bench.engine.vault.catalog
    records = arguments["records"] or (kind is not None and kind.is_record)
    while True:
        page = catalog.history(bench.session_id, limit=_PAGE, records=records, before=before)
        for found in page:
            if kind in (None, found.kind) and arguments["tag"] in (None, *found.intent.tags):
                yield found
        if len(page) < _PAGE:
            return
        before = page[-1].sequence


def _kind(text: str | None) -> Kind | None:
    if text is None:
        return None
    try:
        return Kind(text)
    except ValueError:
        raise BadArguments(
            f"kind of checkpoint_list is {one_line(text)!r}, which is none",
            hint=f"kinds are: {', '.join(kind.value for kind in Kind)}",
        ) from None


def _cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadArguments(
            "cursor of checkpoint_list is not one that it gave out",
            hint="pass the next_cursor of the last answer, or leave it out for the first page",
        )
    return int(text)


def history(bench: Bench, arguments: dict[str, Any]) -> Answer:
    head = bench.session.head
    if arguments["ref"] is None and head is None:
        return Answer(EMPTY, LineOfWork([], True))
    limit: int = arguments["limit"]
    start = bench.resolve(arguments["ref"] or "HEAD")
    line, following = within_an_answer(_line(bench, start), limit)
    steps = [info(checkpoint, head=head) for checkpoint in line]
    lines: list[str] = []
    for step in steps:
        lines.append(row(step))
        rest = step.reasoning.strip().split("\n")[1:]
        lines += [f"    {one_line(part)}" for part in rest]
    if following is not None:
        lines.append(f'It goes on: checkpoint_history {{"ref": "{following.id}"}}.')
    return Answer("\n".join(lines), LineOfWork(steps, following is None))


def _line(bench: Bench, found: Checkpoint) -> Iterator[Checkpoint]:
    """Parents up to the first; records of restores are looked through."""
    catalog = bench.engine.vault.catalog
    step: Checkpoint | None = found
    while step is not None:
        if not step.kind.is_record or step is found:
            yield step
        step = catalog.checkpoint(bench.session_id, step.parent) if step.parent else None


def show(bench: Bench, arguments: dict[str, Any]) -> Answer:
    found = bench.resolve(arguments["ref"] or "HEAD")
    one = info(found, head=bench.session.head)
    skipped = [s for s in bench.engine.skipped(found) if s.reason is not SkipReason.OWN_DATA]
    left_out = notes((path.path, path.describe()) for path in skipped[:MOST_LISTED])
    intent, written = found.intent, _written(bench, found)
    parts = describe_components(bench.engine.vault, found)
    besides = [said(f"{name}: {line}") for name, line in parts[:MOST_LISTED]]
    paths: list[str] = []
    if arguments["files"]:
        load = bench.engine.vault.load_tree
        entries = list_entries(load, found.tree)
        names = (path for path, entry in entries if not isinstance(entry, DirectoryEntry))
        paths = [path_text(path) for path in islice(names, arguments["limit"])]
    lines = [
        f"Checkpoint {label(found)}, {found.kind.value}, {one.created_at}",
        f"id: {found.id}",
        f"reasoning: {many_lines(intent.reasoning)}",
        f"confidence: {intent.confidence:.2f}",
        *(f"{name}: {one_line(value)}" for name, value in _details(found)),
        (
            f"{count(found.files, 'file')}, {size_words(found.size_bytes)}; {one.added} added, "
            f"{one.modified} modified, {one.removed} removed since the one before"
        ),
        *(["It is partial: something could not be saved."] if found.partial else []),
        *(["Besides files:", *bullets(besides)] if besides else []),
        *(f"note {note.number}: {many_lines(note.text)}" for note in written),
        *noted(f"Left out ({len(skipped):,}):", left_out),
        *(["Files:", *bullets(paths, arguments["limit"])] if paths else []),
    ]
    if paths and found.files > len(paths):
        lines.append(f"  … and {found.files - len(paths):,} more; `limit` is how many are listed.")
    calls = [call if isinstance(call, str) else dict(call) for call in intent.tool_calls]
    data = Shown(
        one,
        intent.goal_id,
        intent.task_id,
        calls,
        left_out,
        len(skipped),
        paths,
        annotations=written,
        components=besides,
    )
    return Answer("\n".join(lines), data)


def _written(bench: Bench, found: Checkpoint) -> list[NoteInfo]:
    """The newest notes about a checkpoint, as far as an answer holds them."""
    told = BestEffortStory(bench.engine.vault).notes(found)[-_MOST_NOTES:]
    return [
        NoteInfo(note.number, note.revision, note.author, cut(note.text, _LONGEST_NOTE))
        for note in told
    ]


def _details(found: Checkpoint) -> Iterator[tuple[str, str]]:
    intent = found.intent
    if intent.goal_id:
        yield "goal", intent.goal_id
    if intent.task_id:
        yield "task", intent.task_id
    if intent.tags:
        yield "tags", ", ".join(intent.tags)
    if found.parent:
        yield "parent", found.parent
    if found.restores_from:
        yield "restored from", found.restores_from
    for call in intent.tool_calls:
        yield "tool call", call if isinstance(call, str) else str(dict(call))[:500]


def statistics(bench: Bench, arguments: dict[str, Any]) -> Answer:
    session = bench.session
    stats = session.stats
    text = (
        f"Session {one_line(session.session_id)} of {one_line(str(session.workspace))}: "
        f"{count(stats['checkpoints'], 'checkpoint')}, {count(stats['restores'], 'restore')}. "
        f"The store takes {size_words(stats['bytes_stored'])}; sharing equal content saves "
        f"{size_words(stats['bytes_deduped'])}."
    )
    workspace = one_line(str(session.workspace))
    parts = _degraded(bench)
    status = session.approval(look=True) if session.head is not None else None
    if status is not None:
        text += (
            f"\n{status.active.name} is the round at work; "
            + (
                "something in it is not approved yet"
                if status.has_unapproved
                else "nothing in it waits to be approved"
            )
            + ("; the workspace has changes that no checkpoint has." if status.unsaved else ".")
        )
    text += "".join(f"\nThe last checkpoint is without {p.component}: {p.reason}" for p in parts)
    data = Statistics(
        workspace=workspace,
        session_id=session.session_id,
        head=session.head,
        degraded=parts,
        active_round=status.active.name if status is not None else None,
        has_unapproved=status.has_unapproved if status is not None else None,
        unsaved=status.unsaved if status is not None else None,
        **stats,
    )
    return Answer(text, data)


def _degraded(bench: Bench) -> list[DegradedPart]:
    head, vault = bench.session.head, bench.engine.vault
    last = vault.catalog.checkpoint(bench.session_id, head) if head else None
    return [
        DegradedPart(one.name, said(one.reason), one.failures, _moment(one.left_alone_until_ns))
        for one in degraded(vault, last)
    ]


def _moment(at_ns: int | None) -> str | None:
    if at_ns is None:
        return None
    return datetime.fromtimestamp(at_ns / 1e9, tz=UTC).isoformat(timespec="milliseconds")

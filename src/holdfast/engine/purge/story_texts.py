"""Finds and replaces a text in messages, reasons and notes.

    searched  messages and their tool calls, annotations, edits with their diffs, reasons, names and
              tags of checkpoints, titles of sessions, notes of operations

Not guaranteed: ids that others refer to, such as the id that a session was started under, are kept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.ids import Digest, SessionId
from holdfast.domain.intent import NAME_MAX_LENGTH, TAG_MAX_LENGTH, SnapshotIntent
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.paths import is_within, to_text
from holdfast.domain.purges import PURGED_MARK, TextReplacement
from holdfast.domain.tool_calls import names_secret
from holdfast.engine.edits.diff import repacked_diff, unpacked_diff
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import CatalogTransaction, NewOperation, all_checkpoints

T = TypeVar("T")

_BATCH = 1000
_MOST_OBJECTS = 200
_MOST_BYTES = 64 << 10
_MOST_QUOTES = 2000
_LONG_LINE = 16
_LONG_VALUE = 8
_SHORT_SECRET = 6
_ASSIGNED = re.compile(r"""(?:export\s+)?["']?([\w.-]+)["']?\s*[=:]\s*["']?([^"']+?)["']?[,;]?\Z""")
_KEY_LIKE = re.compile(r"[\w+/.-]{12,}")


def story_parts(vault: Vault, contents: Iterable[Digest]) -> tuple[str, ...]:
    """Lines and values of content that a quotation would repeat, and that ordinary sentences do not
    contain."""
    found: dict[str, None] = {}
    for digest in sorted(contents)[:_MOST_OBJECTS]:
        text = vault.objects.read(digest)[:_MOST_BYTES].decode("utf-8", "replace")
        for line in map(str.strip, text.splitlines()):
            found |= dict.fromkeys(_parts(line))
            if len(found) >= _MOST_QUOTES:
                return tuple(found)[:_MOST_QUOTES]
    return tuple(found)


def _parts(line: str) -> Iterator[str]:
    if len(line) >= _LONG_LINE:
        yield line
    if assigned := _ASSIGNED.match(line):
        name, value = assigned[1], assigned[2].strip()
        if (len(value) >= _SHORT_SECRET and names_secret(name)) or (
            len(value) >= _LONG_VALUE and not value.isalpha()
        ):
            yield value
    for match in _KEY_LIKE.finditer(line):
        if any(c.isdigit() for c in match[0]) and any(c.isalpha() for c in match[0]):
            yield match[0]


def quoted_in(vault: Vault, parts: Sequence[str], without: Sequence[bytes]) -> Mapping[str, int]:
    """How many messages and so on quote one of the parts; edits of `without` are not counted."""
    if not parts:
        return {}
    sought = re.compile("|".join(re.escape(part) for part in parts))
    return _count(vault, lambda text: sought.search(text) is not None, without)


def count_in_story(vault: Vault, replacement: TextReplacement) -> Mapping[str, int]:
    return _count(vault, replacement.is_in)


def _count(
    vault: Vault, is_there: Callable[[str], bool], without: Sequence[bytes] = ()
) -> Mapping[str, int]:
    found = Counter[str]()
    for kind, texts in _texts(vault, without):
        found[kind] += any(map(is_there, texts))
    return +found


def _texts(vault: Vault, without: Sequence[bytes]) -> Iterator[tuple[str, Iterable[str]]]:
    if vault.has_story():
        yield from _story_texts(vault, without)
    for checkpoint in all_checkpoints(vault.catalog):
        yield "checkpoints", list(_strings(checkpoint.intent.to_dict()))
    for session in vault.catalog.sessions():
        yield "titles", [session.title or ""]
    for operation in _operations(vault):
        yield "notes", [operation.note or ""]


def _story_texts(vault: Vault, without: Sequence[bytes]) -> Iterator[tuple[str, Iterable[str]]]:
    for _, message in _paged(vault.story.messages_after, lambda row: row[0]):
        calls = _strings([c if isinstance(c, str) else dict(c) for c in message.tool_calls])
        yield "messages", [message.content, *calls]
    for note in _paged(vault.story.annotations_after, lambda note: note.sequence):
        yield "annotations", [note.text, note.author or ""]
    for activity in _paged(vault.story.activities_after, lambda activity: activity.number):
        if any(is_within(path, gone) for path in activity.paths for gone in without):
            continue
        diff = vault.story.diff_of(activity.number)
        paths = [to_text(path) for path in activity.paths]
        shown = "" if diff is None else unpacked_diff(diff)
        yield "edits", [activity.reason, activity.outcome or "", shown, *paths]


def _operations(vault: Vault) -> Iterator[Operation]:
    return _paged(vault.catalog.operations_after, lambda operation: operation.sequence)


def _paged(
    page_after: Callable[[int, int], Sequence[T]], number_of: Callable[[T], int]
) -> Iterator[T]:
    """Every row of a table, in pages."""
    last = 0
    while page := page_after(last, _BATCH):
        yield from page
        last = number_of(page[-1])


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _strings(key)
            yield from _strings(one)


def replace_in_story(vault: Vault, replacement: TextReplacement) -> Mapping[str, int]:
    """One transaction for the story and one for the catalog. If interrupted between them, a second
    request replaces the rest."""
    replaced: Mapping[str, int] = {}
    if vault.has_story():
        replaced = vault.story.replace_text(
            replacement, lambda diff: repacked_diff(diff, replacement)
        )
    return {**replaced, **_replace_in_catalog(vault, replacement)}


def _replace_in_catalog(vault: Vault, replacement: TextReplacement) -> Mapping[str, int]:
    found = Counter[str]()
    touched: set[SessionId] = set()
    rows = all_checkpoints(vault.catalog)
    taken = {(row.session_id, row.name) for row in rows if row.name is not None}
    with vault.catalog.transaction() as transaction:
        for row in all_checkpoints(vault.catalog):
            intent = _replaced(row, replacement, taken)
            if intent != row.intent:
                transaction.replace_checkpoint(replace(row, intent=intent))
                found["checkpoints"] += 1
                touched.add(row.session_id)
        for session in vault.catalog.sessions():
            if session.title is not None and replacement.is_in(session.title):
                transaction.set_session_title(session.id, replacement.text(session.title))
                found["titles"] += 1
                touched.add(session.id)
        said = (one for one in _operations(vault) if one.note and replacement.is_in(one.note))
        for one in list(said):
            transaction.set_operation_note(one.sequence, replacement.text(one.note or ""))
            found["notes"] += 1
            touched.add(one.session_id)
        _log(vault, transaction, touched)
    return found


def _log(vault: Vault, transaction: CatalogTransaction, touched: set[SessionId]) -> None:
    now_ns = vault.clock.now_ns()
    heads = {session.id: session.head for session in vault.catalog.sessions()}
    for session_id in sorted(touched):
        head = heads[session_id]
        transaction.add_operation(
            NewOperation(OperationKind.PURGE, session_id, now_ns, head_before=head)
        )


def _replaced(
    row: Checkpoint, replacement: TextReplacement, taken: set[tuple[SessionId, str]]
) -> SnapshotIntent:
    intent = row.intent
    calls = [call if isinstance(call, str) else dict(call) for call in intent.tool_calls]
    changed = replace(
        intent,
        reasoning=replacement.text(intent.reasoning),
        goal_id=intent.goal_id and replacement.text(intent.goal_id),
        task_id=intent.task_id and replacement.text(intent.task_id),
        tool_calls=tuple(json.loads(replacement.json(json.dumps(calls)))),
        tags=tuple(dict.fromkeys(replacement.text(t)[:TAG_MAX_LENGTH] for t in intent.tags)),
    )
    if intent.checkpoint_name is None or not replacement.is_in(intent.checkpoint_name):
        return changed
    # Names are unique within a session.
    wanted = name = replacement.text(intent.checkpoint_name)[:NAME_MAX_LENGTH].strip()
    number = 1
    while (row.session_id, name) in taken:
        number += 1
        name = f"{wanted[: NAME_MAX_LENGTH - len(PURGED_MARK)]} {number}"
    taken.add((row.session_id, name))
    return replace(changed, checkpoint_name=name)

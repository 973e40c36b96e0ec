"""Branches, tags and stash entries that were deleted or moved since a checkpoint, and the choice of
those to restore.

Selected by name (`idea`, `heads/idea`, `tags/v1`, `refs/heads/idea`), by pattern (`wip/*`), as
`stash` or `stash@{1}`, or as `all`. HEAD's branch is excluded, because it is restored with HEAD.
`all` and patterns also exclude branches checked out in another worktree. References that are newer
than the checkpoint stay.

The safety checkpoint records the replaced references. Undo restores exactly these, and removes the
added ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from holdfast.components.git.references import (
    HEADS,
    STASH_REF,
    TAGS,
    Head,
    decode_list,
    encode_list,
    read_all,
)
from holdfast.components.git.repository import Repository
from holdfast.components.git.stash import (
    StashEntry,
    parse_log,
    read_stash,
    with_entries,
)
from holdfast.components.git.states import (
    BRANCH,
    BRANCHES,
    REPLACED,
    STASH,
    decode_state,
    way_of,
)
from holdfast.components.git.states import TAGS as TAGS_CONTENT
from holdfast.components.git.status import read_worktrees
from holdfast.domain.component_states import EXACT, ComponentState
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.wording import printable
from holdfast.ports.component import ComponentProblem, ContentSource, Intended
from holdfast.values.classes import dataclass, field

ALL, STASH_NAME = "all", "stash"
_ENTRY = re.compile(r"stash@\{(\d{1,4})\}\Z")
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class ChangedReferences:
    """References that changed, with their old values; `now` has all current ones. `stash` are
    missing entries out of those that existed `then`, oldest first."""

    references: dict[bytes, str]
    known: Mapping[bytes, str | None]
    now: Mapping[bytes, str]
    occupied: frozenset[bytes]
    stash: list[StashEntry] = field(default_factory=list)
    stash_then: list[StashEntry] = field(default_factory=list)
    stash_now: list[StashEntry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReferenceChoice:
    """The wanted values of references, None for one that must not exist; the wanted stash entries,
    None if the stash stays; and unknown names."""

    wanted: dict[bytes, str | None] = field(default_factory=dict)
    stash: list[StashEntry] | None = None
    unknown: tuple[str, ...] = ()


def differing(
    repository: Repository, head: Head, mode: str, state: ComponentState, contents: ContentSource
) -> ChangedReferences:
    """`ComponentProblem` for lists that no capture could have made."""
    then = _list(state, contents, BRANCHES) | _list(state, contents, TAGS_CONTENT)
    now = read_all(repository).both
    with_head = _with_head(head, way_of(mode)[0], state)
    changed = {
        ref: value
        for ref, value in then.items()
        if value is not None and now.get(ref) != value and ref not in with_head
    }
    stash_then, stash_now = _stash_of(state, contents), read_stash(repository)
    there = {entry.oid for entry in stash_now}
    gone = [entry for entry in stash_then if entry.oid not in there]
    return ChangedReferences(changed, then, now, _occupied(repository), gone, stash_then, stash_now)


def _list(state: ComponentState, contents: ContentSource, name: str) -> dict[bytes, str | None]:
    if state.content(name) is None:
        return {}
    try:
        return decode_list(b"".join(contents.read(name)))
    except ValueError as error:
        raise ComponentProblem(f"the checkpoint's git data is unusable: {error}") from None


def _stash_of(state: ComponentState, contents: ContentSource) -> list[StashEntry]:
    log = b"" if state.content(STASH) is None else b"".join(contents.read(STASH))
    return parse_log(log)


def _with_head(head: Head, way: str, state: ComponentState) -> set[bytes]:
    """Branches that are restored with HEAD, or that HEAD stays on."""
    if way == EXACT:
        return set(decode_state(state).refs)
    if way == BRANCH:
        return set()
    return {ref for ref in (head.ref, head.holder) if ref is not None}


def _occupied(repository: Repository) -> frozenset[bytes]:
    rows = read_worktrees(repository)
    return frozenset(from_text(row["ref"]) for row in rows if row["ref"] and not row["here"])


def choose(
    repository: Repository, head: Head, mode: str, state: ComponentState, contents: ContentSource
) -> ReferenceChoice:
    way, names = way_of(mode)
    choice = ReferenceChoice()
    if way == EXACT and state.content(REPLACED) is not None:
        choice = _replaced(state, contents)
    if not names:
        return choice
    found = differing(repository, head, mode, state, contents)
    wanted, entries, unknown = dict(choice.wanted), set[str](), []
    for name in names:
        chosen, of_stash = list(_named(name, found)), list(_entries(name, found))
        if not chosen and not of_stash and not _is_known(name, found):
            unknown.append(name)
        wanted |= {ref: found.references[ref] for ref in chosen}
        entries.update(of_stash)
    stash = choice.stash
    if entries:
        stash = with_entries(found.stash_now, found.stash_then, entries)
    return ReferenceChoice(wanted, stash, tuple(unknown))


def _replaced(state: ComponentState, contents: ContentSource) -> ReferenceChoice:
    rows = _list(state, contents, REPLACED)
    stash = _stash_of(state, contents) if STASH_REF in rows else None
    return ReferenceChoice({ref: oid for ref, oid in rows.items() if ref != STASH_REF}, stash)


def _named(name: str, found: ChangedReferences) -> Iterator[bytes]:
    for ref in found.references:
        if name != ALL and not _fits(name, ref):
            continue
        if ref in found.occupied and (name == ALL or _PATTERN & set(name)):
            continue
        yield ref


def _entries(name: str, found: ChangedReferences) -> Iterator[str]:
    if name in (ALL, STASH_NAME):
        yield from (entry.oid for entry in found.stash)
    elif (number := _ENTRY.match(name)) is not None:
        newest_first = found.stash_then[::-1]
        yield from (entry.oid for entry in newest_first[int(number[1]) :][:1])


def _is_known(name: str, found: ChangedReferences) -> bool:
    """Whether it names an unchanged reference."""
    return name in (ALL, STASH_NAME) or any(_fits(name, ref) for ref in found.known)


def _fits(name: str, ref: bytes) -> bool:
    """By name or by pattern, because a reference may contain `[`."""
    return any(text == name or fnmatchcase(text, name) for text in _names(ref))


def _names(ref: bytes) -> tuple[str, ...]:
    full = to_text(ref)
    return full, full.removeprefix("refs/"), short_name(ref)


def short_name(ref: bytes) -> str:
    return printable(to_text(ref.removeprefix(HEADS).removeprefix(TAGS)))


def kind_of(ref: bytes) -> str:
    return "tag" if ref.startswith(TAGS) else "branch"


def replaced_by(repository: Repository, head: Head, intended: Intended) -> bytes:
    """The current values of the references that the restore will replace; empty if none."""
    if intended.contents is None:
        return b""
    try:
        choice = choose(repository, head, intended.mode, intended.state, intended.contents)
    except ComponentProblem:
        return b""  # the restore itself will report it
    if not choice.wanted and choice.stash is None:
        return b""
    now = read_all(repository).both
    rows: dict[bytes, str | None] = {ref: now.get(ref) for ref in choice.wanted}
    if choice.stash is not None:
        entries = read_stash(repository)
        rows[STASH_REF] = entries[-1].oid if entries else None
    return encode_list(rows)

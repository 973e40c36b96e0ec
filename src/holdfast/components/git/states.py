"""A repository's state in a checkpoint, as a value built from untrusted facts.

Facts may come from an imported bundle. Every name and every object is checked here, before it
reaches a repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.components.git.references import HEADS, OID, Head, is_branch_name, read_reference
from holdfast.components.git.repository import Repository
from holdfast.domain.component_states import EXACT, ComponentState
from holdfast.domain.ids import short
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.wording import count_words, printable
from holdfast.ports.component import ComponentProblem, Intended
from holdfast.values.classes import dataclass

BRANCH, REVERT, REFS = "branch", "revert", "refs"
DIRTY = "dirty"
"""The note with the number of dirty files, and the first of their workspace paths."""

INDEX, SHARED_INDEX, OPERATION = "index", "shared-index", "operation"
"""Names of the contents: the index, byte for byte; the shared file of a split index; and the files
of an operation in progress."""

BRANCHES, TAGS, TAG_OBJECTS, STASH = "branches", "tags", "tag-objects", "stash"
"""Every branch and tag with its value; the tag objects of annotated tags; and the stash log."""

REPLACED = "replaced"
"""The branches, tags and stash before a restore replaced some of them: its undo restores only
these."""


def way_of(mode: str) -> tuple[str, tuple[str, ...]]:
    """How HEAD and index are restored, and the names of other references to restore. Reference
    names contain no spaces."""
    word, _, names = mode.partition(":")
    return word, tuple(names.split())


@dataclass(frozen=True, slots=True)
class GitState:
    """`refs` are branches with their values: HEAD's, and others that a restore was about to move;
    None for one that does not exist."""

    head: Head
    refs: Mapping[bytes, str | None]
    has_index: bool
    operation: str | None


def decode_state(state: ComponentState) -> GitState:
    """`ComponentProblem` if no capture could have made this."""
    try:
        return _decode(state.facts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ComponentProblem(f"the checkpoint's git data is unusable: {error}") from None


def _decode(facts: Mapping[str, Any]) -> GitState:
    ref, commit = facts["head"]["ref"], facts["head"]["commit"]
    refs = {checked_branch(name): _oid(oid) for name, oid in facts["refs"].items()}
    if type(facts["index"]) is not bool:
        raise ValueError("it does not record whether there was an index")
    head = Head(None if ref is None else checked_branch(ref), _oid(commit))
    if head.ref is None and head.commit is None:
        raise ValueError("HEAD has no target")
    return GitState(head, refs, facts["index"], facts["operation"])


def checked_branch(text: str) -> bytes:
    """`ValueError` unless this is the full name of a branch."""
    ref = from_text(text)
    if not is_branch_name(ref):
        raise ValueError(f"{text!r:.80} is not a branch")
    return ref


def checked_oid(text: str) -> str:
    """`ValueError` unless this is an object name."""
    if not OID.match(text.encode()):
        raise ValueError(f"{text!r:.80} is not an object id")
    return text


def _oid(text: str | None) -> str | None:
    return None if text is None else checked_oid(text)


def new_branch(repository: Repository, label: str, commit: str | None) -> bytes:
    """The new branch of a restore in mode `branch`. An existing one is used if it is at the same
    commit."""
    stem = b"restore/" + short(label).encode()
    if read_reference(repository, HEADS + b"restore") is not None:
        stem = b"restore-" + short(label).encode()
    for number in range(1, 1000):
        ref = HEADS + stem + (b"-%d" % number if number > 1 else b"")
        there = read_reference(repository, ref)
        if there is None or there == commit:
            return ref
    raise ComponentProblem(f"there are already a thousand branches named {to_text(stem)}…")


def intended_refs(repository: Repository, intended: Intended | None) -> tuple[bytes, ...]:
    """Branches that a restore will move together with HEAD, so that undo can move them back."""
    if intended is None:
        return ()
    try:
        target = decode_state(intended.state)
    except ComponentProblem:
        return ()  # the restore itself will report it
    way, _ = way_of(intended.mode)
    if way == EXACT:
        return tuple(sorted(target.refs))
    if way == BRANCH:
        return (new_branch(repository, intended.label, target.head.commit),)
    return ()


_SHOWN = 5


def describe(state: ComponentState) -> Iterator[str]:
    if "head" in state.facts:
        yield from _own(state.facts, state.notes.get(DIRTY))
    elif not state.facts.get("nested"):
        yield "no repository"
    rows: Sequence[Mapping[str, Any]] = state.facts.get("nested", ())
    for row in rows[:_SHOWN]:
        said = "not captured" if "facts" not in row else "; ".join(_own(row["facts"]))
        yield f"{printable(row['path'])}: {said}"
    if len(rows) > _SHOWN:
        more = count_words(len(rows) - _SHOWN, "nested repository", "nested repositories")
        yield f"and {more} more"
    for path, why in state.facts.get("nested_left_out", ()):
        yield f"{printable(path) or 'nested repositories'}: left out, {printable(why)}"


def _own(facts: Mapping[str, Any], dirty: Any = None) -> Iterator[str]:
    """`dirty` is the capture's note, if there is one."""
    from holdfast.domain.git.drift import head_words  # late: no save describes a state

    count, files = (dirty["count"], dirty["files"]) if isinstance(dirty, Mapping) else (0, [])
    ref, commit = facts["head"]["ref"], facts["head"]["commit"]
    yield head_words(ref and ref.removeprefix("refs/heads/"), commit, count)
    if count:
        more = f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
        yield f"dirty: {', '.join(printable(name) for name in files[:_SHOWN])}{more}"
    if facts["operation"]:
        yield f"a {facts['operation']} is in progress"
    if facts["staged_count"]:
        yield f"{count_words(facts['staged_count'], 'path')} staged: {_some(facts['staged'])}"
    if facts["stash"]:
        yield f"{count_words(len(facts['stash']), 'stash entry', 'stash entries')}"
    linked = [row for row in facts["worktrees"] if not row["here"]]
    if linked:
        yield f"{count_words(len(linked), 'other worktree')}: " + ", ".join(
            printable(row["path"]) for row in linked[:_SHOWN]
        )
    moved = [row for row in facts["submodules"] if row[1] != row[2]]
    if facts["submodules"]:
        off = f", {len(moved)} not at the commit in the index" if moved else ""
        yield f"{count_words(len(facts['submodules']), 'submodule')}{off}"
    if facts["shallow"]:
        yield "a shallow clone"


def _some(rows: list[list[str]]) -> str:
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return ", ".join(f"{status} {printable(path)}" for status, path in rows[:_SHOWN]) + more

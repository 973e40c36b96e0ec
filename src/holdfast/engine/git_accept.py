"""Squashing checkpoints into a git commit: which checkpoints, which paths, and the message.

    range A..B → differences between the two trees → one commit with B's content in those paths
    → a log entry, so that the next accept begins there

The default range begins at the last accepted or approved checkpoint, else at the first one, and
ends at HEAD. On a branch without commits, everything in HEAD is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import Refused, StoreDamaged
from holdfast.domain.git.commits import AcceptOutcome, AcceptPlan, compose_message, has_own_reasons
from holdfast.domain.ids import CheckpointId, SessionId
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import join, parent
from holdfast.domain.story import Role
from holdfast.domain.trees.changes import tree_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry
from holdfast.engine.components.manifests import read_states
from holdfast.engine.conversation.conversation import BestEffortStory
from holdfast.engine.history.references import resolve
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.ports.repository import CommitWish, Content, HandOver, PathChange

_MOST_PROMPTS = 500
_RULES = (b".gitignore", b".gitattributes")


@dataclass(frozen=True, slots=True)
class AcceptRange:
    """From `start` (None: from nothing) to `end`. `checkpoints` are the ancestors of `end`,
    including itself, that are not ancestors of `start`; oldest first."""

    start: Checkpoint | None
    end: Checkpoint
    checkpoints: tuple[Checkpoint, ...]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A prepared acceptance, not yet carried out."""

    range: AcceptRange
    work: HandOver
    message: str
    warnings: tuple[str, ...] = ()


def prepare(
    vault: Vault,
    session_id: SessionId | None,
    range_text: str | None = None,
    *,
    message: str | None = None,
    co_authors: Sequence[str] = (),
) -> Acceptance:
    """`Refused` if there is no repository or the range is empty."""
    unborn = vault.open_repository().is_unborn(vault.workspace)
    chosen = choose_range(vault, session_id, range_text, everything=unborn)
    text = compose_message(
        chosen.checkpoints,
        template=vault.settings.accept_template,
        message=message,
        co_authors=co_authors,
        prompts=() if has_own_reasons(chosen.checkpoints) else _prompts(vault, chosen),
    )
    warnings = _omitted_work(vault, chosen) if range_text is None and not unborn else ()
    return Acceptance(chosen, _work(vault, chosen), text, warnings)


def plan(vault: Vault, acceptance: Acceptance) -> AcceptPlan:
    return vault.open_repository().plan_commit(acceptance.work)


def accept(vault: Vault, acceptance: Acceptance, wish: CommitWish) -> AcceptOutcome:
    """Make the commit and its log entry. The store is not locked while the user's git hooks
    run."""
    with vault.lock.hold():
        pass  # without a writable log, no commit is made
    wish = replace(wish, timeout_s=vault.settings.accept_timeout or None)
    outcome = vault.open_repository().commit(acceptance.work, wish)
    end = acceptance.range.end
    with vault.lock.hold(), vault.catalog.transaction() as transaction:
        transaction.add_operation(
            NewOperation(
                OperationKind.ACCEPT,
                end.session_id,
                vault.clock.now_ns(),
                checkpoint=end.id,
                note=outcome.commit,
            )
        )
    return outcome


def choose_range(
    vault: Vault, session_id: SessionId | None, text: str | None, *, everything: bool = False
) -> AcceptRange:
    """`A..B`, `A..`, `..B` (from nothing), or `B` alone; a name may itself have two dots."""
    if text is None or text == "..":
        end = resolve(vault, session_id, "HEAD")
        start = None if everything or text == ".." else _base(vault, end)
    else:
        before, dots, after = text.rpartition("..")
        if not dots:
            end = resolve(vault, session_id, text)
            start = None if everything else _base(vault, end)
        else:
            end = resolve(vault, session_id, after or "HEAD")
            start = resolve(vault, session_id, before) if before else None
    if start is not None and start.tree == end.tree:
        raise Refused(
            "nothing to accept: no file differs in that range",
            hint='save the current state: holdfast checkpoint "why"; or use a range: A..B',
        )
    return AcceptRange(start, end, _between(vault, start, end))


def _base(vault: Vault, end: Checkpoint) -> Checkpoint | None:
    """The newest ancestor of `end` that was accepted or approved; else the session's first
    checkpoint."""
    kinds = (OperationKind.ACCEPT, OperationKind.APPROVE)
    locked_in = {
        operation.checkpoint for operation in vault.catalog.operations(end.session_id, kinds=kinds)
    }
    for checkpoint in _ancestry(vault, end):
        if checkpoint.id in locked_in and checkpoint.tree != end.tree:
            return checkpoint
    return vault.catalog.first_checkpoint(end.session_id)


def _omitted_work(vault: Vault, chosen: AcceptRange) -> tuple[str, ...]:
    """A warning about earlier approved work that no commit contains; it needs its own range."""
    start, session_id = chosen.start, chosen.end.session_id
    first = vault.catalog.first_checkpoint(session_id)
    accepted = vault.catalog.operations(session_id, kinds=(OperationKind.ACCEPT,))
    if start is None or first is None or start.tree == first.tree:
        return ()
    if any(operation.checkpoint == start.id for operation in accepted):
        return ()
    return ("work approved earlier is not included; to include all: accept initial..HEAD",)


def _prompts(vault: Vault, chosen: AcceptRange) -> list[str]:
    """The user's messages in the range. A checkpoint's position is the last message before it, so
    the message after `end` is not included."""
    start, end = chosen.start, chosen.end
    if end.message_index is None:
        return []
    until = end.message_index + 1
    first = max(until - _MOST_PROMPTS, 0)
    if start is not None and start.session_id == end.session_id and start.message_index is not None:
        first = max(first, start.message_index + 1)
    said = BestEffortStory(vault)(
        lambda story: story.messages(end.session_id, first=first, limit=max(until - first, 0))
    )
    return [message.content for message in said if message.role is Role.USER]


def _ancestry(vault: Vault, start: Checkpoint) -> Iterator[Checkpoint]:
    """A checkpoint and its ancestors, newest first."""
    at: Checkpoint | None = start
    while at is not None:
        yield at
        at = vault.catalog.checkpoint(at.session_id, at.parent)


def _between(vault: Vault, start: Checkpoint | None, end: Checkpoint) -> tuple[Checkpoint, ...]:
    known: set[CheckpointId] = set()
    if start is not None:
        known = {checkpoint.id for checkpoint in _ancestry(vault, start)}
    found = []
    for checkpoint in _ancestry(vault, end):
        if checkpoint.id in known:
            break
        found.append(checkpoint)
    return tuple(reversed(found)) or (end,)


def _work(vault: Vault, chosen: AcceptRange) -> HandOver:
    old = None if chosen.start is None else chosen.start.tree
    changes: dict[bytes, Content | None] = {}
    for change in tree_changes(vault.load_tree, old, chosen.end.tree):
        if _content(change.old) is not None or _content(change.new) is not None:
            changes[change.path] = _content(change.new)
    return HandOver(
        vault.workspace,
        [PathChange(path, content) for path, content in changes.items()],
        list(_rules(vault, chosen.end, changes)),
        lambda entry: read_content(vault.objects, entry),
        _seen_commit(vault, chosen.end),
        _accepted(vault, chosen.end),
    )


def _content(entry: Entry | None) -> Content | None:
    return None if entry is None or isinstance(entry, DirectoryEntry) else entry


def _rules(vault: Vault, end: Checkpoint, paths: Iterable[bytes]) -> Iterator[PathChange]:
    """Ignore and attribute files of the checkpoint in every directory above a changed path."""
    wanted = {b""}
    for path in paths:
        while path := parent(path):
            wanted.add(path)
    pending = [(b"", end.tree)]
    while pending:
        directory, digest = pending.pop()
        tree = vault.load_tree(digest)
        for entry in tree.files:
            if entry.name in _RULES:
                yield PathChange(join(directory, entry.name), entry)
        for below in tree.directories:
            if (path := join(directory, below.name)) in wanted:
                pending.append((path, below.digest))


def _accepted(vault: Vault, end: Checkpoint) -> list[str]:
    """Commits made from ancestors of this checkpoint."""
    made = vault.catalog.operations(end.session_id, kinds=(OperationKind.ACCEPT,))
    line = {checkpoint.id for checkpoint in _ancestry(vault, end)} if made else set()
    return [operation.note for operation in made if operation.note and operation.checkpoint in line]


def _seen_commit(vault: Vault, end: Checkpoint) -> str | None:
    """Git's HEAD commit when the checkpoint was made, if captured."""
    try:
        states = read_states(vault.objects, end)
    except StoreDamaged:
        return None  # files can be accepted anyway
    for state in states:
        if state.name == "git" and state.failure is None:
            commit = dict(state.facts.get("head") or {}).get("commit")
            return commit if isinstance(commit, str) else None
    return None

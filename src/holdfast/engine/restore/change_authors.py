"""Who last changed the files of a restore: an agent in a tool call, a person, or another restore.

    the current file → the newest checkpoint with another version → the step in between

The checkpoints of all sessions are one sequence of workspace states. The tool log says which agents
were working in between. If none was, a person changed the file.

Not guaranteed: an answer for every file. Only some checkpoints are searched, and none older than
the one to restore.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import AFTER_CALL
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import RestorePlan
from holdfast.domain.trees.changes import tree_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry
from holdfast.domain.wording import Remark
from holdfast.engine.stored_objects import entry_at
from holdfast.engine.vault import Vault
from holdfast.engine.why.causes import ConcurrentCalls
from holdfast.values.classes import dataclass

_MOST_CHECKPOINTS = 500
_MOST_PATHS = 500
_SHOWN = 5


class Author(StrEnum):
    AGENT = "agent"
    PERSON = "person"
    RESTORE = "restore"
    UNSAVED = "unsaved"
    """No checkpoint has the change yet."""


@dataclass(frozen=True, slots=True)
class LastChange:
    """`session_id` and `agent` are set for an agent; `at_ns` is the first checkpoint with it."""

    path: bytes
    author: Author
    session_id: SessionId | None = None
    agent: str | None = None
    at_ns: int | None = None


def last_changes(vault: Vault, plan: RestorePlan, target: Checkpoint) -> list[LastChange]:
    """In path order."""
    files = [
        (step.path, step.before)
        for step in plan.steps
        if not isinstance(step.after or step.before, DirectoryEntry)
    ]
    try:
        found = list(_found(vault, dict(files[:_MOST_PATHS]), target))
    except StoreDamaged:
        return []  # the restore itself reports unreadable data
    return sorted(found, key=lambda one: one.path)


def others_remarks(vault: Vault, plan: RestorePlan, target: Checkpoint) -> Iterator[Remark]:
    """The files of a plan that others changed last, if an agent works in the checkpoint's session.
    Files without a checkpoint are left to other remarks."""
    session = vault.catalog.session(target.session_id)
    if session is None or session.agent is None:
        return
    theirs: dict[str, list[bytes]] = {}
    for one in last_changes(vault, plan, target):
        if one.author is Author.PERSON:
            theirs.setdefault("a person or a program", []).append(one.path)
        elif one.author is Author.AGENT and one.session_id != session.id:
            theirs.setdefault(f"{one.agent} in another session", []).append(one.path)
    for who, paths in theirs.items():
        was, saved = ("was", "it is") if len(paths) == 1 else ("were", "they are")
        yield Remark(f"{_names(paths)} {was} changed by {who} since then; {saved} saved first")


def _names(paths: list[bytes]) -> str:
    from holdfast.domain.wording import one_line

    shown = ", ".join(one_line(to_text(path), 80) for path in paths[:_SHOWN])
    return f"{shown} and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else shown


def _found(
    vault: Vault, present: dict[bytes, Entry | None], target: Checkpoint
) -> Iterator[LastChange]:
    calls = ConcurrentCalls(vault)
    waiting = set(present)
    newer: Checkpoint | None = None
    for one in vault.catalog.history(None, limit=_MOST_CHECKPOINTS, records=True):
        if newer is None:
            changed = [path for path, now in present.items() if _differs(vault, one, path, now)]
            yield from (LastChange(path, Author.UNSAVED) for path in changed)
        else:
            between = tree_changes(vault.load_tree, one.tree, newer.tree)
            changed = [change.path for change in between if change.path in waiting]
            made = (_made(vault, calls, path, one, newer) for path in changed)
            yield from (change for change in made if change is not None)
        waiting.difference_update(changed)
        newer = one
        if not waiting or one.sequence <= target.sequence:
            return


def _differs(vault: Vault, checkpoint: Checkpoint, path: bytes, now: Entry | None) -> bool:
    saved = entry_at(vault.load_tree, checkpoint.tree, path)
    return saved is not now if saved is None or now is None else not saved.same_state(now)


def _made(
    vault: Vault, calls: ConcurrentCalls, path: bytes, before: Checkpoint, first: Checkpoint
) -> LastChange | None:
    """None if it is unknown."""
    at_ns = first.created_at_ns
    if first.kind is Kind.RESTORE:
        return LastChange(path, Author.RESTORE, at_ns=at_ns)
    running = calls.running(path, before, first)
    if running and not calls.was_written_after(running, path, first):
        agent = running[-1].agent
        return LastChange(path, Author.AGENT, agent.session_id, agent.agent, at_ns)
    session = vault.catalog.session(first.session_id)
    if running or session is None or session.agent is None:
        return LastChange(path, Author.PERSON, at_ns=at_ns)
    if _is_agent_work(first):
        return LastChange(path, Author.AGENT, session.id, session.agent, at_ns)
    return None if running is None else LastChange(path, Author.PERSON, at_ns=at_ns)


def _is_agent_work(checkpoint: Checkpoint) -> bool:
    """Whether it results from an agent's work. Agents without hooks have no call log."""
    after = checkpoint.kind is Kind.TOOL and checkpoint.intent.reasoning.startswith(AFTER_CALL)
    return after or checkpoint.kind is Kind.MANUAL

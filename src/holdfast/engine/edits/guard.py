"""Guards an edit of a few files: they are saved first and rolled back if the edit fails.

    start:     read only those files → objects → HEAD with these files, as a safety checkpoint
    finalize:  store the compressed diff to the current files, and the conversation position
    abort:     restore only those paths from the safety checkpoint

Guarantees: the cost of starting depends on the files, not on the workspace. Before a file is
changed, its old content is durable. A rollback is a restore with all of its safety: the edit's
result is saved first, and undo restores it. A file that the edit created is removed only if the
store has it, together with empty directories created for it. A file is saved under each of its
names in the workspace, with the links that lead to it. An edit whose process dies stays open,
protected from cleanup, until the user decides about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from os import fsencode
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind, NewCheckpoint
from holdfast.domain.errors import HoldfastError, NotFound, Refused
from holdfast.domain.ids import CheckpointId, SessionId, short
from holdfast.domain.intent import SnapshotIntent, make_intent
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import to_text
from holdfast.domain.story import Activity, ActivityKind, ActivityStatus, NewActivity
from holdfast.domain.trees.entries import Entry
from holdfast.engine.conversation.conversation import require_room
from holdfast.engine.edits.edited_files import (
    capture_files,
    edited_paths,
    existing_directories,
    names_of_one_file,
    remove_emptied,
)
from holdfast.engine.restore.conflicts import amended_tree
from holdfast.engine.save.save import NOWHERE, conversation_position
from holdfast.engine.scan.ignore_check import name_ignored_paths
from holdfast.engine.sessions.lifecycle import require_open_session
from holdfast.engine.stored_objects import entry_at, loader_for
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_CERTAIN = 1.0
_NAMED = 5
_MOST = 1 << 53


def start_edit(
    engine: Engine,
    session_id: SessionId,
    paths: Iterable[str | Path],
    reason: str | None = None,
    *,
    inside: Collection[int] = (),
) -> Activity:
    """The open edit; the files may be changed as soon as this returns. `inside` as in
    `Engine.save`."""
    vault = engine.vault
    wanted = edited_paths(vault, paths)
    why = reason or f"edit of {_names(wanted)}"
    require_room(vault)
    engine = engine.after_waiting(inside)
    with vault.lock.hold():
        require_open_session(vault, session_id)
        _name_ignored(vault, wanted)
        head = _head(engine, session_id, why)
        groups = names_of_one_file(engine, wanted)
        wanted = tuple(dict.fromkeys((*wanted, *groups)))
        entries = capture_files(vault, wanted, groups)
        entries.update(existing_directories(vault, head, entries))
        checkpoint = _keep(vault, session_id, head, entries, why)
        return vault.story.begin(
            NewActivity(
                session_id,
                ActivityKind.EDIT,
                why,
                checkpoint.id,
                vault.clock.now_ns(),
                vault.processes.own_identity(),
                wanted,
                checkpoint.message_index,
            )
        )


def finalize_edit(vault: Vault, number: int) -> Activity:
    """Keep the result of the edit, and record its diff."""
    from holdfast.engine.edits.diff import edit_diff

    activity = open_activity(vault, number)
    with vault.lock.hold():
        _name_ignored(vault, activity.paths)  # including files that the edit created
    diff = edit_diff(vault, checkpoint_of(vault, activity), activity.paths)
    return _settle(vault, activity, ActivityStatus.KEPT, None, diff)


def _name_ignored(vault: Vault, paths: Iterable[bytes]) -> None:
    """Let later saves capture these files even if a rule ignores them. If this fails, the edit
    still has them."""
    root = fsencode(vault.workspace)
    present = [path for path in paths if lexists(root + b"/" + path)]
    with suppress(HoldfastError):
        name_ignored_paths(vault, dict.fromkeys(present, True))


def abort_edit(engine: Engine, number: int, why: str | None = None) -> Activity:
    """Restore the files of the edit, and no others."""
    vault = engine.vault
    activity = open_activity(vault, number)
    target = checkpoint_of(vault, activity)
    paths = tuple(
        path for path in activity.paths if entry_at(vault.load_tree, target.tree, path) is not None
    )
    paths += _made(engine, [path for path in activity.paths if path not in paths])
    if paths:
        engine.restore(engine.restore_request(activity.session_id, target.id, paths=paths))
    remove_emptied(vault, target, activity.paths)
    return _settle(vault, activity, ActivityStatus.PUT_BACK, why, None)


def _made(engine: Engine, absent: list[bytes]) -> tuple[bytes, ...]:
    """Of the paths that did not exist before the edit: those that exist now and that a save would
    capture. Unsaved content is never removed."""
    root = fsencode(engine.vault.workspace)
    present = [path for path in absent if lexists(root + b"/" + path)]
    if not present:
        return ()
    scan = engine.scan()
    load = loader_for(engine.vault, scan)
    return tuple(path for path in present if entry_at(load, scan.tree, path) is not None)


def own_activity(vault: Vault, session_id: SessionId, number: int) -> Activity:
    """An edit or attempt of this session; other sessions' are not visible to it."""
    found = _activity(vault, number)
    if found is None or found.session_id != session_id:
        raise _no_activity(number)
    return found


def _activity(vault: Vault, number: int) -> Activity | None:
    known = vault.has_story() and 0 < number < _MOST
    return vault.story.activity(number) if known else None


def _no_activity(number: int) -> NotFound:
    return NotFound(
        f"no such edit or attempt: {number}",
        hint="list them: session.activities()",
    )


def open_activity(vault: Vault, number: int) -> Activity:
    found = _activity(vault, number)
    if found is None:
        raise _no_activity(number)
    if found.status is not ActivityStatus.OPEN:
        raise Refused(
            f"{found.kind.value} {number} has already ended: it was {found.status.value}",
            hint="start another one; its result is in the timeline",
        )
    return found


def _head(engine: Engine, session_id: SessionId, why: str) -> Checkpoint:
    """The base of the safety checkpoint; the first edit of a session saves everything."""
    session = engine.vault.catalog.session(session_id)
    head = session.head if session is not None else None
    found = engine.vault.catalog.checkpoint(session_id, head)
    if found is not None:
        return found
    return engine.save(session_id, make_intent(f"Before: {why}"), kind=Kind.TOOL).checkpoint


def _keep(
    vault: Vault,
    session_id: SessionId,
    head: Checkpoint,
    entries: dict[bytes, Entry | None],
    why: str,
) -> Checkpoint:
    """A safety checkpoint: HEAD with the current content of these files. It is marked partial,
    because the rest of the workspace was not scanned."""
    digest = amended_tree(vault, head.tree, entries)
    tree = vault.load_tree(digest)
    now_ns = vault.clock.now_ns()
    reasoning = f"Before: {why} (everything else is as in {short(head.id)})"
    new = NewCheckpoint(
        id=CheckpointId(vault.ids.new_id()),
        session_id=session_id,
        parent=head.id,
        kind=Kind.SAFETY,
        created_at_ns=now_ns,
        tree=digest,
        intent=SnapshotIntent(reasoning, confidence=_CERTAIN),
        files=tree.file_count,
        size_bytes=tree.size_bytes,
        changed=ChangeCounts(),
        report=head.report,
        partial=True,
        message_index=conversation_position(vault, session_id, NOWHERE)[0].message_index,
        round=head.round,
        components=head.components,
    )
    operation = NewOperation(
        OperationKind.CHECKPOINT, session_id, now_ns, checkpoint=new.id, head_before=head.id
    )
    with vault.catalog.transaction() as transaction:
        kept = transaction.add_checkpoint(new)
        transaction.add_operation(operation)
    return kept


def checkpoint_of(vault: Vault, activity: Activity) -> Checkpoint:
    """The checkpoint that an edit or attempt is rolled back to."""
    found = vault.catalog.checkpoint(activity.session_id, activity.checkpoint)
    if found is None:
        raise NotFound(f"the checkpoint {activity.checkpoint} of the edit has been deleted")
    return found


def _settle(
    vault: Vault,
    activity: Activity,
    status: ActivityStatus,
    outcome: str | None,
    diff: bytes | None,
) -> Activity:
    now_ns = vault.clock.now_ns()
    ended = vault.story.settle(activity.number, status, at_ns=now_ns, outcome=outcome, diff=diff)
    return ended or replace(activity, status=status)


def _names(paths: tuple[bytes, ...]) -> str:
    named = ", ".join(to_text(path) for path in paths[:_NAMED])
    named = named.encode("utf-8", "backslashreplace").decode()
    return named if len(paths) <= _NAMED else f"{named} and {len(paths) - _NAMED} more"

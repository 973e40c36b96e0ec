"""Guarding an edit of a few files: kept as they are first, put back when the edit fails.

    start:     read just those files → objects → HEAD with them in it, as a safety checkpoint
    finalize:  the difference to what is there now, compressed, with the place in the conversation
    abort:     a restore of just those paths to that safety checkpoint

Guarantees: starting costs the files, not the workspace; before a file is changed, what it was is
durable. Putting back is a restore with all of its safety: what the edit left is saved first, undo
brings it back, and a file that the edit made is removed only when the store has it, with the
directories made for it that nobody else has filled. A file is kept under each of its names in the
workspace, with the links that lead to it. An edit whose process dies stays open,
protected from cleanup, until somebody decides about it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from os import fsencode
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Kind
from holdfast.domain.errors import HoldfastError, NotFound, Refused, UsageError
from holdfast.domain.ids import CheckpointId, SessionId, short
from holdfast.domain.intent import SnapshotIntent, make_intent
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import (
    MARKER_DIRECTORY,
    basename,
    from_text,
    is_within,
    parent,
    to_text,
)
from holdfast.domain.story import Activity, ActivityKind, ActivityStatus, NewActivity
from holdfast.domain.trees.entries import MODE_MASK, Entry, FileEntry, SymlinkEntry, storable_ns
from holdfast.engine.conversation.conversation import require_room
from holdfast.engine.edits.directories import existing_directories, remove_emptied
from holdfast.engine.restore.conflicts import amended_tree
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.restore.plan import loader_for, require_paths
from holdfast.engine.save.save import NOWHERE, conversation_position
from holdfast.engine.scan.file_capture import FileCapture, is_sparse
from holdfast.engine.scan.ignore_check import name_ignored_paths
from holdfast.engine.sessions.lifecycle import require_open_session
from holdfast.engine.stored_objects import entry_at, list_files
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewCheckpoint, NewOperation
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_CERTAIN = 1.0
_NAMED = 5
_MOST = 1 << 53
_MOST_LINKS = 40


def start_edit(
    engine: Engine,
    session_id: SessionId,
    paths: Iterable[str | Path],
    reason: str | None = None,
    *,
    inside: Collection[int] = (),
) -> Activity:
    """The edit, open; the files may be changed as soon as this returns. `inside` as in
    `Engine.save`."""
    vault = engine.vault
    wanted = edited_paths(vault, paths)
    why = reason or f"edit of {_names(wanted)}"
    require_room(vault)
    engine = engine.having_waited(inside)
    with vault.lock.hold():
        require_open_session(vault, session_id)
        _name_ignored(vault, wanted)
        head = _head(engine, session_id, why)
        groups = _names_of_one_file(engine, wanted)
        wanted = tuple(dict.fromkeys((*wanted, *groups)))
        entries = _capture(vault, wanted, groups)
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
    """Keep what the edit made, and record how it differs from what was there."""
    from holdfast.engine.edits.diff import edit_diff

    activity = open_activity(vault, number)
    with vault.lock.hold():
        _name_ignored(vault, activity.paths)  # those that it has made
    diff = edit_diff(vault, _target(vault, activity), activity.paths)
    return _settle(vault, activity, ActivityStatus.KEPT, None, diff)


def _name_ignored(vault: Vault, paths: Iterable[bytes]) -> None:
    """Let later saves hold those of these files that are there, although a rule ignores them. The
    edit itself keeps them whatever becomes of that."""
    root = fsencode(vault.workspace)
    present = [path for path in paths if lexists(root + b"/" + path)]
    with suppress(HoldfastError):
        name_ignored_paths(vault, dict.fromkeys(present, True))


def abort_edit(engine: Engine, number: int, why: str | None = None) -> Activity:
    """Put the files of the edit back as they were, and no other."""
    vault = engine.vault
    activity = open_activity(vault, number)
    target = _target(vault, activity)
    paths = tuple(
        path for path in activity.paths if entry_at(vault.load_tree, target.tree, path) is not None
    )
    paths += _made(engine, [path for path in activity.paths if path not in paths])
    if paths:
        engine.restore(engine.restore_request(activity.session_id, target.id, paths=paths))
    remove_emptied(vault, target, activity.paths)
    return _settle(vault, activity, ActivityStatus.PUT_BACK, why, None)


def _made(engine: Engine, absent: list[bytes]) -> tuple[bytes, ...]:
    """Of paths that were not there before the edit: those that are now, and that a save would have.
    What no save has is not removed."""
    root = fsencode(engine.vault.workspace)
    present = [path for path in absent if lexists(root + b"/" + path)]
    if not present:
        return ()
    scan = engine.look()
    load = loader_for(engine.vault, scan)
    return tuple(path for path in present if entry_at(load, scan.tree, path) is not None)


def own_activity(vault: Vault, session_id: SessionId, number: int) -> Activity:
    """An edit or attempt of this session; those of others are not there for it."""
    found = _activity(vault, number)
    if found is None or found.session_id != session_id:
        raise _no_activity(number)
    return found


def _activity(vault: Vault, number: int) -> Activity | None:
    known = vault.has_story() and 0 < number < _MOST
    return vault.story.activity(number) if known else None


def _no_activity(number: int) -> NotFound:
    return NotFound(
        f"there is no edit or attempt {number}",
        hint="session.activities() has those of the session, with their numbers",
    )


def open_activity(vault: Vault, number: int) -> Activity:
    found = _activity(vault, number)
    if found is None:
        raise _no_activity(number)
    if found.status is not ActivityStatus.OPEN:
        raise Refused(
            f"{found.kind.value} {number} has ended already: it was {found.status.value}",
            hint="begin another one; what it did is in the timeline",
        )
    return found


def edited_paths(vault: Vault, paths: Iterable[str | Path]) -> tuple[bytes, ...]:
    """Paths of the workspace, from whatever way a tool names them."""
    if isinstance(paths, (str, Path)):
        raise UsageError("paths is one path, not a list of them", hint=f"use [{str(paths)!r}]")
    found: list[bytes] = []
    for path in paths:
        if not str(path):
            raise UsageError("a path of the edit is empty", hint="name the files that it changes")
        given = Path(path)
        if given.is_absolute():
            try:
                given = given.relative_to(vault.workspace)
            except ValueError:
                raise UsageError(
                    f"{path} is outside the workspace {vault.workspace}",
                    hint="only files of the workspace can be put back",
                ) from None
        found.append(from_text(str(given)))
    if not found:
        raise UsageError("an edit needs at least one path", hint="name the files to be edited")
    safe = require_paths(found)
    safe = tuple(dict.fromkeys(each for path in safe for each in _through_links(vault, path)))
    own_data = (MARKER_DIRECTORY, vault.files.path_inside_workspace())
    for place in safe:
        if any(own is not None and is_within(place, own) for own in own_data):
            raise UsageError(
                f"{to_text(place)} is Holdfast's own data", hint="name files of the workspace"
            )
    return safe


def _through_links(vault: Vault, path: bytes) -> tuple[bytes, ...]:
    """The file that writing to a path would reach, and each link on the way: all of them may be
    changed."""
    root = os.path.realpath(fsencode(vault.workspace))
    links: list[bytes] = []
    at, waiting = root, path.split(b"/")
    while waiting:
        place = os.path.join(at, waiting.pop(0))
        if not os.path.islink(place):
            at = os.path.normpath(place)  # `..` too: what leads here has no links any more
            continue
        if len(links) == _MOST_LINKS:
            raise Refused(
                f"{to_text(path)} cannot be kept before the edit: its links lead round in a circle",
                hint="name the file itself",
            )
        links.append(place)
        waiting = [*os.readlink(place).split(b"/"), *waiting]
        at = b"/" if not waiting[0] else at
    if not is_within(at, root):
        raise Refused(
            f"{to_text(path)} is a link to {to_text(at)}, outside the workspace: it cannot be "
            "kept before the edit",
            hint="keep a copy of that file, or work in the workspace that holds it",
        )
    found = [*(link for link in links if is_within(link, root)), at]
    return require_paths(os.path.relpath(place, root) for place in dict.fromkeys(found))


def _names_of_one_file(engine: Engine, paths: tuple[bytes, ...]) -> dict[bytes, bytes]:
    """The names of these files that have several in the workspace, with the group of each: who
    writes to one of them writes to all."""
    root = fsencode(engine.vault.workspace)
    if not any(_has_names(root + b"/" + path) for path in paths):
        return {}
    scan = engine.look()
    files = dict(list_files(loader_for(engine.vault, scan), scan.tree))
    groups = {files[path].link for path in paths if path in files}
    return {path: file.link for path, file in files.items() if file.link and file.link in groups}


def _has_names(place: bytes) -> bool:
    try:
        status = os.lstat(place)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _head(engine: Engine, session_id: SessionId, why: str) -> Checkpoint:
    """What the files are kept on top of; the first edit of a session saves everything."""
    session = engine.vault.catalog.session(session_id)
    head = session.head if session is not None else None
    found = engine.vault.catalog.checkpoint(session_id, head) if head else None
    if found is not None:
        return found
    return engine.save(session_id, make_intent(f"Before: {why}"), kind=Kind.TOOL).checkpoint


def _capture(
    vault: Vault, paths: Iterable[bytes], groups: Mapping[bytes, bytes]
) -> dict[bytes, Entry | None]:
    writer = vault.objects.writer()
    capture = FileCapture(vault.fs, writer, vault.clock.now_ns())
    try:
        with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
            captured: dict[bytes, Entry | None] = {
                path: _entry(vault, handles, capture, path, groups.get(path)) for path in paths
            }
        writer.commit()
    except BaseException:
        writer.abandon()
        raise
    return captured


def _entry(
    vault: Vault,
    handles: DirectoryHandles,
    capture: FileCapture,
    path: bytes,
    group: bytes | None,
) -> FileEntry | SymlinkEntry | None:
    """What stands at a path now; None where there is nothing yet."""
    name = basename(path)
    try:
        area = handles.open(parent(path))
        status = vault.fs.stat(name, dir_fd=area, follow_symlinks=False)
    except OSError as error:
        if error.errno in NO_DIRECTORY and not _leads_through_a_file(vault, path):
            return None
        raise Refused(
            f"{to_text(path)} cannot be kept before the edit: {error.strerror}",
            hint="name the file itself",
        ) from error
    if stat.S_ISLNK(status.st_mode):
        target = vault.fs.readlink(name, dir_fd=area)
        return SymlinkEntry(name, target, storable_ns(status.st_mtime_ns))
    if not stat.S_ISREG(status.st_mode):
        what = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise Refused(
            f"{to_text(path)} is {what}: an edit is about files",
            hint="name the files in it, or guard the whole workspace with an attempt",
        )
    try:
        read = capture.capture(area, name, status.st_size, None)
    except OSError as error:
        raise Refused(
            f"{to_text(path)} cannot be kept before the edit: {error.strerror}",
            hint="check its permissions",
        ) from error
    return FileEntry(
        name,
        read.status.st_mode & MODE_MASK,
        read.content.size,
        storable_ns(read.status.st_mtime_ns),
        read.content.digest,
        read.content.chunks,
        is_sparse(read.status),
        group,
    )


def _leads_through_a_file(vault: Vault, path: bytes) -> bool:
    above = parent(path)
    root = fsencode(vault.workspace)
    while above:
        if lexists(root + b"/" + above) and not _is_directory(vault, above):
            return True
        above = parent(above)
    return False


def _is_directory(vault: Vault, path: bytes) -> bool:
    status = vault.fs.stat(fsencode(vault.workspace) + b"/" + path, follow_symlinks=False)
    return stat.S_ISDIR(status.st_mode)


def _keep(
    vault: Vault,
    session_id: SessionId,
    head: Checkpoint,
    entries: dict[bytes, Entry | None],
    why: str,
) -> Checkpoint:
    """A safety checkpoint: HEAD with these files as they are now. It says that it is partial,
    because nothing else of the workspace was looked at."""
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


def _target(vault: Vault, activity: Activity) -> Checkpoint:
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

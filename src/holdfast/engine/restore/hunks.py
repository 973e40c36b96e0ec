"""Restores some hunks of files: the wanted state is built first, then restored.

    the file as scanned → the chosen hunks as in the checkpoint → new content
    → the checkpoint's tree with that content: the goal of the ordinary plan

Guarantees: the new content is made from the bytes in the safety checkpoint, never from the file
itself. If a chosen hunk no longer exists, the whole restore is refused. The content is durable
before a journal names its tree. A restored hunk changes neither mode nor links; the mode is chosen
separately. HEAD does not move, as after every partial restore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.diff.hunk_choice import (
    DEFAULT_CONTEXT,
    MODE,
    HunkChoice,
    NumberedHunk,
    numbered,
    revert_hunks,
)
from holdfast.domain.diff.hunks import Hunk
from holdfast.domain.errors import NotFound, Refused, RestoreConflict, UsageError
from holdfast.domain.ids import Digest, short
from holdfast.domain.paths import basename, is_within, to_text, typed
from holdfast.domain.restore.plan import RestorePlan
from holdfast.domain.trees.changes import replace_entries
from holdfast.domain.trees.entries import (
    DirectoryEntry,
    Entry,
    FileEntry,
    SymlinkEntry,
    storable_ns,
)
from holdfast.engine.compare.changed_content import StoredContent, WorkspaceContent
from holdfast.engine.compare.content_diff import Content, ContentDiff, compare_content
from holdfast.engine.compare.tree_diff import IgnoredContent
from holdfast.engine.restore.plan import make_plan
from holdfast.engine.restore.records import RestoreRequest
from holdfast.engine.scan.file_capture import in_blocks, store_content
from holdfast.engine.scan.scan_meter import DiscardingWriter
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.stored_objects import entry_at, loader_for, object_batch
from holdfast.engine.vault import Vault
from holdfast.ports.objects import ObjectWriter
from holdfast.values.classes import replace

_BLOCK_BYTES = 256 * 1024


def hunks_of_file(
    vault: Vault, scan: Scan, target: Checkpoint, path: bytes, *, context: int = DEFAULT_CONTEXT
) -> Iterator[NumberedHunk]:
    """The differences between a file in a checkpoint and in the workspace, for display. Ignored
    content is withheld, so it has no hunks."""
    hunks = _hunks(vault, scan, target, path, context)
    if IgnoredContent(vault).rule(path) is not None:
        raise _whole_only(target, path, "is ignored by your rules")
    return hunks


def _hunks(
    vault: Vault, scan: Scan, target: Checkpoint, path: bytes, context: int
) -> Iterator[NumberedHunk]:
    old, new = _both_sides(vault, scan, target, path)
    present = WorkspaceContent(vault, path, new.size)
    return numbered(_text_diff(vault, target, path, old, present, context).hunks())


def choose_hunks(
    vault: Vault,
    scan: Scan,
    request: RestoreRequest,
    wanted: Sequence[int | str],
    *,
    context: int = DEFAULT_CONTEXT,
) -> RestoreRequest:
    """The request for these hunks only. Numbers refer to the current file. The request names hunks
    by content, so that no other hunk is restored if the file changes meanwhile."""
    if len(request.paths) != 1:
        raise UsageError(
            "hunks need exactly one file", hint="usage: holdfast restore REF PATH --hunk 1"
        )
    [path] = request.paths
    found = [
        (hunk.number, hunk.name) for hunk in _hunks(vault, scan, request.target, path, context)
    ]
    by_key: dict[int | str, str] = dict(found)
    by_key |= {name: name for _, name in found}
    for key in wanted:
        if key not in by_key:
            raise _no_such_hunk(request.target, path, key, len(found))
    names = frozenset(by_key[key] for key in wanted)
    if not names:
        raise UsageError("no hunk was given", hint="use its number, such as 1")
    return replace(request, hunks=HunkChoice(names, context))


def preview_hunks(vault: Vault, scan: Scan, request: RestoreRequest) -> RestorePlan:
    """The plan of such a request; stores nothing."""

    def present(path: bytes, new: FileEntry) -> Content:
        return WorkspaceContent(vault, path, new.size)

    request, encoded = _with_goal(vault, scan, request, DiscardingWriter(), present)
    scan = replace(scan, encoded=scan.encoded | encoded)
    return _plan(vault, scan, request)


def store_and_plan_hunks(
    vault: Vault, scan: Scan, request: RestoreRequest
) -> tuple[RestoreRequest, RestorePlan]:
    """The request with its durable goal tree, and the plan. The scanned content must be in the
    store."""

    def present(path: bytes, new: FileEntry) -> Content:
        return StoredContent(vault.objects, new, path)

    with object_batch(vault.objects) as writer:
        request, encoded = _with_goal(vault, scan, request, writer, present)
        for digest, data in encoded.items():
            writer.add(digest, data)
    return request, _plan(vault, scan, request)


def _plan(vault: Vault, scan: Scan, request: RestoreRequest) -> RestorePlan:
    plan = make_plan(vault, scan, request)
    linked = [s for s in plan.steps if isinstance(s.before, FileEntry) and s.before.link]
    if not linked:
        return plan
    why = "has other names (hard links); only this one is changed, and becomes a separate file"
    return replace(plan, warnings=(*plan.warnings, f"{to_text(linked[0].path)} {why}"))


def _with_goal(
    vault: Vault,
    scan: Scan,
    request: RestoreRequest,
    writer: ObjectWriter,
    present: Callable[[bytes, FileEntry], Content],
) -> tuple[RestoreRequest, dict[Digest, bytes]]:
    """The request with its goal tree, and the new directories of that tree. A path without chosen
    hunks is restored as a whole."""
    assert request.hunks is not None
    edits: dict[bytes, Entry | None] = {}
    for path in request.paths:
        names = request.hunks.of(path, request.paths)
        if names:
            choice = replace(request.hunks, names=names)
            edits[path] = _reverted(vault, scan, request.target, path, choice, writer, present)
    tree, encoded = replace_entries(loader_for(vault, scan), request.target.tree, edits)
    return replace(request, tree=tree), encoded


def _reverted(
    vault: Vault,
    scan: Scan,
    target: Checkpoint,
    path: bytes,
    choice: HunkChoice,
    writer: ObjectWriter,
    present_of: Callable[[bytes, FileEntry], Content],
) -> FileEntry:
    """The current file with the chosen hunks as in the checkpoint."""
    old, new = _both_sides(vault, scan, target, path)
    if MODE in choice.names:
        new = replace(new, mode=old.mode)
        choice = replace(choice, names=choice.names - {MODE})
    if not choice.names:
        return new
    present = present_of(path, new)
    diff = _text_diff(vault, target, path, old, present, choice.context)
    chosen = _Chosen(diff, choice, path)
    blocks = in_blocks(revert_hunks(present.chunks(), chosen), _BLOCK_BYTES)
    stored = store_content(writer, blocks, similar_to=new.digest if new.chunks is None else None)
    chosen.require_all()
    return replace(
        new,
        digest=stored.digest,
        chunks=stored.chunks,
        size=stored.size,
        mtime_ns=storable_ns(vault.clock.now_ns()),
        sparse=False,
        link=None,
    )


class _Chosen:
    """The chosen hunks among the current ones."""

    def __init__(self, diff: ContentDiff, choice: HunkChoice, path: bytes) -> None:
        self._diff = diff
        self._missing = set(choice.names)
        self._path = path

    def __iter__(self) -> Iterator[Hunk]:
        for hunk in numbered(self._diff.hunks()):
            if hunk.name in self._missing:
                self._missing.remove(hunk.name)
                yield hunk.hunk

    def require_all(self) -> None:
        if self._missing:
            raise RestoreConflict(
                f"{to_text(self._path)} changed since the hunks were listed: "
                f"{len(self._missing)} of the chosen ones "
                f"{('is' if len(self._missing) == 1 else 'are')} gone",
                hint="list them again: holdfast diff REF -- PATH",
            )


def _both_sides(
    vault: Vault, scan: Scan, target: Checkpoint, path: bytes
) -> tuple[FileEntry, FileEntry]:
    """The file in the checkpoint and in the workspace; hunks need both."""
    load = loader_for(vault, scan)
    old, new = entry_at(load, target.tree, path), entry_at(load, scan.tree, path)
    if isinstance(old, FileEntry) and isinstance(new, FileEntry):
        return old, new
    if new is None and (why := _left_out(scan, path)) is not None:
        raise Refused(
            f"cannot compare {to_text(path)}, because its current version is not saved: {why}",
            hint="to capture it, see why it is left out: holdfast status --skipped",
        )
    if isinstance(old, DirectoryEntry) or isinstance(new, DirectoryEntry):
        raise UsageError(f"{to_text(path)} is a directory", hint="use one file in it")
    if old is None and new is None:
        raise NotFound(
            f"{to_text(path)!r} is neither in that checkpoint nor in the workspace",
            hint="list its files: holdfast show REF --files",
        )
    if isinstance(old, SymlinkEntry) or isinstance(new, SymlinkEntry):
        raise _whole_only(target, path, "is a symbolic link")
    if old is None:
        raise _whole_only(target, path, "was added since that checkpoint")
    raise _whole_only(target, path, "was removed since that checkpoint")


def _left_out(scan: Scan, path: bytes) -> str | None:
    """Why the scan left out a path that may exist."""
    return next((s.describe() for s in scan.skipped if is_within(path, s.path)), None)


def _text_diff(
    vault: Vault, target: Checkpoint, path: bytes, old: FileEntry, new: Content, context: int
) -> ContentDiff:
    diff = compare_content(path, StoredContent(vault.objects, old, path), new, context=context)
    if diff.kind == "binary":
        raise _whole_only(target, path, "is binary")
    if diff.kind == "too_large":
        raise _whole_only(target, path, "is too large to be compared by line")
    return diff


def _whole_only(target: Checkpoint, path: bytes, why: str) -> Refused:
    return Refused(
        f"{to_text(path)} {why}: it has no hunks and can only be restored as a whole",
        hint=f"restore it: holdfast restore {short(target.id)} {typed(path)}",
    )


def _no_such_hunk(target: Checkpoint, path: bytes, key: int | str, count: int) -> NotFound:
    name = to_text(basename(path))
    if count == 0:
        return NotFound(
            f"no hunk {key}: no line of {name} differs from that checkpoint",
            hint="nothing to restore; use another checkpoint or file",
        )
    there = "1 hunk, which is number 1" if count == 1 else f"{count} hunks, numbered from 1"
    return NotFound(
        f"no hunk {key}: {name} has {there}",
        hint=f"list them: holdfast diff {short(target.id)} -- {typed(path)}",
    )

"""Plans a restore from a checkpoint and the current state, for previews and restores."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint, Skipped, SkipReason
from holdfast.domain.errors import NotFound, StoreDamaged
from holdfast.domain.ignore.defaults import is_made_by_tools
from holdfast.domain.ignore.includes import include_command
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import (
    basename,
    from_text,
    is_within,
    parent,
    require_safe_path,
    to_text,
)
from holdfast.domain.restore.plan import (
    Blocked,
    Kept,
    LeftOutByRules,
    Missing,
    RestorePlan,
    plan_restore,
    topmost,
)
from holdfast.domain.trees.changes import tree_changes, visible_changes
from holdfast.domain.wording import Remark, count_words, one_line
from holdfast.engine.restore.database_files import (
    owner_of,
    transactions_under_way,
    with_whole_databases,
)
from holdfast.engine.restore.directory_handles import NO_DIRECTORY, DirectoryHandles
from holdfast.engine.save.workspace_tree import capture_policy
from holdfast.engine.scan.scanner import Scan
from holdfast.engine.scan.target_rules import TargetRules
from holdfast.engine.stored_objects import entry_at, loader_for
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

if TYPE_CHECKING:
    from holdfast.engine.restore.records import RestoreRequest

_NEVER_CAPTURED = (SkipReason.TOO_LARGE, SkipReason.SPECIAL)
_LEFT_OUT = (
    SkipReason.IGNORED,
    SkipReason.FILTERED,
    SkipReason.TOO_LARGE,
    SkipReason.OVER_BUDGET,
    SkipReason.SPECIAL,
    SkipReason.UNREADABLE,
    SkipReason.TOO_DEEP,
    SkipReason.GIT_DATA,
)
_DEFAULT_RULE = "default"
_MOST_NAMED = 3


def make_plan(vault: Vault, scan: Scan, request: RestoreRequest) -> RestorePlan:
    """From the current state, scanned with the rules of both sides, to the request's goal."""
    load = loader_for(vault, scan)
    target, paths = request.goal, request.paths
    left_out_then = read_report(vault, target)
    with _target_rules(vault, scan, request) as left_out:
        plan = plan_restore(
            load,
            scan.tree,
            target.tree,
            paths=paths,
            current_skipped=_in_the_way(scan.skipped),
            target_skipped=_in_the_way(left_out_then),
            under_way=transactions_under_way(scan),
            other_workspaces={
                skip.path: skip.describe()
                for skip in scan.skipped
                if skip.reason.is_another_workspace
            },
            left_out_by_rules=left_out if request.keeps_left_out else None,
        )
        uncaptured = tuple(_uncaptured(scan, plan, left_out_then, left_out, request))
    plan = with_whole_databases(vault, plan, scan, load, target.tree, paths)
    for path in paths:
        here = {entry_at(load, tree, path) for tree in (scan.tree, target.tree)}
        if here == {None} and not any(is_within(step.path, path) for step in plan.steps):
            raise _unknown(path, scan.skipped, left_out_then)
    brought_back = {step.path for step in plan.steps if step.after is not None}
    rewritten: list[Skipped] = []
    missing: Iterable[Missing] = ()
    if request.hunks is None:
        missing = tuple(_missing(vault, left_out_then, paths, request.target, rewritten))
    return replace(
        plan,
        blocked=(*plan.blocked, *_lost(left_out_then, paths)),
        kept=(*topmost(plan.kept), *_unread(scan, plan, paths), *uncaptured),
        warnings=(
            *_warnings(scan, plan),
            *_rewritten(scan, rewritten, plan),
            *_repositories_reached(plan, (*scan.skipped, *left_out_then)),
        ),
        missing=tuple(one for one in missing if one.path not in brought_back),
    )


@contextmanager
def _target_rules(vault: Vault, scan: Scan, request: RestoreRequest) -> Iterator[LeftOutByRules]:
    """Why the target's rules leave out a path; computed only if needed."""
    load = loader_for(vault, scan)
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        policy = capture_policy(vault)
        tree = request.target.tree
        rules = TargetRules(vault.fs, handles, policy, vault.objects, vault.load_tree, tree)

        def left_out(path: bytes, is_dir: bool) -> str | None:
            judged = owner_of(load, scan.tree, path)
            verdict = rules.judge(judged, is_dir=is_dir)
            if verdict.reason is None and not verdict.detail:
                return None
            return f"{SkipReason.IGNORED.value} ({verdict.detail})"

        yield left_out


def _uncaptured(
    scan: Scan,
    plan: RestorePlan,
    left_out_then: Iterable[Skipped],
    left_out: LeftOutByRules,
    request: RestoreRequest,
) -> Iterable[Kept]:
    """Existing paths that the target's rules would capture but no save can contain, unless they
    already existed when the checkpoint was made."""
    then = {skip.path for skip in left_out_then} | {blocked.path for blocked in plan.blocked}
    for skip in scan.skipped:
        if skip.reason not in _NEVER_CAPTURED or skip.path in then:
            continue
        if not _is_asked(skip.path, request.paths) or left_out(skip.path, False) is not None:
            continue
        yield Kept(skip.path, f"not saved, so not removed: {skip.describe()}")


def missing_now(vault: Vault, checkpoint: Checkpoint) -> Iterable[Missing]:
    """Paths that existed when a checkpoint was made, are not in it, and are gone by now."""
    return _missing(vault, read_report(vault, checkpoint), (), checkpoint, [])


def _missing(
    vault: Vault,
    left_out_then: Iterable[Skipped],
    paths: tuple[bytes, ...],
    checkpoint: Checkpoint,
    rewritten: list[Skipped],
) -> Iterable[Missing]:
    """Paths that existed when the checkpoint was made, are not in it, and are gone by now. Ignored
    files that were written since then are added to `rewritten`."""
    with vault.open_root() as root_fd, DirectoryHandles(vault.fs, root_fd) as handles:
        for skip in left_out_then:
            if skip.reason not in _LEFT_OUT or not skip.path or not _is_asked(skip.path, paths):
                continue
            try:
                dir_fd = handles.open(parent(skip.path))
                found = vault.fs.stat(basename(skip.path), dir_fd=dir_fd, follow_symlinks=False)
                if _is_rewritten(skip, found, checkpoint):
                    rewritten.append(skip)
            except OSError as error:
                if error.errno in NO_DIRECTORY:
                    ignored = skip.reason is SkipReason.IGNORED
                    yield Missing(skip.path, skip.describe(), _is_cache(skip), ignored)


def _is_cache(skip: Skipped) -> bool:
    return skip.reason is SkipReason.IGNORED and (
        skip.detail.startswith(_DEFAULT_RULE) or is_made_by_tools(skip.path, is_directory=True)
    )


def _is_rewritten(skip: Skipped, found: os.stat_result, checkpoint: Checkpoint) -> bool:
    """Whether an ignored file has been written since a checkpoint, by its time. Of a directory that
    is left out as a whole, nothing is known."""
    ignored = skip.reason is SkipReason.IGNORED and stat.S_ISREG(found.st_mode)
    return ignored and found.st_mtime_ns > checkpoint.created_at_ns and not _is_cache(skip)


def _rewritten(scan: Scan, rewritten: list[Skipped], plan: RestorePlan) -> Iterable[Remark]:
    """A remark about ignored files that the restore leaves as they are, although they changed."""
    if not rewritten or not plan.steps:
        return
    unsaved = {skip.path for skip in scan.skipped if skip.reason is SkipReason.IGNORED}
    paths = [skip.path for skip in rewritten if skip.path in unsaved]
    if not paths:
        return
    named = ", ".join(one_line(to_text(path), 80) for path in paths[:_MOST_NAMED])
    more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
    are, they, them = ("are", "they have", "them") if paths[1:] else ("is", "it has", "it")
    yield Remark(
        f"{named}{more} {are} ignored, so not saved and not restored; {they} changed since that "
        f"checkpoint. To save {them} from now on: {include_command(paths[:_MOST_NAMED])}"
    )


def _is_asked(path: bytes, paths: tuple[bytes, ...]) -> bool:
    return not paths or any(is_within(path, chosen) for chosen in paths)


def _lost(left_out: Iterable[Skipped], paths: tuple[bytes, ...]) -> Iterable[Blocked]:
    """Paths that the checkpoint had, but that are lost by damage to the store."""
    for skip in left_out:
        if skip.reason is SkipReason.LOST and _is_asked(skip.path, paths):
            yield Blocked(skip.path, skip.describe())


def _unread(scan: Scan, plan: RestorePlan, paths: tuple[bytes, ...]) -> Iterable[Kept]:
    """Existing paths that could not be read: they stay, whatever the target has there."""
    blocked = {b.path for b in plan.blocked}
    for skip in scan.skipped:
        if not skip.reason.is_failure or skip.reason.content_is_captured or skip.path in blocked:
            continue
        if _is_asked(skip.path, paths):
            yield Kept(skip.path, skip.describe())


def read_report(vault: Vault, checkpoint: Checkpoint) -> list[Skipped]:
    """Everything that was left out of a checkpoint."""
    if checkpoint.report is None:
        return []
    try:
        rows = json.loads(vault.objects.read(checkpoint.report))
        return [Skipped(from_text(p), SkipReason[reason], detail) for p, reason, detail in rows]
    except (ValueError, KeyError) as error:
        raise StoreDamaged(
            f"the report of checkpoint {checkpoint.id} is damaged: {error}"
        ) from None


def require_paths(paths: Iterable[bytes]) -> tuple[bytes, ...]:
    """Validated paths from the caller; a trailing slash is allowed."""
    return tuple(require_safe_path(path.rstrip(b"/")) for path in paths)


def _in_the_way(skipped: Iterable[Skipped]) -> dict[bytes, str]:
    harmless = SkipReason.SHARED_MEMORY
    return {
        s.path: s.describe()
        for s in skipped
        if not s.reason.content_is_captured and s.reason is not harmless
    }


def _unknown(path: bytes, now: Iterable[Skipped], then: Iterable[Skipped]) -> NotFound:
    """The error for a path on neither side: not captured, or nonexistent."""
    for left_out, which in ((now, ", nor is the current version saved"), (then, "")):
        for skip in left_out:
            if is_within(path, skip.path):
                return NotFound(
                    f"that checkpoint does not include {to_text(path)!r}{which}: {skip.describe()}",
                    hint=(
                        "to capture it from now on, use the setting include; list everything that "
                        "is left out: holdfast status --skipped"
                    ),
                )
    return NotFound(
        f"{to_text(path)!r} is neither in that checkpoint nor in the workspace",
        hint="paths are relative to the current directory, or to the workspace as :/PATH; "
        "list its files: holdfast show REF --files",
    )


def _warnings(scan: Scan, plan: RestorePlan) -> Iterable[str]:
    touched = set(plan.affected_files)
    marked = [s for s in scan.skipped if s.reason is SkipReason.XATTRS and s.path in touched]
    if marked:
        yield (
            (
                f"{to_text(marked[0].path)} has extended attributes ({marked[0].detail}), which "
                "checkpoints do not keep: they will be lost"
            )
            + (
                f"; so do those of {count_words(len(marked) - 1, 'more file')}"
                if marked[1:]
                else ""
            )
        )
    no_room = SkipReason.OVER_BUDGET
    unread = [s for s in scan.skipped if s.reason.is_failure and s.reason is not no_room]
    if unread:
        left = "is" if len(unread) == 1 else "are"
        yield f"{count_words(len(unread), 'path')} could not be read and {left} left as is"


def unsaved_remarks(
    vault: Vault, scan: Scan, head: Checkpoint | None, kind: OperationKind
) -> Iterable[Remark]:
    """Shown before a restore; its result names the checkpoint."""
    if head is None:
        return
    load = loader_for(vault, scan)
    count = sum(1 for _ in visible_changes(tree_changes(load, head.tree, scan.tree)))
    if count:
        saved, back = ("it is", "it") if count == 1 else ("they are", "them")
        command = "redo" if kind is OperationKind.UNDO else "undo"
        yield Remark(
            f"{count_words(count, 'path')} changed since the last checkpoint; {saved} saved "
            f"first, so {command} restores {back}"
        )


def _repositories_reached(plan: RestorePlan, left_out: Iterable[Skipped]) -> Iterable[str]:
    """A warning for each repository below the workspace whose files the restore changes."""
    tops = {parent(s.path) for s in left_out if s.reason is SkipReason.GIT_DATA} - {b""}
    for top in sorted(tops):
        inside = sum(is_within(path, top) for path in plan.affected_files)
        if inside:
            words = f"this changes {count_words(inside, 'file')} in the repository {to_text(top)}"
            yield Remark(words)

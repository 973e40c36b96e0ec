"""A restore as data: the steps that turn the current tree into the target tree.

    walk both trees where they differ → one step per path → order so that each step finds its
    parent directory present and its destination free

Preview, dry run, execution and recovery all use `plan_restore`. It is pure and deterministic, so a
journal needs to hold only its inputs. Guarantee: nothing left out of either side is deleted or
overwritten (RB-4). A path that would require that is `blocked`.
Not guaranteed: that the disk still looks like `current`. The executor checks each step again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.ids import Digest
from holdfast.domain.paths import ancestors, is_within, parent, to_text
from holdfast.domain.trees.changes import Change, TreeLoader, tree_changes
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry, SymlinkEntry
from holdfast.values.classes import NamedTuple, dataclass

if TYPE_CHECKING:  # saves do not need these imports
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.git.drift import GitDrift

SkippedPaths: TypeAlias = Mapping[bytes, str]
"""Paths left out of a tree, each with a reason. A directory includes everything below it."""

LeftOutByRules: TypeAlias = Callable[[bytes, bool], str | None]
"""Why the rules leave out a path; None if they capture it. The flag says whether it is a
directory."""


class StepType(StrEnum):
    DELETE = "delete"
    RMDIR = "rmdir"
    MKDIR = "mkdir"
    CREATE = "create"
    RESTORE = "restore"
    RELINK = "relink"
    CHMOD = "chmod"


@dataclass(frozen=True, slots=True)
class Step:
    """Change `path` from `before` to `after`; idempotent. `database`: a SQLite database to be
    written in place, not replaced."""

    type: StepType
    path: bytes
    before: Entry | None
    after: Entry | None
    database: bool = False

    @property
    def size_bytes(self) -> int:
        return self.after.size if isinstance(self.after, FileEntry) else 0

    @property
    def needs_content(self) -> bool:
        return self.type in (StepType.CREATE, StepType.RESTORE, StepType.RELINK)


@dataclass(frozen=True, slots=True)
class Blocked:
    """A path that cannot be restored without losing unsaved bytes."""

    path: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A path that is not in the target and stays anyway. `whole`: a directory stays with everything
    in it."""

    path: bytes
    reason: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """A path that existed at the checkpoint, was left out of it, and is gone now, so the restore
    cannot recover it. `is_cache`: a built-in rule leaves it out, and a tool can recreate it.
    `can_be_included`: the setting `include` would save it from now on."""

    path: bytes
    reason: str
    is_cache: bool = False
    can_be_included: bool = False


@dataclass(frozen=True, slots=True)
class ComponentStep:
    """The restore of one component. `blocked` lists the reasons if it cannot be restored. `choices`
    are the parts that can be restored one by one, as key and line."""

    name: str
    mode: str
    actions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    choices: tuple[tuple[str, str], ...] = ()


RESTORED, FAILED = "restored", "failed"


@dataclass(frozen=True, slots=True)
class ComponentOutcome:
    """The state of a component after a restore: restored, or failed with the reason. `idle`:
    nothing had to change. `left` lists parts that differ but were not selected."""

    name: str
    mode: str
    status: str
    detail: str = ""
    idle: bool = False
    left: tuple[str, ...] = ()


UNDER_WAY = "a transaction of this database is open"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Steps in running order, blocked paths, and warnings. `git` is set if HEAD is elsewhere than
    at the checkpoint and stays there. A preview also has the `target` and its `annotations`, and
    names the `databases_in_use`, which change while a user reads it."""

    steps: tuple[Step, ...]
    blocked: tuple[Blocked, ...] = ()
    kept: tuple[Kept, ...] = ()
    warnings: tuple[str, ...] = ()
    components: tuple[ComponentStep, ...] = ()
    git: GitDrift | None = None
    missing: tuple[Missing, ...] = ()
    databases_in_use: tuple[bytes, ...] = ()
    target: Checkpoint | None = None
    annotations: tuple[str, ...] = ()

    @property
    def affected_files(self) -> tuple[bytes, ...]:
        return tuple(s.path for s in self.steps if _is_file_step(s))

    @property
    def under_way(self) -> tuple[bytes, ...]:
        """Databases that are blocked only by an open transaction, which may end."""
        return tuple(b.path for b in self.blocked if b.reason == UNDER_WAY)

    @property
    def bytes_to_write(self) -> int:
        return sum(step.size_bytes for step in self.steps if step.needs_content)

    def count(self, *types: StepType) -> int:
        return sum(step.type in types for step in self.steps)


def _is_file_step(step: Step) -> bool:
    return not isinstance(step.after or step.before, DirectoryEntry)


def plan_restore(
    load: TreeLoader,
    current: Digest,
    target: Digest,
    *,
    paths: Collection[bytes] = (),
    current_skipped: SkippedPaths | None = None,
    target_skipped: SkippedPaths | None = None,
    under_way: Collection[bytes] = (),
    other_workspaces: SkippedPaths | None = None,
    left_out_by_rules: LeftOutByRules | None = None,
) -> RestorePlan:
    """The steps from `current` to `target`, for all paths or for those under `paths`.

    `other_workspaces` are directories that belong to other workspaces. Everything the target has
    there is left alone, and does not block the rest.

    `under_way` are databases with an open transaction, whose journal would destroy another state.
    Paths that the target lacks and `left_out_by_rules` names are not part of its state, and stay.
    """
    in_the_way = _Lookup(current_skipped or {})
    left_out_then = _Lookup(target_skipped or {})
    others = _Lookup(other_workspaces or {})
    blocked: list[Blocked] = []
    kept: list[Kept] = []
    changes: list[Change] = []
    untouched: dict[bytes, Kept] = {}
    for change in _chosen(tree_changes(load, current, target), paths):
        if (other := others.at_or_above(change.path)) is not None:
            untouched[other] = Kept(other, others.reason(other))
            continue
        if change.new is None:
            reason = left_out_then.covering(change.path)
            if reason is None and left_out_by_rules is not None:
                reason = left_out_by_rules(change.path, isinstance(change.old, DirectoryEntry))
            if reason is not None:
                why = f"not in that checkpoint: {reason}"
                kept.append(Kept(change.path, why, whole=True))
                continue
        if change.new is not None and (reason := in_the_way.covering(change.path)):
            blocked.append(Blocked(change.path, f"the current version is not saved: {reason}"))
            continue
        if change.path in under_way:
            blocked.append(Blocked(change.path, UNDER_WAY))
            continue
        changes.append(change)
    kept += untouched.values()
    changes = _keep_occupied_directories(changes, in_the_way, kept, blocked)
    changes = _outside(changes, {b.path for b in blocked})
    steps = [step for change in changes for step in _steps_for(change)]
    return RestorePlan(in_running_order(steps), blocked=tuple(blocked), kept=tuple(kept))


def in_running_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=_running_order))


def _chosen(changes: Iterable[Change], paths: Collection[bytes]) -> Iterable[Change]:
    """The changes below chosen paths, and the directories that must be created for them.
    Directories above a chosen path are never removed or changed."""
    if not paths:
        return changes
    changes = list(changes)
    asked = {c.path for c in changes if any(is_within(c.path, chosen) for chosen in paths)}
    leading: set[bytes] = set()
    for change in changes:
        if change.path in asked and change.new is not None:
            leading.update(ancestors(change.path))
    return [c for c in changes if c.path in asked or (c.path in leading and _becomes_directory(c))]


def _becomes_directory(change: Change) -> bool:
    return isinstance(change.new, DirectoryEntry) and not isinstance(change.old, DirectoryEntry)


def _keep_occupied_directories(
    changes: list[Change], in_the_way: _Lookup, kept: list[Kept], blocked: list[Blocked]
) -> list[Change]:
    """Directories with unsaved paths stay, and so do their parents."""
    holding = {parent(k.path) for k in kept}
    result: list[Change] = []
    for change in sorted(changes, key=lambda c: (-c.path.count(b"/"), c.path)):
        removed_directory = isinstance(change.old, DirectoryEntry) and not isinstance(
            change.new, DirectoryEntry
        )
        if not removed_directory:
            result.append(change)
            continue
        held = in_the_way.first_below(change.path)
        reason = f"contains {to_text(held)}, which is not saved" if held else None
        if reason is None and change.path in holding:
            reason = "contains paths that are kept"
        if reason is None:
            result.append(change)
        elif change.new is None:
            kept.append(Kept(change.path, reason))
            holding.add(parent(change.path))
        else:
            blocked.append(Blocked(change.path, f"the directory there {reason}"))
            holding.add(parent(change.path))
    return result


def topmost(kept: Iterable[Kept]) -> Iterable[Kept]:
    """Without the content of directories that are kept whole."""
    kept = list(kept)
    whole = {each.path for each in kept if each.whole}
    for each in kept:
        if whole.isdisjoint(ancestors(each.path)):
            yield each


def _outside(changes: list[Change], blocked: set[bytes]) -> list[Change]:
    """A blocked directory keeps its content, because emptying it would gain nothing."""
    if not blocked:
        return changes
    return [c for c in changes if not any(is_within(c.path, b) for b in blocked)]


def _steps_for(change: Change) -> Iterable[Step]:
    old, new, path = change.old, change.new, change.path
    if isinstance(new, DirectoryEntry):
        if isinstance(old, DirectoryEntry):
            yield Step(StepType.CHMOD, path, old, new)
            return
        if old is not None:
            yield Step(StepType.DELETE, path, old, None)
        yield Step(StepType.MKDIR, path, None, new)
    elif isinstance(old, DirectoryEntry):
        yield Step(StepType.RMDIR, path, old, None)
        if new is not None:
            yield Step(StepType.CREATE, path, None, new)
    elif new is None:
        yield Step(StepType.DELETE, path, old, None)
    elif old is None:
        yield Step(StepType.CREATE, path, None, new)
    else:
        yield Step(_replacement_type(old, new), path, old, new)


def _replacement_type(old: Entry, new: Entry) -> StepType:
    if isinstance(new, SymlinkEntry):
        return StepType.RELINK
    if isinstance(new, FileEntry) and new.same_content(old) and isinstance(old, FileEntry):
        return StepType.CHMOD if old.link == new.link else StepType.RELINK
    return StepType.RESTORE


_PHASES: dict[StepType, int] = {
    StepType.DELETE: 0,
    StepType.RMDIR: 1,
    StepType.MKDIR: 2,
    StepType.CREATE: 3,
    StepType.RESTORE: 3,
    StepType.RELINK: 3,
    StepType.CHMOD: 4,
}


def _running_order(step: Step) -> tuple[int, int, bytes]:
    """Delete before removing directories, create directories before filling them. Modes come last,
    deepest first, so that a directory becomes read-only only after its content is done."""
    depth = step.path.count(b"/")
    deepest_first = step.type in (StepType.RMDIR, StepType.CHMOD)
    return (_PHASES[step.type], -depth if deepest_first else depth, step.path)


class _Lookup:
    """Skipped paths, looked up in both directions: which one covers a path, and which is below
    it."""

    def __init__(self, skipped: SkippedPaths) -> None:
        self._reasons = skipped
        self._below: dict[bytes, bytes] = {}
        for path in sorted(skipped):
            above = parent(path)
            while above not in self._below:
                self._below[above] = path
                if not above:
                    break
                above = parent(above)

    def reason(self, path: bytes) -> str:
        return self._reasons[path]

    def at_or_above(self, path: bytes) -> bytes | None:
        while path and path not in self._reasons:
            path = parent(path)
        return path if path in self._reasons else None

    def covering(self, path: bytes) -> str | None:
        found = self.at_or_above(path)
        return None if found is None else self._reasons[found]

    def first_below(self, directory: bytes) -> bytes | None:
        return self._below.get(directory)


class StepCounts(NamedTuple):
    """Files and links by what a restore does to them; directories are counted separately."""

    created: int
    restored: int
    deleted: int
    directories: int = 0

    @property
    def total(self) -> int:
        """The number of files and links."""
        return self.created + self.restored + self.deleted


def count_steps(steps: Iterable[Step]) -> StepCounts:
    created = restored = deleted = directories = 0
    for step in steps:
        if isinstance(step.after or step.before, DirectoryEntry):
            directories += 1
        elif step.type is StepType.CREATE:
            created += 1
        elif step.type is StepType.DELETE:
            deleted += 1
        else:
            restored += 1
    return StepCounts(created, restored, deleted, directories)

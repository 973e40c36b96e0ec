"""A plan that treats a SQLite database and its log and journal as one unit.

    a database that changes its state → before all other steps, in this order: delete its old log
    and journal, write the database, create its new log and journal; the database step is marked

Marked groups are written into the live file through SQLite, in one transaction. So the log of one
state is never next to the database of another. If SQLite cannot do that, because one of the two is
damaged, the same steps replace the files one by one: the old log goes first, and the database is
replaced even if only the log differs. Not marked: a database whose file has several names, because
all of them would change, and one whose log or journal name belongs to something else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from holdfast.domain.paths import basename
from holdfast.domain.restore.plan import RestorePlan, Step, StepType, in_running_order
from holdfast.domain.sqlite_files import (
    JOURNAL,
    LOG,
    SHARED_MEMORY,
    SMALLEST_PAGE_BYTES,
    database_of,
)
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.values.classes import replace

States: TypeAlias = Callable[[bytes], tuple[Entry | None, Entry | None]]
IsDatabase: TypeAlias = Callable[[FileEntry], bool]

_OWNER_MAY_READ = 0o400


def with_whole_databases(
    plan: RestorePlan,
    shared_memories: Collection[bytes],
    states: States,
    is_database: IsDatabase,
) -> RestorePlan:
    """`shared_memories` exist now; `states` returns the current and the target entry of a path."""
    certain = {path.removesuffix(SHARED_MEMORY) for path in shared_memories}
    plan = _without_opened_logs(plan, certain, states)
    steps = {step.path: step for step in plan.steps}
    beside = {base for path in steps if (base := database_of(path)) is not None}
    alone = {p for p, step in steps.items() if _is_rewritten(step, certain=p in certain)}
    touched: dict[bytes, tuple[Entry | None, Entry | None]] = {}
    for base in sorted(beside | alone):
        found = states(base)
        if base in certain or any(isinstance(e, FileEntry) and is_database(e) for e in found):
            touched[base] = found
    if not touched:
        return plan
    marked = {
        base
        for base, found in touched.items()
        if _can_be_written(*found, is_database) and _has_only_its_own_beside(base, found[0], states)
    }
    made = _steps(plan, touched, marked, shared_memories, states)
    return replace(plan, steps=tuple(_grouped(in_running_order(made), touched)))


def _without_opened_logs(
    plan: RestorePlan, certain: Collection[bytes], states: States
) -> RestorePlan:
    """Leaves the empty log that a program creates when it opens a database, if the database itself
    does not change: to remove it, the database would be rewritten for nothing."""
    opened = {
        step
        for step in plan.steps
        if step.type is StepType.DELETE
        and isinstance(step.before, FileEntry)
        and step.before.size == 0
        and (base := step.path.removesuffix(LOG)) in certain
        and base != step.path
        and _is_unchanged(*states(base))
    }
    if not opened:
        return plan
    return replace(plan, steps=tuple(step for step in plan.steps if step not in opened))


def _is_unchanged(old: Entry | None, new: Entry | None) -> bool:
    return isinstance(old, FileEntry) and old.same_state(new)


def _is_rewritten(step: Step, *, certain: bool) -> bool:
    new = step.after
    if step.type is StepType.CHMOD or not isinstance(new, FileEntry):
        return certain and step.type is not StepType.CHMOD
    return certain or (new.size > 0 and new.size % SMALLEST_PAGE_BYTES == 0)


def _can_be_written(old: Entry | None, new: Entry | None, is_database: IsDatabase) -> bool:
    """An empty file counts as an empty database."""
    if not isinstance(new, FileEntry) or new.link is not None or not is_database(new):
        return False
    if old is None:
        return True
    if not isinstance(old, FileEntry) or old.link is not None or not new.mode & _OWNER_MAY_READ:
        return False
    return old.size == 0 or is_database(old)


def _has_only_its_own_beside(base: bytes, old: Entry | None, states: States) -> bool:
    """False if a directory or link has the name of the log, or a file with content has the name of
    the shared memory. Also false if there is a log and the database is empty, because SQLite would
    discard the log."""
    log, journal = states(base + LOG), states(base + JOURNAL)
    if isinstance(old, FileEntry) and old.size == 0 and (log[0] or journal[0]):
        return False
    own = all(entry is None or isinstance(entry, FileEntry) for entry in (*log, *journal))
    return own and states(base + SHARED_MEMORY) == (None, None)


def _grouped(steps: Collection[Step], touched: Collection[bytes]) -> Iterator[Step]:
    """Group the files of each replaced database, before everything else. A lock held by another
    program is the likeliest failure, and then nothing has to be rolled back."""
    replaced = {s.path: s for s in steps if s.path in touched and s.type is StepType.RESTORE}
    beside: dict[bytes, list[Step]] = {base: [] for base in replaced}
    directories = {s.path for s in steps if DirectoryEntry in (type(s.before), type(s.after))}
    with_it: set[bytes] = set()
    for step in steps:
        base = database_of(step.path)
        if base is not None and base in beside and step.path not in directories:
            beside[base].append(step)
            with_it.add(step.path)
    for base, step in replaced.items():
        yield from (s for s in beside[base] if s.type is StepType.DELETE)
        yield step
        yield from (s for s in beside[base] if s.type is not StepType.DELETE)
    for step in steps:
        if step.path not in replaced and step.path not in with_it:
            yield step


def _steps(
    plan: RestorePlan,
    touched: dict[bytes, tuple[Entry | None, Entry | None]],
    marked: Collection[bytes],
    shared_memories: Collection[bytes],
    states: States,
) -> Iterator[Step]:
    rewritten: set[bytes] = set()
    for step in plan.steps:
        if step.path in touched and step.type is StepType.CHMOD:
            continue  # a new file gets its mode when it is made
        if step.path in touched:
            rewritten.add(step.path)
            yield replace(step, database=step.path in marked)
        elif database_of(step.path) in touched and step.type is StepType.RESTORE:
            yield from _delete_and_create(step.path, step.before, step.after)
        else:
            yield step
    present = {step.path for step in plan.steps}
    for base, (old, new) in touched.items():
        if base not in rewritten and old is not None and new is not None:
            yield Step(StepType.RESTORE, base, old, new, database=base in marked)
        if base in marked and old is not None:
            for path in (base + LOG, base + JOURNAL):
                if path not in present:
                    yield from _delete_and_create(path, *states(path))
        if base + SHARED_MEMORY in shared_memories:
            yield Step(StepType.DELETE, base + SHARED_MEMORY, _shared_memory_entry(base), None)


def _delete_and_create(path: bytes, old: Entry | None, new: Entry | None) -> Iterator[Step]:
    if old is not None:
        yield Step(StepType.DELETE, path, old, None)
    if new is not None:
        yield Step(StepType.CREATE, path, None, new)


def _shared_memory_entry(base: bytes) -> FileEntry:
    """Shared memory is not content: nothing is lost with it."""
    return FileEntry(basename(base) + SHARED_MEMORY, 0o600, 0, 0, digest_of(b""))

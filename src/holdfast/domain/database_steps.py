"""A plan that treats a SQLite database and the files beside it as the one thing they are.

    the old log and shared memory go first → then the database, in a new file → then its new log,
    without another step in between

Guarantee: at no moment does the log of one state lie beside the database of another, and nobody who
has the old one open can write into the new one: its file is replaced even if only the log differs.
Not guaranteed: that nobody opens the old database in the moment in which its log is gone and it is
not yet replaced. SQLite then makes a log by the name, which lies beside the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from holdfast.domain.digests import digest_of
from holdfast.domain.entries import Entry, FileEntry
from holdfast.domain.paths import basename
from holdfast.domain.restore_plans import RestorePlan, Step, StepType, in_running_order
from holdfast.domain.sqlite_files import SHARED_MEMORY, database_of


def with_whole_databases(
    plan: RestorePlan,
    shared_memories: Collection[bytes],
    states: Callable[[bytes], tuple[Entry | None, Entry | None]],
    is_database: Callable[[FileEntry], bool],
) -> RestorePlan:
    """`shared_memories` are the present ones; `states` tells how a path is and shall be."""
    certain = {path.removesuffix(SHARED_MEMORY) for path in shared_memories}
    paths = {step.path for step in plan.steps}
    beside = {base for path in paths if (base := database_of(path)) is not None}
    touched: dict[bytes, tuple[Entry | None, Entry | None]] = {}
    for base in sorted(beside | (certain & paths)):
        found = states(base)
        if base in certain or any(isinstance(e, FileEntry) and is_database(e) for e in found):
            touched[base] = found
    if not touched:
        return plan
    steps = in_running_order(_steps(plan, touched, shared_memories))
    return replace(plan, steps=tuple(_together(steps, touched)))


def _together(steps: Collection[Step], touched: Collection[bytes]) -> Iterator[Step]:
    """What belongs to a database one after another, and nothing else in between: whoever opens it
    meanwhile finds a database without its log, so that moment has to be short."""
    replaced = {s.path for s in steps if s.path in touched and s.type is StepType.RESTORE}
    beside: dict[bytes, list[Step]] = {base: [] for base in replaced}
    for step in steps:
        if (base := database_of(step.path)) in beside and base is not None:
            beside[base].append(step)
    for step in steps:
        if step.path in replaced:
            yield from (s for s in beside[step.path] if s.type is StepType.DELETE)
            yield step
            yield from (s for s in beside[step.path] if s.type is not StepType.DELETE)
        elif database_of(step.path) not in beside:
            yield step


def _steps(
    plan: RestorePlan,
    touched: dict[bytes, tuple[Entry | None, Entry | None]],
    shared_memories: Collection[bytes],
) -> Iterator[Step]:
    rewritten: set[bytes] = set()
    for step in plan.steps:
        if step.path in touched and step.type is StepType.CHMOD:
            continue  # a new file gets its mode when it is made
        if step.path in touched:
            rewritten.add(step.path)
            yield step
        elif database_of(step.path) in touched and step.type is StepType.RESTORE:
            yield Step(StepType.DELETE, step.path, step.before, None)
            yield Step(StepType.CREATE, step.path, None, step.after)
        else:
            yield step
    for base, (old, new) in touched.items():
        if base not in rewritten and old is not None and new is not None:
            yield Step(StepType.RESTORE, base, old, new)
        if base + SHARED_MEMORY in shared_memories:
            yield Step(StepType.DELETE, base + SHARED_MEMORY, _nothing(base), None)


def _nothing(base: bytes) -> FileEntry:
    """Shared memory is no content: whatever it holds, nothing is lost with it."""
    return FileEntry(basename(base) + SHARED_MEMORY, 0o600, 0, 0, digest_of(b""))

"""A database and the files beside it are exchanged one after another."""

from __future__ import annotations

import pytest

from holdfast.domain.paths import basename
from holdfast.domain.restore.database_steps import with_whole_databases
from holdfast.domain.restore.plan import RestorePlan, Step, StepType, in_running_order
from holdfast.domain.trees.entries import Entry, FileEntry
from holdfast.domain.trees.objects import digest_of


def _file(path: bytes, content: bytes) -> FileEntry:
    return FileEntry(basename(path), 0o644, len(content), 0, digest_of(content))


@pytest.mark.requirement("DB-1")
def test_nothing_is_done_between_a_log_that_goes_and_the_database_it_belongs_to() -> None:
    databases = {
        base: (_file(base, b"old"), _file(base, b"new")) for base in (b"app.db", b"z/more.db")
    }

    def states(path: bytes) -> tuple[Entry | None, Entry | None]:
        return databases.get(path, (None, None))

    steps = [Step(StepType.RESTORE, base, old, new) for base, (old, new) in databases.items()]
    for path in (b"app.db-wal", b"z/more.db-wal", b"code.py", b"zz"):
        steps.append(Step(StepType.RESTORE, path, _file(path, b"1"), _file(path, b"2")))
    for path in (b"app.db-old", b"y", b"z/x"):
        steps.append(Step(StepType.DELETE, path, _file(path, b"1"), None))
        steps.append(Step(StepType.CREATE, path + b"2", None, _file(path, b"2")))
    plan = RestorePlan(in_running_order(steps), (), (), ())
    planned = with_whole_databases(plan, [b"app.db-shm"], states, lambda entry: True).steps
    order = [(step.type, step.path) for step in planned]
    at = order.index((StepType.RESTORE, b"app.db"))
    assert sorted(order[at - 2 : at]) == [
        (StepType.DELETE, b"app.db-shm"),
        (StepType.DELETE, b"app.db-wal"),
    ]
    assert order[at + 1] == (StepType.CREATE, b"app.db-wal")
    at = order.index((StepType.RESTORE, b"z/more.db"))
    assert order[at - 1] == (StepType.DELETE, b"z/more.db-wal")
    assert order[at + 1] == (StepType.CREATE, b"z/more.db-wal")
    assert len(order) == len(set(order)) == len(steps) + 3
    assert {path for _, path in order} == {step.path for step in steps} | {b"app.db-shm"}

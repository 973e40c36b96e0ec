"""Databases that a restore writes into their live files, each with its log and journal.

The steps of one database run together, through SQLite, and so does a rollback. Programs that use
the database see the old state or the new one.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeAlias

from holdfast.domain.errors import RestoreFailed
from holdfast.domain.ids import Digest
from holdfast.domain.paths import basename, parent, to_text
from holdfast.domain.restore.plan import Step, StepType
from holdfast.domain.sqlite_files import (
    JOURNAL,
    LOG,
    DatabaseJob,
    PerhapsWritten,
    Writing,
    database_of,
)
from holdfast.domain.trees.entries import FileEntry
from holdfast.engine.restore.staged_moves import Displaced, RestoreSite
from holdfast.engine.restore.verifier import digest_of_file
from holdfast.values.classes import dataclass, replace

PATIENCE_S = 10.0
"""How long to wait for other programs' locks before the restore of a database fails."""

ASIDE, BACK = b"aside-", b"back-"
_PARTS = (b"", LOG, JOURNAL)

MoveAway: TypeAlias = Callable[[bytes, bytes, int], None]


@dataclass(frozen=True, slots=True)
class DatabaseGroup:
    """The steps of one database by number; `number` is that of the database file."""

    base: bytes
    number: int
    steps: dict[int, Step]

    @property
    def first(self) -> int:
        return min(self.steps)

    @property
    def is_new(self) -> bool:
        return self.steps[self.number].type is StepType.CREATE

    @property
    def is_alone(self) -> bool:
        return len(self.steps) == 1

    def after(self) -> dict[bytes, tuple[int, FileEntry]]:
        """The wanted files by suffix, each with its step's number."""
        found = {step.path: (n, step.after) for n, step in self.steps.items()}
        parts = {part: found.get(self.base + part) for part in _PARTS}
        return {k: (v[0], v[1]) for k, v in parts.items() if v and isinstance(v[1], FileEntry)}


def groups_of(steps: tuple[Step, ...]) -> dict[int, DatabaseGroup]:
    """For each step that belongs to a group, that group."""
    numbers = {step.path: n for n, step in enumerate(steps) if step.database}
    members: dict[bytes, dict[int, Step]] = {base: {} for base in numbers}
    for number, step in enumerate(steps):
        base = step.path if step.path in numbers else database_of(step.path)
        if base is None or base not in members:
            continue
        if steps[numbers[base]].type is StepType.RESTORE or step.type is StepType.CREATE:
            members[base][number] = step
    groups = (DatabaseGroup(base, numbers[base], found) for base, found in members.items())
    return {number: group for group in groups for number in group.steps}


class DatabaseWriter:
    """Writes database groups."""

    def __init__(self, site: RestoreSite) -> None:
        self._site, self._done = site, site.done

    def write(self, group: DatabaseGroup, move_away: MoveAway) -> bool:
        """False if SQLite cannot do it: then the steps must run one by one."""
        after = group.after()
        job = DatabaseJob(
            basename(group.base),
            slots={part: b"%d" % number for part, (number, _) in after.items()},
            wanted={part: entry.digest for part, (_, entry) in after.items()},
            known=self._known(group.base),
            aside=ASIDE + b"%d" % group.number,
            mode=after[b""][1].mode & self._site.mode_mask,
            mtime_ns=after[b""][1].mtime_ns,
            patience_s=PATIENCE_S,
        )
        directory = parent(group.base)
        dir_fd = self._site.handles.open_for_change(directory)
        area = self._site.staging.area(dir_fd, directory)
        self._done.directories.add(directory)
        # Recorded first, because the write may be interrupted at any moment.
        self._done.undo.append(lambda: self._roll_back(group, job, area, move_away))
        try:
            written = self._site.databases.overwrite_database(job, dir_fd=dir_fd, area_fd=area)
        except OSError as error:
            if self._site.best_effort and isinstance(error, PerhapsWritten):
                self._done.undo[-1]()  # earlier steps stay
            if self._site.best_effort or not isinstance(error, PerhapsWritten):
                self._done.undo.pop()
            raise
        if written.how in (Writing.BUSY, Writing.UNSUITABLE):
            self._done.undo.pop()
        if written.how is Writing.BUSY:
            why = "a transaction of this database is open, or a program has it locked"
            raise OSError(errno.EBUSY, why)
        if written.how is Writing.UNSUITABLE:
            return False
        self._done.in_place.update(step.path for step in group.steps.values())
        if written.aside:
            self._done.displaced.append(Displaced(group.base, area, job.aside, None, whole=True))
        if written.how is Writing.IN_USE:
            self._done.in_use.append(group.base)
        return True

    def _known(self, base: bytes) -> dict[bytes, Digest]:
        found = {part: self._site.saved(base + part) for part in _PARTS}
        return {part: e.digest for part, e in found.items() if isinstance(e, FileEntry)}

    def _roll_back(
        self, group: DatabaseGroup, job: DatabaseJob, area: int, move_away: MoveAway
    ) -> None:
        if not group.is_new:
            self._write_back(group, job, area, aside=job.aside in self._site.fs.list_names(area))
            return
        for number, step in sorted(group.steps.items()):  # the database before its log
            move_away(step.path, b"%d.away" % number, area)

    def _write_back(
        self, group: DatabaseGroup, job: DatabaseJob, area: int, *, aside: bool
    ) -> None:
        """Return to the state before the step, even if that was never saved."""
        before = group.steps[group.number].before
        assert isinstance(before, FileEntry)
        slots: dict[bytes, bytes] = {}
        wanted: dict[bytes, Digest] = {}
        if aside:
            slots[b""] = job.aside
            wanted[b""] = Digest(digest_of_file(self._site.fs, area, job.aside))
        else:
            for part in _PARTS:
                entry = self._site.saved(group.base + part)
                if isinstance(entry, FileEntry):
                    slots[part] = BACK + b"%d%s" % (group.number, part)
                    wanted[part] = entry.digest
                    self._site.staging.stage(
                        slots[part], replace(entry, link=None), area, None, None
                    )
            self._site.staging.sync()
        back = replace(
            job,
            slots=slots,
            wanted=wanted,
            known=job.wanted,
            aside=ASIDE + BACK + b"%d" % group.number,
            mode=before.mode,
            mtime_ns=before.mtime_ns,
        )
        dir_fd = self._site.handles.open(parent(group.base))
        why = "other programs have it locked, or it is no longer a database"
        try:
            written = self._site.databases.overwrite_database(back, dir_fd=dir_fd, area_fd=area)
            done = written.how in (Writing.EXACT, Writing.IN_USE)
        except OSError as error:
            done, why = False, error.strerror or str(error)
        if not done:
            raise RestoreFailed(
                f"the restore failed, and {to_text(group.base)} is not rolled back yet: {why}",
                hint="stop the program that uses it; the next command rolls everything back",
            )

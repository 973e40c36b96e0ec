"""Writes a database into a live one in processes that die before their n-th change, for every n.

    python -m tests.support.dying_overwrite DIRECTORY     one JSON line for each death

The directory holds `live/` and `wanted/`, each with `app.db` and what belongs to it. Every death
has a copy of both. Changes are those of SQLite, in its own file layer, and those made beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from holdfast.adapters.local.database_overwrite import overwrite
from holdfast.domain.sqlite_files import JOURNAL, LOG, DatabaseJob, Written
from holdfast.domain.trees.objects import digest_of
from holdfast.testing.faulty_filesystem import SqliteFaults

_CHANGING = ("pwrite", "rename", "unlink", "fsync", "ftruncate", "fchmod", "utime")


class _Deaths(SqliteFaults):
    """Counts, and dies when the number has come."""

    def __init__(self, at: int) -> None:
        super().__init__(0)
        self._at = at

    def before_change(self) -> None:
        self.changes += 1
        if self.changes == self._at:
            os._exit(9)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.before_change()
        super().xDelete(filename, syncdir)


def job_for(wanted: Path, known: Path) -> DatabaseJob:
    return DatabaseJob(
        b"app.db",
        slots={part: b"slot" + part for part in _parts(wanted)},
        wanted={part: digest_of(data) for part, data in _parts(wanted).items()},
        known={part: digest_of(data) for part, data in _parts(known).items()},
        mode=0o640,
        mtime_ns=1_600_000_000_000_000_000,
        patience_s=1.0,
    )


def _parts(directory: Path) -> dict[bytes, bytes]:
    names = {part: directory / f"app.db{part.decode()}" for part in (b"", LOG, JOURNAL)}
    return {part: path.read_bytes() for part, path in names.items() if path.exists()}


def write(live: Path, wanted: Path, area: Path, job: DatabaseJob) -> Written:
    """In this process; the staging area is filled again."""
    for part, slot in job.slots.items():
        shutil.copyfile(wanted / f"app.db{part.decode()}", area / slot.decode())
    dir_fd, area_fd = os.open(live, os.O_RDONLY), os.open(area, os.O_RDONLY)
    try:
        return overwrite(job, dir_fd, area_fd)
    finally:
        os.close(dir_fd)
        os.close(area_fd)


def _die_at(at: int, live: Path, wanted: Path, area: Path, job: DatabaseJob) -> None:
    deaths = _Deaths(at)
    for name in _CHANGING:
        setattr(os, name, _counted(deaths, getattr(os, name)))
    write(live, wanted, area, job)
    os._exit(0)


def _counted(deaths: _Deaths, change: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        deaths.before_change()
        return change(*arguments, **named)

    return counted


def main() -> None:
    root = Path(sys.argv[1])
    job = job_for(root / "wanted", root / "live")
    for at in range(1, 10_000):
        place = root / f"death-{at}"
        shutil.copytree(root / "live", place / "live")
        (place / "area").mkdir()
        child = os.fork()
        if child == 0:
            _die_at(at, place / "live", root / "wanted", place / "area", job)
        died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        shutil.copytree(place / "live", place / "found")
        again = write(place / "live", root / "wanted", place / "area", job)
        print(json.dumps({"at": at, "status": died, "again": again.how}), flush=True)
        if died == 0:
            break


if __name__ == "__main__":
    assert apsw.vfs_names()
    main()

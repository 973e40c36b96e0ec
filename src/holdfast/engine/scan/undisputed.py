"""Files about which there is nothing to decide when a directory that changed is looked at afresh.

    captured by these very rules last time, and of no special kind → asked for all at once
    the system says of it what it said then                        → it is what it was

In a directory of hundreds of files one was created or removed: judging each of the others again is
most of what such a save would cost. Guarantee: a file is kept here only where looking at it by
itself would keep it. Not looked at here: files with notes, with several names or changed a moment
ago, and those that belong to a database as long as it is there.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from holdfast.domain.sqlite_files import COMPANIONS, LOG
from holdfast.engine.scan.directory_state import SPARSE, FileRow
from holdfast.ports.filesystem import Filesystem


def undisputed(
    fs: Filesystem,
    dir_fd: int,
    known: Mapping[bytes, FileRow],
    present: Collection[bytes],
    special: Container[bytes],
) -> dict[bytes, FileRow]:
    """Those of the `known` files that are still what they were; none where the system cannot be
    asked for all at once."""
    with_log = {name.removesuffix(LOG) for name in present if name.endswith(LOG)}
    asked = [
        (name, row)
        for name, row in known.items()
        if name in present
        and not row.flags & ~SPARSE
        and name not in special
        and name not in with_log  # which may have brought it, and then before or after others
        and not name.endswith(COMPANIONS)
    ]
    told = fs.stat_all([name for name, _ in asked], dir_fd=dir_fd)
    if told is None:
        return {}
    looks = zip(asked, fs.stat_numbers(told), strict=True)
    return {name: row for (name, row), now in looks if row[:5] == now}

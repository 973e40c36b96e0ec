"""Another user of the machine, who tries what the permission bits let others do.

    python -m tests.torture.neighbour UID      JSON lists of paths in, JSON lists of successes out

Run by root, the process becomes that user, for good, after it has loaded what it needs. Where the
tests are not root's there is nobody to become: then the bits themselves are judged, of the path
and of every directory above it, by the same names.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.torture.campaign import ROOT

NOBODY = 65534
_READ, _WRITE, _ENTER = 4, 2, 1


class Neighbour:
    """`attempts` tells which tries succeeded: `read /path`, `write /path`, `remove /path`."""

    def __init__(self, process: subprocess.Popen[str] | None) -> None:
        self._process = process

    @property
    def manner(self) -> str:
        return "judged by permission bits" if self._process is None else "tried as another user"

    def attempts(self, paths: Sequence[Path]) -> list[str]:
        if self._process is None:
            return [f"{what} {path}" for path in paths for what in allowed_to_others(path)]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(path) for path in paths]), file=self._process.stdin, flush=True)
        found: list[str] = json.loads(self._process.stdout.readline())
        return found


@contextmanager
def neighbour() -> Iterator[Neighbour]:
    if os.geteuid() != 0:
        yield Neighbour(None)
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.torture.neighbour", str(NOBODY)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Neighbour(process)
    finally:
        process.communicate()


def allowed_to_others(path: Path) -> list[str]:
    """What the bits give to somebody who is neither owner nor in the group."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return []
    above = [parent.stat().st_mode for parent in path.parents]
    if not all(mode & _ENTER for mode in above):
        return []
    found = []
    if not stat.S_ISLNK(status.st_mode):
        found += ["read"] if status.st_mode & _READ else []
        found += ["write"] if status.st_mode & _WRITE else []
    if above[0] & _WRITE and not above[0] & stat.S_ISVTX:
        found.append("remove")
    return found


def _tries(path: str) -> list[tuple[str, Callable[[], object]]]:
    is_directory = os.path.isdir(path)

    def read() -> None:
        if is_directory:
            os.listdir(path)
        else:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW))

    def write() -> None:
        if is_directory:
            name = os.path.join(path, "planted")
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT))
            os.unlink(name)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))

    def remove() -> None:
        os.rename(path, path + ".theirs")
        os.rename(path + ".theirs", path)

    return [
        ("read", read),
        ("write", write),
        ("change the mode of", lambda: os.chmod(path, 0o777)),
        ("remove", remove),
    ]


def _succeeded(paths: list[str]) -> list[str]:
    found = []
    for path in paths:
        for what, attempt in _tries(path):
            try:
                attempt()
            except OSError:
                continue
            found.append(f"{what} {path}")
    return found


def main() -> None:
    uid = int(sys.argv[1])
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    for line in sys.stdin:
        print(json.dumps(_succeeded(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

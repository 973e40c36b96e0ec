"""A process that turns a directory into a link out of the workspace, and back, until told to end.

    python -m tests.torture.racer OUTSIDE SPARE DIRECTORY

Two ways by turns: directory and link trade places at once (renameat2), and in four renames between
which nothing, or the other, stands there. Says `ready`, goes on until its input ends, then puts the
directory back and prints how often a link came to stand in its place.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.campaign import ROOT

_EXCHANGE = 2
_HERE = -100
_SWAPS_A_LOOK = 50


class Racer:
    """The test's side. `swaps` is known once it has ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.swaps = 0

    def end(self) -> None:
        out, _ = self._process.communicate("")
        self.swaps = int(out)


@contextmanager
def racing(outside: Path, spare: Path, directory: Path) -> Iterator[Racer]:
    command = [sys.executable, "-m", "tests.torture.racer"]
    process = subprocess.Popen(
        [*command, str(outside), str(spare), str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    racer = Racer(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield racer
    finally:
        racer.end()


class _Swapper:
    """One directory, its link, and a spare place for each."""

    def __init__(self, directory: Path, link: Path, outside: Path) -> None:
        self._directory, self._link = os.fsencode(directory), os.fsencode(link)
        self._aside = self._link + b".aside"
        self._outside = os.fsencode(outside)
        self._libc = ctypes.CDLL(None)
        os.symlink(self._outside, self._link)
        self.swaps = 0

    def _exchange(self) -> bool:
        done = self._libc.renameat2(_HERE, self._directory, _HERE, self._link, _EXCHANGE) == 0
        return bool(done)

    def swap(self) -> None:
        if self._exchange():
            self.swaps += os.path.islink(self._directory)
            self._exchange()
        with contextlib.suppress(OSError):
            os.rename(self._directory, self._aside)
            os.rename(self._link, self._directory)
            self.swaps += 1
            os.rename(self._directory, self._link)
            os.rename(self._aside, self._directory)
        self._mend()

    def _mend(self) -> None:
        """A restore takes part: it may have moved the link away, or made a directory anew."""
        with contextlib.suppress(OSError):
            if not os.path.lexists(self._directory):
                held = self._aside if os.path.isdir(self._aside) else self._link
                if not os.path.islink(held):
                    os.rename(held, self._directory)
            for spare in (self._aside, self._link):
                if os.path.lexists(self._directory) and not os.path.islink(spare):
                    shutil.rmtree(spare, ignore_errors=True)
            if not os.path.lexists(self._link):
                os.symlink(self._outside, self._link)

    def end(self) -> None:
        with contextlib.suppress(OSError):
            if os.path.islink(self._directory):
                os.unlink(self._directory)
        self._mend()


def main() -> None:
    outside, spare, directory = map(Path, sys.argv[1:])
    swapper = _Swapper(directory, spare / "link", outside)
    print("ready", flush=True)
    while not select.select([0], [], [], 0)[0]:
        for _ in range(_SWAPS_A_LOOK):
            swapper.swap()
    swapper.end()
    print(swapper.swaps, flush=True)


if __name__ == "__main__":
    main()

"""Wall time of the commands as a script or a hook pays it: interpreter start included.

Each round changes five files and runs each command after a bare interpreter, whose time it is
compared with. No daemon runs. In the end the last checkpoint is restored through the command line
and verified.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from bench import edits, trees, verify
from bench.contest import Book
from bench.measure import over_bare, timed
from bench.operations import FILES_CHANGED, FLOOR
from bench.peers import HOLDFAST
from bench.processes import Failed, run

HELP = "command line: --help"
CHECKPOINT = "command line: checkpoint, 5 files"
STATUS = "command line: status"
LOG = "command line: log"
LIMITS_OVER_BARE_S = {CHECKPOINT: 0.09, STATUS: 0.11, LOG: 0.11, HELP: 0.03}
LIMIT_S = 60.0


class CommandLine:
    """The installed command on a copy of one tree, with a store of its own."""

    def __init__(self, base: Path, work: Path) -> None:
        self._base = base
        self._tree = work / "command-line-tree"
        self._home = {"HOLDFAST_HOME": str(work / "command-line-home")}
        trees.copy(base, self._tree)
        self._expected = verify.fingerprint(base)
        self._last = ""

    def measure(self, rounds: int) -> Book:
        """Time the commands; the bare interpreter is booked as their floor."""
        book = Book()
        commands: dict[str, Callable[[], object]] = {
            HELP: self._help,
            STATUS: lambda: self._holdfast("status"),
            CHECKPOINT: self._checkpoint,
            LOG: lambda: self._holdfast("log"),
        }
        try:
            self._checkpoint()
            for number in range(rounds):
                changes = self._change(number)
                for operation, command in commands.items():
                    bare_s = timed(lambda: self._run(sys.executable, "-c", "pass"))
                    command_s = timed(command)
                    book.at(operation, FLOOR).samples.append(bare_s)
                    book.at(operation, HOLDFAST.title).samples.append(command_s)
                    book.at(over_bare(operation), HOLDFAST.title).samples.append(command_s - bare_s)
                if number == rounds - 1:
                    self._prove(changes, book)
                self._undo()
        except (Failed, ValueError, KeyError) as error:
            for operation in commands:
                book.at(operation, HOLDFAST.title).fault(str(error))
                book.at(over_bare(operation), HOLDFAST.title).fault(str(error))
        return book

    def _run(self, *command: str) -> bytes:
        return run(command, cwd=self._tree, environment=self._home, limit_s=LIMIT_S)

    def _help(self) -> None:
        self._run(sys.executable, "-m", "holdfast", "--help")

    def _holdfast(self, *arguments: str) -> bytes:
        place = ("--json", "-C", str(self._tree))
        return self._run(sys.executable, "-m", "holdfast", *arguments, *place)

    def _checkpoint(self) -> None:
        self._last = json.loads(self._holdfast("checkpoint", "bench"))["id"]

    def _change(self, number: int) -> list[edits.FileEdit]:
        changes = edits.burst(self._base, self._expected, FILES_CHANGED, f"command {number}")
        edits.apply(self._tree, changes)
        return changes

    def _undo(self) -> None:
        found = verify.fingerprint(self._tree, HOLDFAST.own_names)
        verify.mend(self._tree, self._base, self._expected, found)

    def _prove(self, changes: list[edits.FileEdit], book: Book) -> None:
        """Wreck what the last checkpoint saved, restore it, compare."""
        self._undo()
        self._holdfast("restore", self._last, "--yes")
        found = verify.fingerprint(self._tree, HOLDFAST.own_names)
        wrong = verify.difference(edits.after(self._expected, changes), found)
        if wrong:
            book.at(CHECKPOINT, HOLDFAST.title).fault(f"saved wrongly: {wrong}")

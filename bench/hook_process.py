"""Wall time of an agent's hook as the agent waits for it: a process, answered by a running daemon.

Each round changes five files, then runs the bare interpreter and the hook before a command, in
turn; so do `status` and `log`, which may ask the daemon. Then it changes the files back, and runs
the hook after the command. The hook is started as its installed script starts it. In the end the
last checkpoint before a command is restored and verified.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import edits, trees, verify
from bench.contest import Book
from bench.measure import over_bare, timed
from bench.operations import FILES_CHANGED, FLOOR
from bench.peers import HOLDFAST
from bench.processes import Failed, run

HOOK = "hook before a command, daemon running, 5 files"
HOOK_AFTER = "hook after a command, daemon running, 5 files"
STATUS = "command line: status, daemon running"
LOG = "command line: log, daemon running"
LIMIT_S = 60.0
COMMAND = (sys.executable, "-m", "holdfast")
SCRIPT = "from holdfast.__main__ import run; raise SystemExit(run())"
SESSION = "bench"


class HookProcess:
    """A hook on a copy of one tree, with a store and a daemon of its own."""

    def __init__(self, base: Path, work: Path) -> None:
        self._base = base
        self._tree = work / "hook-tree"
        # A socket's path may not be long.
        self._runtime = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
        self._variables = {
            "HOLDFAST_HOME": str(work / "hook-home"),
            "HOLDFAST_DAEMON": "on",
            "XDG_RUNTIME_DIR": str(self._runtime),
        }
        trees.copy(base, self._tree)
        self._expected = verify.fingerprint(base)

    def measure(self, rounds: int) -> Book:
        """Time the hook; the bare interpreter is booked as its floor."""
        from holdfast.interfaces.daemon.client import NoDaemon

        book = Book()
        try:
            served = self._ask("ping")
            # The tree is no project, which a hook that makes a store for it would tell.
            self._run(sys.executable, "-m", "holdfast", "init")
            self._hook(-1)
            for number in range(rounds):
                changes = self._change(number)
                commands: dict[str, Callable[[], object]] = {
                    HOOK: partial(self._hook, number),
                    STATUS: partial(self._run, *COMMAND, "status", "--json"),
                    LOG: partial(self._run, *COMMAND, "log", "--json"),
                }
                for operation, command in commands.items():
                    self._time(operation, command, book)
                if number == rounds - 1:
                    self._prove(changes, book)
                self._undo()
                self._time(HOOK_AFTER, partial(self._hook, number, "PostToolUse"), book)
            if self._ask("status")["pid"] != served["pid"]:
                raise Failed("the daemon did not last")
        except (Failed, NoDaemon, ValueError, KeyError) as error:
            for operation in (HOOK, HOOK_AFTER, STATUS, LOG):
                book.at(operation, HOLDFAST.title).fault(str(error))
                book.at(over_bare(operation), HOLDFAST.title).fault(str(error))
        finally:
            self._end()
        return book

    def _time(self, operation: str, command: Callable[[], object], book: Book) -> None:
        bare_s = timed(lambda: self._run(sys.executable, "-c", "pass"))
        command_s = timed(command)
        book.at(operation, FLOOR).samples.append(bare_s)
        book.at(operation, HOLDFAST.title).samples.append(command_s)
        book.at(over_bare(operation), HOLDFAST.title).samples.append(command_s - bare_s)

    def _ask(self, request: str) -> dict[str, object]:
        from holdfast.interfaces.daemon.client import ask

        return ask(request, environment={**os.environ, **self._variables}, start=True)

    def _end(self) -> None:
        from holdfast.interfaces.daemon.client import NoDaemon, ask

        with contextlib.suppress(NoDaemon):
            ask("stop", environment={**os.environ, **self._variables})
        # The daemon answers first and removes its socket then: either of us may be first.
        shutil.rmtree(self._runtime, ignore_errors=True)

    def _run(self, *command: str, stdin: bytes = b"") -> bytes:
        return run(
            command, cwd=self._tree, environment=self._variables, stdin=stdin, limit_s=LIMIT_S
        )

    def _hook(self, number: int, name: str = "PreToolUse") -> None:
        event = {
            "session_id": SESSION,
            "cwd": str(self._tree),
            "hook_event_name": name,
            "tool_name": "Bash",
            "tool_input": {"command": f"make target{number}"},
            "tool_use_id": f"bench-{number}",
        }
        command = (sys.executable, "-c", SCRIPT, "hook", "claude-code")
        if json.loads(self._run(*command, stdin=json.dumps(event).encode())) != {}:
            raise Failed("the hook answered with something to say")

    def _change(self, number: int) -> list[edits.FileEdit]:
        changes = edits.burst(self._base, self._expected, FILES_CHANGED, f"hook {number}")
        edits.apply(self._tree, changes)
        return changes

    def _undo(self) -> None:
        found = verify.fingerprint(self._tree, HOLDFAST.own_names)
        verify.mend(self._tree, self._base, self._expected, found)

    def _prove(self, changes: list[edits.FileEdit], book: Book) -> None:
        """Wreck what the last event saved, restore it, compare."""
        self._undo()
        place = ("--json", "-C", str(self._tree), "--session", SESSION)
        self._run(sys.executable, "-m", "holdfast", "restore", "HEAD", "--yes", *place)
        found = verify.fingerprint(self._tree, HOLDFAST.own_names)
        wrong = verify.difference(edits.after(self._expected, changes), found)
        if wrong:
            book.at(HOOK, HOLDFAST.title).fault(f"saved wrongly: {wrong}")

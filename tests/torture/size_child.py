"""A process of its own that saves, changes and restores something large, and tells its memory.

    python -m tests.torture.size_child WORKSPACE CHANGE...

Each CHANGE is a small piece of Python that changes the workspace; that is saved, and taken back.
Told as JSON: the most memory of each step beyond what was there before, in bytes; and of every
change how many bytes it stored, and whether the restore brought every name and byte back.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import blake3

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.repair.check import run_checks
from holdfast.engine.settings import set_setting
from holdfast.ports.progress import NoProgress

_BLOCK = 1 << 20
_SESSION = SessionId("s")
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_FORGET_THE_PEAK = "5"


def _peak_bytes() -> int:
    """The most memory this process had; `ru_maxrss` would count that of its parent as well."""
    if _STATUS.exists():
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes, on macOS


@contextmanager
def _measured(steps: dict[str, int], name: str, before: int) -> Iterator[None]:
    """What a step needed at most, without the steps before it where the system can forget those."""
    if _CLEAR.exists():
        _CLEAR.write_text(_FORGET_THE_PEAK)
    yield
    steps[name] = max(steps.get(name, 0), _peak_bytes() - before)


def _fingerprint(workspace: Path) -> str:
    """Of all names and bytes below, by no code of ours; it holds one directory at a time."""
    digest = blake3.blake3()
    for directory, below, names in os.walk(workspace):
        below[:] = sorted(name for name in below if name != ".holdfast")
        for name in sorted(names):
            path = os.path.join(directory, name)
            digest.update(b"%d %d " % (len(path), os.stat(path).st_size) + os.fsencode(path))
            with open(path, "rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
    return digest.hexdigest()


def main() -> None:
    workspace, changes = Path(sys.argv[1]), sys.argv[2:]
    with open_workspace(workspace, create=True) as opened:
        engine = opened.engine
        set_setting(engine, "max_file_size", "1 TB")
        set_setting(engine, "budget", "1 TB")
    memory: dict[str, int] = {}
    stored, changed, back = [], [], []
    with open_workspace(workspace, create=False) as opened:
        engine = opened.engine
        before = _peak_bytes()
        with _measured(memory, "save", before):
            first = engine.save(_SESSION, make_intent("first")).checkpoint
        was = _fingerprint(workspace)
        for change in changes:
            exec(change, {"workspace": workspace})
            with _measured(memory, "save", before):
                outcome = engine.save(_SESSION, make_intent("changed"))
            stored.append(outcome.bytes_stored)
            changed.append(outcome.checkpoint.tree != first.tree)
            with _measured(memory, "restore", before):
                engine.restore(engine.restore_request(_SESSION, first.id))
            back.append(_fingerprint(workspace) == was)
        with _measured(memory, "check", before):
            problems = list(run_checks(engine.vault, data=True, progress=NoProgress()))
        told = {
            "memory": memory,
            "stored": stored,
            "changed": changed,
            "back": back,
            "problems": [problem.problem for problem in problems],
        }
        print(json.dumps(told))


if __name__ == "__main__":
    main()

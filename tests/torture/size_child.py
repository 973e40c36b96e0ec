"""A process of its own that saves, changes and restores something large, and tells its memory.

    python -m tests.torture.size_child WORKSPACE CHANGE

CHANGE is a small piece of Python that changes the workspace between the two checkpoints. Told as
JSON: the most memory beyond what was there before, in bytes, and how much each checkpoint stored.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from holdfast.bootstrap import open_workspace
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from holdfast.engine.check import run_checks
from holdfast.ports.progress import NoProgress

_SESSION = SessionId("s")
_STATUS = Path("/proc/self/status")


def _peak_bytes() -> int:
    """The most memory this process had; `ru_maxrss` would count that of its parent as well."""
    if _STATUS.exists():
        lines = _STATUS.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in bytes, on macOS


def main() -> None:
    workspace, change = Path(sys.argv[1]), sys.argv[2]
    with open_workspace(workspace, create=True) as opened:
        engine = opened.engine
        engine.set_setting("max_file_size", "1 TB")
        engine.set_setting("budget", "1 TB")
    with open_workspace(workspace, create=False) as opened:
        engine = opened.engine
        before = _peak_bytes()
        first = engine.save(_SESSION, make_intent("first"))
        exec(change, {"workspace": workspace})
        second = engine.save(_SESSION, make_intent("second"))
        saved = _peak_bytes() - before
        engine.restore(engine.restore_request(_SESSION, first.checkpoint.id))
        restored = _peak_bytes() - before
        problems = list(run_checks(engine.vault, data=True, progress=NoProgress()))
        told = {
            "memory": _peak_bytes() - before,
            "saved": saved,
            "restored": restored,
            "files": first.checkpoint.files,
            "first": first.bytes_stored,
            "second": second.bytes_stored,
            "problems": [problem.problem for problem in problems],
        }
        print(json.dumps(told))


if __name__ == "__main__":
    main()

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


def _peak_bytes() -> int:
    """Linux counts in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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
        engine.restore(engine.restore_request(_SESSION, first.checkpoint.id))
        problems = list(run_checks(engine.vault, data=True, progress=NoProgress()))
        told = {
            "memory": _peak_bytes() - before,
            "files": first.checkpoint.files,
            "first": first.bytes_stored,
            "second": second.bytes_stored,
            "problems": [problem.problem for problem in problems],
        }
        print(json.dumps(told))


if __name__ == "__main__":
    main()

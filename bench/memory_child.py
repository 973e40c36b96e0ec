"""One process that opens a session, saves twice, and prints the memory each save took above what it
began with.

Run by `bench.memory`. The peak is the kernel's high-water mark, reset just before each save, so
that neither the imports nor the process that started this one are counted.
"""

import json
import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


def peak_bytes() -> int:
    """The most memory held since the last reset, or ever, where the system knows no reset."""
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def reset_peak() -> None:
    if RESET.exists():
        RESET.write_text("5")


def main() -> None:
    from holdfast import SessionCheckpointer

    tree, change = Path(sys.argv[1]), Path(sys.argv[2])
    session = SessionCheckpointer(tree, "memory")
    extra = []
    for reason in ("first", "second"):
        reset_peak()
        before = peak_bytes()
        session.checkpoint(reason)
        extra.append(peak_bytes() - before)
        change.write_bytes(change.read_bytes() + b"\n# changed\n")
    print(json.dumps({"first": extra[0], "second": extra[1]}))
    session.close()


if __name__ == "__main__":
    main()

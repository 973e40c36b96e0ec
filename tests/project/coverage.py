"""How much of the package the tests execute, from the figures that SlipCover recorded.

python -m tests.project.coverage FILE     print the figures; fail if too few lines were executed

Only the processes of the test run are measured. Most commands are called inside them; what runs in
a process of its own alone (the daemon's start, killed writers) counts as not executed. The bound is
for Linux: other systems leave tests out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

LEAST_LINES = 0.90
"""The share of lines that must be executed. Branches are not counted: each worker would translate
every module anew, which takes as long as a hundred tests."""


def figures(recorded: dict[str, int]) -> tuple[float, str]:
    """The share of executed lines, and the sentence for people."""
    covered, missing = recorded["covered_lines"], recorded["missing_lines"]
    share = covered / (covered + missing)
    return share, f"coverage: {share:.1%} of {covered + missing:,} lines"


def main(file: str) -> int:
    """Print the figures; 1 if the bound is broken."""
    lines, sentence = figures(json.loads(Path(file).read_text("utf-8"))["summary"])
    print(sentence)
    if lines < LEAST_LINES and sys.platform == "linux":
        print(f"error: the tests must execute {LEAST_LINES:.0%} of the lines", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""The public inspector and conformance suite, where `make` could install them.

Their Node is newer than many systems have. Missing tools are reported in the first lines of a run,
and the tests that need them are not collected.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PLACE = "HOLDFAST_PUBLIC_TOOLS"


@dataclass(frozen=True, slots=True)
class PublicTools:
    """Programs of one directory; `why_not` says why there are none."""

    directory: Path
    why_not: str | None = None

    def run(
        self, name: str, *arguments: str, environment: Mapping[str, str], cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        bins = (
            self.directory / "node_modules" / ".bin",
            self.directory / "runtime" / "node_modules" / "node" / "bin",
        )
        path = os.pathsep.join((*map(str, bins), os.environ["PATH"]))
        return subprocess.run(
            [str(bins[0] / name), *arguments],
            env={**environment, "PATH": path},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=600,
        )


def _found() -> PublicTools:
    directory = Path(os.environ.get(_PLACE) or _ROOT / ".venv" / "public-tools")
    if (directory / "ready").exists():
        return PublicTools(directory)
    try:
        why_not = (directory / "why-not").read_text().strip()
    except OSError:
        why_not = f"they are not installed in {directory}; make test does that"
    return PublicTools(directory, why_not)


# Looked up when the run begins: the tests themselves see an environment without user data.
PUBLIC_TOOLS = _found()

"""What one part of a shell command may destroy: a grade and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class RiskGrade(IntEnum):
    NONE = 0
    NOTABLE = 1
    RISKY = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a command may do. `target` is the file it would replace; the finding counts
    only if that exists. `command` is the part of the script that does it. `keeps_content`: only
    permissions or owners change. `shown` is the path in `reason`, if that is not the target."""

    grade: RiskGrade
    reason: str
    target: str = ""
    command: str = ""
    keeps_content: bool = False
    shown: str = ""

    @property
    def gravity(self) -> tuple[int, bool, bool]:
        """A sort key within one grade: lost content counts more, and so does more than one file."""
        return (self.grade, not self.keeps_content, not self.target)


def risky(reason: str, shown: str = "") -> Finding:
    return Finding(RiskGrade.RISKY, reason, shown=shown)


def notable(reason: str, shown: str = "") -> Finding:
    return Finding(RiskGrade.NOTABLE, reason, shown=shown)

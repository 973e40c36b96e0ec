"""The state machine of rounds as a diagram, made from the table that the code runs on.

python -m tests.project.round_diagram --write     draw it again in docs/guides/rounds.md
"""

from __future__ import annotations

import re
import sys

from holdfast.domain.sessions import ENDINGS, RoundStatus
from tests.project.repository import ROOT

GUIDE = ROOT / "docs" / "guides" / "rounds.md"
_PLACE = re.compile(r"(<!-- made by [^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def diagram() -> str:
    active = RoundStatus.ACTIVE.word
    width = max(len(operation.value) for operation in ENDINGS)
    lines = ["```text"]
    for operation, status in ENDINGS.items():
        lines.append(f"{active} ── {operation.value:<{width}} ──▶ {status.word}")
    return "\n".join([*lines, "```"]) + "\n"


def drawn(text: str) -> str:
    """The document with the diagram of now in its place."""
    return _PLACE.sub(lambda place: place[1] + diagram() + place[3], text)


if __name__ == "__main__" and "--write" in sys.argv:
    GUIDE.write_text(drawn(GUIDE.read_text("utf-8")), "utf-8")

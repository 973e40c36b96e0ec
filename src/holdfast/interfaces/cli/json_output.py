"""JSON as `--json` prints it: in ASCII, so that any terminal and any locale can carry it."""

from __future__ import annotations

import json
from typing import Any


def dumps(value: Any, *, indent: bool = False) -> str:
    return json.dumps(value, indent=2 if indent else None)

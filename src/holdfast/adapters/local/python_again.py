"""Starting Python once more, for work that needs a process of its own."""

from __future__ import annotations

import json
import os
import sys


def command_for(program: str) -> list[str]:
    """A program whose first argument is where modules are found: where ours were, whatever led
    there, but never the current directory, which may be a workspace of whomever."""
    places = [place for place in sys.path if isinstance(place, str) and os.path.isabs(place)]
    return [sys.executable, "-P", "-c", program, json.dumps(places)]

"""Lets SlipCover count each line once in the workers of a run too, as `--immediate` asks for.

Its plugin for workers does not pass that option on, and what it does instead costs a quarter of the
run: again and again it searches every module and the frames of all threads for functions to
replace. Before Python 3.12 that search can also stop for ever: if it collects garbage while it
holds the lock on all threads, Hypothesis's callback lets a thread run that waits for this lock.

Loaded with `-p`, which comes before the plugin of SlipCover.
"""

from __future__ import annotations

from functools import partialmethod
from importlib import import_module
from typing import Any

counter: Any = import_module("slipcover").Slipcover
counter.__init__ = partialmethod(counter.__init__, immediate=True)

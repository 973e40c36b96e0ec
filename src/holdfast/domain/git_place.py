"""Where a repository was at a checkpoint, in a few words: `main@1a2b3c4d5e, 3 dirty`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHORT = 7


def git_place(facts: Mapping[str, Any]) -> str | None:
    """From what the component recorded; None where there was no repository, or nothing usable."""
    head = facts.get("head")
    if not isinstance(head, Mapping):
        return None
    ref, commit = head.get("ref"), head.get("commit")
    branch = str(ref).removeprefix("refs/heads/") if ref else "detached"
    words = f"{branch}@{str(commit)[:_SHORT]}" if commit else f"{branch}, no commit yet"
    dirty = facts.get("dirty_count")
    if isinstance(dirty, int) and dirty:
        words += f", {dirty} dirty"
    return words

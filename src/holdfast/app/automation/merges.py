"""A checkpoint when another branch was merged into the main one (AU-4).

    the main branches now, and as noted when last looked → HEAD's has moved by a merge → save → note

The note lies in the store: whoever looks next, in whatever process, compares with it. It is written
after the checkpoint is durable, so that a merge is kept at least once; a note that is lost costs
one merge that is not told apart from other work.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Kind

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import SessionId
    from holdfast.domain.outcomes import SaveOutcome

NAME = "main-branches"
_LARGEST = 64 << 10
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class MergeLook:
    """What came of a look; `under_way`: a merge will end, and no file may tell when."""

    kept: SaveOutcome | None = None
    under_way: bool = False


def keep_merge(opened: OpenWorkspace, session: SessionId) -> MergeLook:
    """Save the workspace if a branch has been merged since anybody looked last."""
    vault = opened.engine.vault
    if not vault.settings.auto_merge:
        return MergeLook()
    from holdfast.components.git.merges import gained, main_branches

    found = main_branches(vault.workspace, vault.settings.auto_merge)
    if found is None:
        return MergeLook()
    path = opened.store.directory / NAME
    noted = _read(path)
    fresh = {name: tip for name, tip in found.tips.items() if name not in noted}
    branch, known = found.current, noted.get(found.current or "")
    if branch is None or known is None or known == found.tips[branch]:
        if fresh:
            _write(path, noted | fresh)
        return MergeLook(under_way=found.under_way)
    with vault.lock.hold():
        if _read(path).get(branch) == found.tips[branch]:
            return MergeLook(under_way=found.under_way)  # somebody else was first
        kept = None
        words = gained(found, branch, known, opened.environment)
        if words is not None:
            from holdfast.domain.intent import make_intent

            intent = make_intent(words, confidence=1.0)
            kept = opened.engine.save(session, intent, kind=Kind.MERGE)
        _write(path, noted | fresh | {branch: found.tips[branch]})
    return MergeLook(kept, found.under_way)


def _read(path: Path) -> dict[str, str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            noted = json.loads(file.read(_LARGEST))
        return {str(k): v for k, v in noted.items() if _COMMIT.fullmatch(v)}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _write(path: Path, noted: Mapping[str, str]) -> None:
    """Whole or not at all; not synced, since no content depends on it."""
    new = path.with_name(f".{NAME}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        fd = os.open(new, flags, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(json.dumps(noted).encode())
        os.replace(new, path)

"""A checkpoint after another branch was merged into the main one (AU-4).

    the main branches now, and as last noted → HEAD's has moved by a merge → save → note

The note is in the store, so the next process compares with it. It is written after the checkpoint
is durable, so that a merge is saved at least once. If the note is lost, one merge is saved as
ordinary work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.app.automation.json_notes import read_hint, write_hint
from holdfast.domain.checkpoints import Kind

if TYPE_CHECKING:
    from holdfast.app.open_workspace import OpenWorkspace
    from holdfast.domain.ids import SessionId
    from holdfast.domain.outcomes import SaveOutcome
    from holdfast.ports.store import Hints

NAME = "main-branches"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class MergeLook:
    """The result of a look. `under_way`: a merge is unfinished, and its end may change no file."""

    kept: SaveOutcome | None = None
    under_way: bool = False


def keep_merge(opened: OpenWorkspace, session: SessionId) -> MergeLook:
    """Save the workspace if a branch has been merged since the last check."""
    vault = opened.engine.vault
    if not vault.settings.auto_merge:
        return MergeLook()
    repository = vault.open_repository()
    found = repository.main_branches(vault.workspace, vault.settings.auto_merge)
    if found is None:
        return MergeLook()
    noted = _read(vault.parts.hints)
    fresh = {name: tip for name, tip in found.tips.items() if name not in noted}
    branch, known = found.current, noted.get(found.current or "")
    if branch is None or known is None or known == found.tips[branch]:
        if fresh:
            write_hint(vault.parts.hints, NAME, noted | fresh)
        return MergeLook(under_way=found.under_way)
    with vault.lock.hold():
        if _read(vault.parts.hints).get(branch) == found.tips[branch]:
            return MergeLook(under_way=found.under_way)  # another process was first
        kept = None
        tip = found.tips[branch]
        words = repository.merged_into(vault.workspace, branch, since=known, tip=tip)
        if words is not None:
            from holdfast.domain.intent import make_intent

            intent = make_intent(words, confidence=1.0)
            kept = opened.engine.save(session, intent, kind=Kind.MERGE)
        write_hint(vault.parts.hints, NAME, noted | fresh | {branch: found.tips[branch]})
    return MergeLook(kept, found.under_way)


def _read(hints: Hints) -> dict[str, str]:
    noted = read_hint(hints, NAME)
    try:
        return {str(k): v for k, v in noted.items() if _COMMIT.fullmatch(v)}
    except (TypeError, AttributeError):
        return {}

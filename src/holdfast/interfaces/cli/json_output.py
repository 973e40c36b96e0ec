"""What `--json` prints: the shapes that scripts rely on.

Paths that are not UTF-8 become text with surrogate escapes, written in ASCII: `os.fsencode` of the
parsed text gives the bytes back, and the same text is accepted as an argument. Times are ISO 8601
in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.domain.paths import to_text
from holdfast.domain.remarks import remarks_in
from holdfast.interfaces.cli.wording import iso

if TYPE_CHECKING:
    from holdfast.domain.changes import Change
    from holdfast.domain.checkpoints import Checkpoint, Skipped
    from holdfast.domain.git_drift import GitDrift
    from holdfast.domain.git_place import PresentGit
    from holdfast.domain.messages import Annotation
    from holdfast.domain.outcomes import PathProblem, RestoreOutcome, SaveOutcome
    from holdfast.domain.restore_plans import Blocked, Kept, Missing, RestorePlan, Step


def dumps(value: Any, *, indent: bool = False) -> str:
    return json.dumps(value, indent=2 if indent else None)


def checkpoint(found: Checkpoint) -> dict[str, Any]:
    """What every listing of a checkpoint begins with."""
    return {
        "id": found.id,
        "name": found.name,
        "session_id": found.session_id,
        "kind": found.kind.value,
        "created_at": iso(found.created_at),
        "parent": found.parent,
        "confidence": found.intent.confidence,
        "files": found.files,
        "bytes": found.size_bytes,
        "changed": found.changed.to_dict(),
    }


def checkpoint_with_intent(found: Checkpoint, *, is_head: bool) -> dict[str, Any]:
    """A checkpoint as `log` and `show` tell it."""
    from holdfast.domain.selections import selection_of

    intent, selected = found.intent, selection_of(found)
    return checkpoint(found) | {
        "reasoning": intent.reasoning,
        "goal_id": intent.goal_id,
        "task_id": intent.task_id,
        "tags": list(intent.tags),
        "partial": found.partial,
        "restores_from": found.restores_from,
        "selected": None if selected is None else [to_text(path) for path in selected.paths],
        "is_head": is_head,
    }


def saved(outcome: SaveOutcome, elapsed_ms: float) -> dict[str, Any]:
    return checkpoint(outcome.checkpoint) | {
        "skipped": skipped(outcome.skipped),
        "deduplicated": outcome.deduplicated,
        "elapsed_ms": elapsed_ms,
        "warnings": list(outcome.warnings),
        "remarks": remarks_in(outcome.warnings),
        "partial": outcome.checkpoint.partial,
        "degraded": list(outcome.degraded),
    }


def annotation(one: Annotation) -> dict[str, Any]:
    return {
        "number": one.number,
        "revision": one.revision,
        "text": one.text,
        "author": one.author,
        "at": iso(datetime.fromtimestamp(one.at_ns / 1e9, tz=UTC)),
    }


def skipped(paths: Iterable[Skipped]) -> list[dict[str, Any]]:
    return [
        {"path": to_text(s.path), "reason": s.reason.value}
        | ({"detail": s.detail} if s.detail else {})
        | ({"failed": True} if s.reason.is_failure else {})
        for s in paths
    ]


def restored(
    outcome: RestoreOutcome, elapsed_ms: float, git_now: PresentGit | None
) -> dict[str, Any]:
    return {
        "restored_to": outcome.restored_to,
        "safety_checkpoint": outcome.safety if outcome.recorded else None,
        **_steps(outcome.steps),
        "skipped": _problems(outcome.skipped),
        "conflicts": _problems(outcome.conflicts),
        "verified": outcome.verified,
        "compared": outcome.compared,
        "elapsed_ms": elapsed_ms,
        "kept": _problems(outcome.kept),
        "missing": _problems(outcome.missing),
        "warnings": list(outcome.warnings),
        "remarks": remarks_in(outcome.warnings),
        "components": [
            {"name": c.name, "mode": c.mode, "status": c.status}
            | ({"detail": c.detail} if c.detail else {})
            for c in outcome.components
        ],
        "git": drifted(outcome.git),
        "git_now": None if git_now is None else git_now.as_data(),
        "dry_run": False,
    }


def planned(
    target: Checkpoint,
    plan: RestorePlan,
    elapsed_ms: float,
    git_now: PresentGit | None,
    *,
    best_effort: bool,
) -> dict[str, Any]:
    """The same for a restore that did not happen."""
    blocked = _problems(plan.blocked)
    return {
        "restored_to": target.id,
        "safety_checkpoint": None,
        **_steps(plan.steps),
        "skipped": blocked if best_effort else [],
        "conflicts": [] if best_effort else blocked,
        "verified": None,
        "compared": None,
        "elapsed_ms": elapsed_ms,
        "kept": _problems(plan.kept),
        "missing": _problems(plan.missing),
        "warnings": list(plan.warnings),
        "remarks": remarks_in(plan.warnings),
        "components": [
            {"name": c.name, "mode": c.mode, "actions": list(c.actions), "blocked": list(c.blocked)}
            | ({"choices": dict(c.choices)} if c.choices else {})
            for c in plan.components
        ],
        "git": drifted(plan.git),
        "git_now": None if git_now is None else git_now.as_data(),
        "dry_run": True,
    }


def drifted(git: GitDrift | None) -> dict[str, Any] | None:
    """Where HEAD is, if that is elsewhere than at the checkpoint."""
    if git is None:
        return None
    from holdfast.domain.git_drift import OFFERED

    return {
        "then": {"branch": git.then.branch, "commit": git.then.commit},
        "now": {"branch": git.now.branch, "commit": git.now.commit},
        "changed_files": git.changed_files,
        "modes": list(OFFERED),
    }


def _steps(steps: Iterable[Step]) -> dict[str, Any]:
    from holdfast.interfaces.cli.step_counts import count_steps

    steps = list(steps)
    counts = count_steps(steps)
    return {
        "operations": [{"type": step.type.value, "path": to_text(step.path)} for step in steps],
        "created": counts.created,
        "restored": counts.restored,
        "deleted": counts.deleted,
    }


def _problems(problems: Iterable[PathProblem | Kept | Blocked | Missing]) -> list[dict[str, str]]:
    return [{"path": to_text(p.path), "reason": p.reason} for p in problems]


def change(found: Change) -> dict[str, Any]:
    described = {"path": to_text(found.path), "change": found.type.value}
    if found.old_path is not None:
        described["old_path"] = to_text(found.old_path)
    return described

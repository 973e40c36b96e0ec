"""Upkeep as data: repairs, cleanups and purges."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

from holdfast.domain.paths import to_text

if TYPE_CHECKING:
    from holdfast.api.stores import StoreWithoutWorkspace
    from holdfast.api.upkeep import PurgePlan, RepairOutcome, TextPurgePlan
    from holdfast.domain.purges import Holder, PurgeOutcome, PurgeProof
    from holdfast.domain.retention import Decision


class RepairStepView(TypedDict):
    """One step of a repair; `lost` lists losses."""

    type: str
    subject: str
    why: str
    lost: list[str]


class RepairView(TypedDict):
    """A repair or, if not `done`, its plan."""

    ok: bool
    done: bool
    steps: list[RepairStepView]
    lost: list[str]


class DecisionView(TypedDict):
    """What the retention rules decide about a checkpoint."""

    id: str
    name: str | None
    session_id: str
    kind: str
    keep: bool
    reason: str


class CleanupView(TypedDict):
    """A cleanup or, with `dry_run`, its plan."""

    dry_run: bool
    decisions: list[DecisionView]
    dropped: int
    kept: int
    freed_bytes: int
    unneeded_bytes: int | None
    saved_first: str | None
    debris: list[str]
    warnings: list[str]


class LostStoreView(TypedDict):
    """A store whose workspace is gone."""

    store: str
    workspace: str
    size_bytes: int
    may_be_unmounted: bool
    removed: bool


class LostStoresView(TypedDict):
    """All lost stores, and the space that their removal freed."""

    dry_run: bool
    stores: list[LostStoreView]
    freed_bytes: int
    warnings: list[str]


class HolderView(TypedDict):
    """A place outside the store that still has purged content."""

    where: str
    what: str
    how: str


class TraceView(TypedDict):
    """A store file that still has purged content."""

    file: str
    what: str


class ProofView(TypedDict):
    """The search of the store after a purge."""

    files: int
    searched_bytes: int
    digests: int
    samples: int
    components: list[str]
    traces: list[TraceView]


class PurgeView(TypedDict):
    """A purge or, with `dry_run`, its plan."""

    removed: list[str]
    changed: list[str]
    paths: list[str]
    objects: int
    freed_bytes: int | None
    also_at: list[str]
    held_by: list[HolderView]
    not_searched: list[str]
    refused: list[str]
    still_in_workspace: list[str]
    proof: ProofView | None
    resumed: bool
    warnings: list[str]
    dry_run: bool
    elapsed_ms: float


class TextPurgeView(TypedDict):
    """A text purged from messages, reasons and notes; `said` counts replacements by kind."""

    said: dict[str, int]
    also_at: list[str]
    proof: ProofView | None
    warnings: list[str]
    dry_run: bool
    elapsed_ms: float


def repair_view(outcome: "RepairOutcome", *, ok: bool) -> RepairView:
    return {
        "ok": ok,
        "done": outcome.done,
        "steps": [
            {
                "type": step.type.value,
                "subject": step.subject,
                "why": step.why,
                "lost": list(step.lost),
            }
            for step in outcome.plan.steps
        ],
        "lost": list(outcome.plan.lost),
    }


def cleanup_view(
    decisions: "Sequence[Decision]",
    *,
    unneeded_bytes: int | None,
    freed_bytes: int,
    saved_first: str | None,
    debris: Iterable[str],
    warnings: Iterable[str],
) -> CleanupView:
    """Only a plan has `unneeded_bytes`."""
    return {
        "dry_run": unneeded_bytes is not None,
        "decisions": [_decision(decision) for decision in decisions],
        "dropped": sum(not decision.keep for decision in decisions),
        "kept": sum(decision.keep for decision in decisions),
        "freed_bytes": freed_bytes,
        "unneeded_bytes": unneeded_bytes,
        "saved_first": saved_first,
        "debris": list(debris),
        "warnings": list(warnings),
    }


def _decision(decision: "Decision") -> DecisionView:
    found = decision.checkpoint
    return {
        "id": found.id,
        "name": found.name,
        "session_id": found.session_id,
        "kind": found.kind.value,
        "keep": decision.keep,
        "reason": decision.reason,
    }


def lost_store_view(one: "StoreWithoutWorkspace", *, removed: bool) -> LostStoreView:
    return {
        "store": str(one.directory),
        "workspace": str(one.workspace),
        "size_bytes": one.size_bytes,
        "may_be_unmounted": one.may_be_unmounted,
        "removed": removed,
    }


def purge_plan_view(plan: "PurgePlan", elapsed_ms: float) -> PurgeView:
    return {
        "removed": [checkpoint.id for checkpoint in plan.removed],
        "changed": list(plan.changed),
        "paths": [to_text(path) for path in plan.paths],
        "objects": len(plan.gone),
        "freed_bytes": None,
        "also_at": [to_text(path) for path in plan.stays_elsewhere],
        "held_by": _held_by(plan.holders),
        "not_searched": _not_searched(plan.holders),
        "refused": list(plan.refusals),
        "still_in_workspace": [],
        "proof": None,
        "resumed": False,
        "warnings": [],
        "dry_run": True,
        "elapsed_ms": elapsed_ms,
    }


def purge_view(outcome: "PurgeOutcome", elapsed_ms: float) -> PurgeView:
    return {
        "removed": list(outcome.removed),
        "changed": list(outcome.changed),
        "paths": [to_text(path) for path in outcome.paths],
        "objects": outcome.objects,
        "freed_bytes": outcome.freed_bytes,
        "also_at": [to_text(path) for path in outcome.proof.elsewhere],
        "held_by": _held_by(outcome.holders),
        "not_searched": _not_searched(outcome.holders),
        "refused": [],
        "still_in_workspace": [to_text(path) for path in outcome.still_in_workspace],
        "proof": _proof(outcome.proof),
        "resumed": outcome.resumed,
        "warnings": list(outcome.warnings),
        "dry_run": False,
        "elapsed_ms": elapsed_ms,
    }


def text_purge_plan_view(plan: "TextPurgePlan", elapsed_ms: float) -> TextPurgeView:
    return {
        "said": dict(plan.said),
        "also_at": [to_text(path) for path in plan.paths],
        "proof": None,
        "warnings": [],
        "dry_run": True,
        "elapsed_ms": elapsed_ms,
    }


def text_purge_view(outcome: "PurgeOutcome", elapsed_ms: float) -> TextPurgeView:
    return {
        "said": dict(outcome.said),
        "also_at": [to_text(path) for path in outcome.proof.elsewhere],
        "proof": _proof(outcome.proof),
        "warnings": list(outcome.warnings),
        "dry_run": False,
        "elapsed_ms": elapsed_ms,
    }


def _held_by(holders: "Sequence[Holder]") -> list[HolderView]:
    return [
        {"where": one.where, "what": one.what, "how": one.how} for one in holders if one.is_held
    ]


def _not_searched(holders: "Sequence[Holder]") -> list[str]:
    return [one.where for one in holders if not one.is_held]


def _proof(proof: "PurgeProof") -> ProofView:
    return {
        "files": proof.files,
        "searched_bytes": proof.searched_bytes,
        "digests": proof.digests,
        "samples": proof.samples,
        "components": list(proof.components),
        "traces": [{"file": trace.file, "what": trace.what} for trace in proof.traces],
    }

"""The tools that take work back: restore and reset, which preview first, and undo.

preview: plan → tell → a token that stands for target, paths and every step
deed:    token → plan again → the same steps: carry out; others: a new preview, nothing done
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from blake3 import blake3

from holdfast.domain.git.drift import GitDrift
from holdfast.domain.operations import OperationKind
from holdfast.domain.outcomes import RestoreOutcome
from holdfast.domain.restore.plan import RestorePlan, Step, StepType
from holdfast.domain.timeline.rounds import round_title
from holdfast.domain.trees.entries import DirectoryEntry, Entry, FileEntry
from holdfast.domain.wording import remarks_in
from holdfast.engine.components.git_drift import present_git
from holdfast.engine.restore.records import RestoreRequest
from holdfast.engine.sessions.approval import active_round, has_nothing_to_reset, reset_outcome
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.component_news import (
    done_components,
    planned_components,
    told_components,
)
from holdfast.interfaces.tools.confirmations import VALID_MINUTES
from holdfast.interfaces.tools.results import GitDriftInfo, GitPlaceInfo, Restored, StepInfo
from holdfast.interfaces.tools.wording import (
    MOST_LISTED,
    bullets,
    count,
    git_now,
    label,
    noted,
    notes,
    one_line,
    path_text,
    said,
    told_warnings,
)

_RESTORE = "checkpoint_restore"
_RESET = "checkpoint_reset"
_KEPT = "Not part of it, and kept:"
_MISSING = "Left out of the checkpoint and missing now, so not restored:"


@dataclass(frozen=True, slots=True)
class _Deed:
    """What a preview showed: the request, the arguments it came from, and the plan."""

    request: RestoreRequest
    arguments: tuple[tuple[str, Any], ...]
    plan: bytes


def restore(bench: Bench, arguments: dict[str, Any]) -> Answer:
    token = arguments.pop("confirm_token")
    if token is None:
        request = bench.engine.restore_request(
            bench.session_id,
            None if arguments["ref"] is None else arguments["ref"].strip(),
            paths=bench.paths(arguments["paths"]),
            best_effort=arguments["best_effort"],
        )
        return _preview(bench, _RESTORE, request, arguments)
    deed = bench.confirmations.take(_RESTORE, token)
    assert isinstance(deed, _Deed)
    _require_same(deed, arguments)
    return _carry_out(bench, _RESTORE, deed)


def reset(bench: Bench, arguments: dict[str, Any]) -> Answer:
    token = arguments["confirm_token"]
    if token is None:
        return _preview(bench, _RESET, bench.engine.reset_request(bench.session_id), {})
    deed = bench.confirmations.take(_RESET, token)
    assert isinstance(deed, _Deed)
    return _carry_out(bench, _RESET, deed)


def undo(bench: Bench, arguments: dict[str, Any]) -> Answer:
    engine, session_id = bench.engine, bench.session_id
    redo = arguments["redo"]
    request = engine.redo_request(session_id) if redo else engine.undo_request(session_id)
    if arguments["dry_run"]:
        plan = engine.plan(request)
        data = _planned(request, plan, None)
        words = _told_plan(request, plan, data)
        again = '{"redo": true}' if redo else "{}"
        words.append(f"Nothing has been changed. To do it: checkpoint_undo {again}.")
        return Answer("\n".join(words), data)
    outcome = engine.restore(request)
    back = '{"redo": false}' if redo else '{"redo": true}'
    return _done(bench, request, outcome, f"To take this back: checkpoint_undo {back}.")


def _preview(
    bench: Bench, tool: str, request: RestoreRequest, arguments: dict[str, Any], first: str = ""
) -> Answer:
    plan = bench.engine.plan(request)
    # A reset also ends a round whose work was taken back already.
    is_reset = request.kind is OperationKind.RESET
    work = is_reset and not has_nothing_to_reset(bench.engine.vault, request, plan)
    to_do = _changes_something(plan) or work
    obstacles = bool(plan.blocked) or any(step.blocked for step in plan.components)
    possible = to_do and (request.best_effort or not obstacles)
    given = tuple(sorted(arguments.items()))
    token = None
    if possible:
        token = bench.confirmations.offer(tool, _Deed(request, given, fingerprint(plan)))
    data = _planned(request, plan, token)
    lines = [first] if first else []
    lines += _told_plan(request, plan, data)
    if request.kind is OperationKind.RESET and token is not None:
        data = replace(data, abandoned_round=active_round(bench.engine.vault, bench.session_id))
        lines.append(
            f"It abandons {round_title(data.abandoned_round or '')} and begins the next round. The "
            "abandoned one stays recoverable: checkpoint_undo brings it back directly afterwards, "
            "and later checkpoint_restore does, with the safety checkpoint that the reset names as "
            "ref."
        )
    if token is not None:
        lines.append(
            "Nothing has been changed yet. The present state will be saved first, and "
            f'checkpoint_undo brings it back. To do it: {tool} {{"confirm_token": "{token}"}} '
            f"(counts once, for {VALID_MINUTES} minutes)."
        )
    elif plan.blocked:
        lines.append(
            "Nothing has been changed. These paths hold bytes that no checkpoint has, so the "
            "restore would be refused. Move them away, or leave them as they are with "
            '"best_effort": true.'
        )
    elif obstacles:
        lines.append(
            "Nothing has been changed, and the restore would be refused. Put right what is in the "
            'way, or restore what can be with "best_effort": true.'
        )
    return Answer("\n".join(lines), data)


def _carry_out(bench: Bench, tool: str, deed: _Deed) -> Answer:
    request = deed.request
    if fingerprint(bench.engine.plan(request)) != deed.plan:
        first = "The workspace has changed since the preview; nothing was done. This is it now:"
        return _preview(bench, tool, request, dict(deed.arguments), first)
    outcome = bench.engine.restore(request)
    answer = _done(bench, request, outcome, "To take this back: checkpoint_undo {}.")
    if request.kind is not OperationKind.RESET:
        return answer
    rounds = reset_outcome(bench.engine.vault, bench.session_id, outcome)
    assert isinstance(answer.data, Restored)
    data = replace(answer.data, abandoned_round=rounds.abandoned, new_round=rounds.new_round)
    text = answer.text
    if rounds.abandoned is not None:
        ended, begun = round_title(rounds.abandoned), round_title(rounds.new_round)
        text += f"\n{ended} is abandoned; {begun} begins."
    return Answer(text, data, answer.restored)


def _changes_something(plan: RestorePlan) -> bool:
    return bool(plan.steps) or any(step.actions for step in plan.components)


def _require_same(deed: _Deed, arguments: dict[str, Any]) -> None:
    """With a token nothing else is needed; what is given all the same has to be what was shown."""
    shown = dict(deed.arguments)
    for name, value in arguments.items():
        if value not in (None, (), False) and value != shown[name]:
            raise BadArguments(
                f"{name} of {_RESTORE} is not what the confirm_token was given for; nothing was "
                "done, and the token is used up",
                hint=f"call {_RESTORE} without confirm_token to preview it with this {name}",
            )


def fingerprint(plan: RestorePlan) -> bytes:
    """The same for plans that do the same to the same: contents and modes count, times do not."""
    steps = [(s.type.value, s.path, _state(s.before), _state(s.after)) for s in plan.steps]
    besides = [(c.name, c.mode, c.actions, c.blocked) for c in plan.components]
    told = repr((steps, plan.blocked, plan.kept, besides))
    return blake3(told.encode("utf-8", "surrogatepass")).digest()


def _state(entry: Entry | None) -> tuple[object, ...]:
    """What `same_state` compares."""
    if isinstance(entry, FileEntry):
        return ("file", entry.digest, entry.mode, entry.link)
    if isinstance(entry, DirectoryEntry):
        return ("directory", entry.mode)
    return () if entry is None else ("symlink", entry.target)


def _planned(request: RestoreRequest, plan: RestorePlan, token: str | None) -> Restored:
    created, rewritten, deleted = _counts(plan.steps)
    return Restored(
        done=False,
        target=request.target.id,
        steps=_steps(plan.steps),
        total_steps=len(plan.steps),
        created=created,
        rewritten=rewritten,
        deleted=deleted,
        blocked=notes((b.path, b.reason) for b in plan.blocked[:MOST_LISTED]),
        kept=notes((k.path, k.reason) for k in plan.kept[:MOST_LISTED]),
        conflicts=[],
        warnings=[said(warning) for warning in plan.warnings],
        remarks=remarks_in(map(said, plan.warnings)),
        confirm_token=token,
        plan_id=fingerprint(plan).hex()[:16],
        safety_checkpoint=None,
        components=planned_components(plan.components),
        git=_drifted(plan.git),
        missing=notes((m.path, m.reason) for m in plan.missing[:MOST_LISTED]),
    )


def _told_plan(request: RestoreRequest, plan: RestorePlan, data: Restored) -> list[str]:
    besides = told_components(data.components)
    if not plan.steps and not plan.blocked and not besides:
        rest = [*noted(_KEPT, data.kept), *noted(_MISSING, data.missing)]
        return [f"The workspace already is what {label(request.target)} holds.", *rest]
    rows = [f"{step.step} {step.path}" for step in data.steps]
    reason = one_line(request.target.intent.reasoning.split("\n", 1)[0][:200])
    end = ":" if rows else "."
    return [
        f"Restoring {label(request.target)} ({reason}) would change {_summary(data)}{end}",
        *bullets(rows),
        *besides,
        *told_warnings(plan.warnings),
        *noted("In the way:", data.blocked),
        *noted(_KEPT, data.kept),
        *noted(_MISSING, data.missing),
    ]


def _done(bench: Bench, request: RestoreRequest, outcome: RestoreOutcome, way_back: str) -> Answer:
    place = present_git(bench.engine.vault, restored=outcome)
    created, rewritten, deleted = _counts(outcome.steps)
    data = Restored(
        done=True,
        target=outcome.restored_to,
        steps=_steps(outcome.steps),
        total_steps=len(outcome.steps),
        created=created,
        rewritten=rewritten,
        deleted=deleted,
        blocked=notes((p.path, p.reason) for p in outcome.skipped[:MOST_LISTED]),
        kept=notes((k.path, k.reason) for k in outcome.kept[:MOST_LISTED]),
        conflicts=notes((p.path, p.reason) for p in outcome.conflicts[:MOST_LISTED]),
        warnings=[said(warning) for warning in outcome.warnings],
        remarks=remarks_in(map(said, outcome.warnings)),
        git_now=None if place is None else git_now(place),
        confirm_token=None,
        plan_id=None,
        safety_checkpoint=outcome.safety if outcome.recorded else None,
        components=done_components(outcome.components),
        verified=outcome.verified,
        git=_drifted(outcome.git),
        missing=notes((m.path, m.reason) for m in outcome.missing[:MOST_LISTED]),
    )
    if not outcome.recorded:
        said_so = f"The workspace already was {label(request.target)}; nothing changed."
        return Answer("\n".join([said_so, *noted(_MISSING, data.missing)]), data)
    checked = "NOT verified"
    if outcome.verified:
        checked = f"verified {count(outcome.compared, 'file')}" if outcome.compared else "verified"
    lines = [
        f"Restored {label(request.target)}: {_summary(data)}, {checked}.",
        *bullets([f"{step.step} {step.path}" for step in data.steps]),
        *told_components(data.components),
        *told_warnings(outcome.warnings),
        *noted("Skipped:", data.blocked),
        *noted("Changed by somebody meanwhile; their bytes are in the safety one:", data.conflicts),
        *noted(_KEPT, data.kept),
        *noted(_MISSING, data.missing),
        *([] if place is None else [f"Git: {one_line(str(place))}."]),
        f"The state before is saved as {outcome.safety}. {way_back}",
        "Files you have read may have changed: read them again before you edit them.",
    ]
    return Answer("\n".join(lines), data, outcome.record)


def _drifted(git: GitDrift | None) -> GitDriftInfo | None:
    if git is None:
        return None
    then, now = (GitPlaceInfo(place.branch, place.commit) for place in (git.then, git.now))
    return GitDriftInfo(then, now, git.changed_files)


def _steps(steps: Sequence[Step]) -> list[StepInfo]:
    return [StepInfo(step.type.value, path_text(step.path)) for step in steps[:MOST_LISTED]]


def _counts(steps: Sequence[Step]) -> tuple[int, int, int]:
    files = [step for step in steps if not isinstance(step.after or step.before, DirectoryEntry)]
    created = sum(step.type is StepType.CREATE for step in files)
    deleted = sum(step.type is StepType.DELETE for step in files)
    return created, len(files) - created - deleted, deleted


def _summary(data: Restored) -> str:
    total = data.created + data.rewritten + data.deleted
    if not total:
        return f"{count(data.total_steps, 'directory', 'directories')}" if data.steps else "no file"
    parts = {"created": data.created, "rewritten": data.rewritten, "deleted": data.deleted}
    told = ", ".join(f"{number:,} {word}" for word, number in parts.items() if number)
    return f"{count(total, 'file')} ({told})"

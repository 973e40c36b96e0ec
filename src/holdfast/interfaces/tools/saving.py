"""The tools that keep work: create a checkpoint, and approve what was done."""

from __future__ import annotations

from typing import Any

from holdfast.api.views.git import git_at_checkpoint_view
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.git.place import PresentGit, git_place
from holdfast.domain.intent import DEFAULT_CONFIDENCE
from holdfast.domain.timeline.rounds import round_title
from holdfast.domain.wording import remarks_in, size_words
from holdfast.engine.components.manifests import state_of
from holdfast.interfaces.tools.bench import Answer, Bench
from holdfast.interfaces.tools.results import Annotated, Approved, Created, GitNow
from holdfast.interfaces.tools.wording import (
    by_rule,
    count,
    git_now,
    info,
    label,
    noted,
    notes,
    one_line,
    said,
    told_warnings,
)


def create(bench: Bench, arguments: dict[str, Any]) -> Answer:
    confidence = arguments["confidence"]
    outcome = bench.session.save_checkpoint(
        arguments["reasoning"],
        name=arguments["name"],
        confidence=DEFAULT_CONFIDENCE if confidence is None else confidence,
        tags=arguments["tags"],
        goal_id=arguments["goal_id"],
        task_id=arguments["task_id"],
        reuse=arguments["reuse"],
    )
    made = outcome.checkpoint
    place, git = _git(bench, made)
    problems = notes((skipped.path, skipped.describe()) for skipped in outcome.failures)
    changed = made.changed
    size = f"{count(made.files, 'file')}, {size_words(made.size_bytes)}"
    saved = (
        f"Saved checkpoint {label(made)}: {size}; {changed.added} added, {changed.modified} "
        f"modified, {changed.removed} removed since the one before."
    )
    same = f"Nothing has changed since checkpoint {label(made)}: {size}. No other was made."
    lines = [
        same if outcome.deduplicated else saved,
        *([] if place is None else [f"Git: {one_line(place)}."]),
        *told_warnings(outcome.warnings),
        *noted("Not saved as it should be:", problems),
        f'To come back to this state: checkpoint_restore {{"ref": "{made.id}"}}.',
    ]
    left_out = len(by_rule(outcome.skipped))
    if left_out:
        lines.append(
            f"{count(left_out, 'path')} left out by rules (ignored, too large); "
            "checkpoint_show lists them."
        )
    data = Created(
        info(made, head=made.id),
        problems,
        left_out,
        [said(w) for w in outcome.warnings],
        outcome.deduplicated,
        remarks=remarks_in(map(said, outcome.warnings)),
        git=git,
    )
    return Answer("\n".join(lines), data)


def _git(bench: Bench, made: Checkpoint) -> tuple[str | None, GitNow | None]:
    """Where git was at the checkpoint, in words and as data."""
    try:
        state = state_of(bench.engine.vault.objects, made, "git")
    except StoreDamaged:
        return None, None
    data = git_at_checkpoint_view(state, made)
    if data is None:
        return None, None
    return git_place(state, made), git_now(
        PresentGit(data["branch"], data["commit"], data["dirty"])
    )


def annotate(bench: Bench, arguments: dict[str, Any]) -> Answer:
    found = bench.engine.resolve(bench.session_id, arguments["ref"] or "HEAD")
    note = bench.session.annotate(found.id, arguments["text"], number=arguments["number"])
    text = (
        f"Annotation {note.number} of {label(found)} is kept"
        f"{f' as revision {note.revision}' if note.revision > 1 else ''}. checkpoint_show and "
        "checkpoint_search find it. To change it: checkpoint_annotate "
        f'{{"ref": "{found.id}", "number": {note.number}, "text": "…"}}.'
    )
    data = Annotated(info(found, head=bench.session.head), note.number, note.revision, note.text)
    return Answer(text, data)


def approve(bench: Bench, arguments: dict[str, Any]) -> Answer:
    outcome = bench.session.approve(arguments["message"])
    approved = outcome.approved
    text = (
        f"Approved {count(outcome.count, 'checkpoint')} of {round_title(outcome.merged)}, up to "
        f"{label(approved)}. {round_title(outcome.new_round)} begins; checkpoint_reset comes back "
        'to here, and so does checkpoint_restore {"ref": "approved"}.'
    )
    data = Approved(
        info(approved, head=bench.session.head), outcome.merged, outcome.new_round, outcome.count
    )
    return Answer(text, data)

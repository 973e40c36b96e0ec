"""Tools that keep work: `checkpoint_create`, `checkpoint_annotate` and `checkpoint_approve`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.api.views.git import git_at_checkpoint_view
from holdfast.api.views.tool_values import CheckpointInfo, GitNow, checkpoint_info
from holdfast.domain.checkpoints import Checkpoint, Skipped
from holdfast.domain.git.drift import PresentGit, git_place
from holdfast.domain.intent import DEFAULT_CONFIDENCE
from holdfast.domain.sessions import round_title
from holdfast.domain.story import MOST_ANNOTATION_BYTES
from holdfast.domain.wording import count_words, remarks_in, size_words
from holdfast.interfaces.tools.arguments import BadArguments
from holdfast.interfaces.tools.tool import (
    LONGEST_TEXT,
    Answer,
    Parameter,
    Tool,
    ToolContext,
    reference,
)
from holdfast.interfaces.tools.wording import (
    PathNote,
    bullets,
    git_now,
    label,
    notes,
    one_line,
    path_list,
    reason_line,
    warning_lines,
)


@dataclass(frozen=True, slots=True)
class Created:
    """A durable checkpoint, and what it lacks although it should not. `deduplicated`: an existing
    one, because nothing has changed since. `files_saved` are the files in it. `degraded_mode`:
    files are saved, but some component is not."""

    success: bool
    checkpoint_id: str
    sha: str
    files_saved: int
    timestamp: str
    degraded_mode: bool
    checkpoint: CheckpointInfo
    problems: list[PathNote]
    left_out: int
    warnings: list[str]
    deduplicated: bool = False
    remarks: list[str] = field(default_factory=list)
    """Warnings that need no action."""
    git: GitNow | None = None
    degraded: list[str] = field(default_factory=list)
    """Components that were not saved, with the reason and the fix."""
    databases: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Annotated:
    """A note on a checkpoint; an edit is a new revision of the same number."""

    checkpoint: CheckpointInfo
    number: int
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class Approved:
    """The approved checkpoint, the number of checkpoints in its round, and the new round."""

    checkpoint: CheckpointInfo
    merged_round: str
    new_round: str
    checkpoints_approved: int


def create(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    outcome = context.session.save_checkpoint(
        _given_reason(arguments) or context.workspace.restores.generated_reason(),
        name=arguments["name"],
        confidence=arguments["confidence"],
        tags=arguments["tags"],
        goal_id=arguments["goal_id"],
        task_id=arguments["task_id"],
        reuse=arguments["reuse"],
        record_environment=True,
    )
    made = outcome.checkpoint
    place, git = _git(context, made)
    databases = [one_line(str(one)) for one in context.workspace.contents.databases_in(outcome)]
    recorded = context.workspace.contents.component_summary(made).get("environment")
    agents = [one_line(str(one)) for one in context.workspace.sessions.active_agents()]
    problems = notes((skipped.path, skipped.describe()) for skipped in outcome.failures)
    degraded = [reason_line(text) for text in outcome.degraded]
    changed = made.changed
    size = f"{count_words(made.files, 'file')}, {size_words(made.size_bytes)}"
    saved = (
        f"Saved checkpoint {label(made)}: {size}; {changed.added} added, {changed.modified} "
        f"modified, {changed.removed} removed since the previous one."
    )
    same = (
        f"Nothing has changed since checkpoint {label(made)}: {size}. No new checkpoint was made."
    )
    lines = [
        same if outcome.deduplicated else saved,
        *([] if place is None else [f"Git: {one_line(place)}."]),
        *([f"Databases: {'; '.join(databases)}."] if databases else []),
        *([f"Active agents: {', '.join(agents)}."] if agents else []),
        *([] if recorded is None else [f"Environment: {one_line(recorded)}."]),
        *warning_lines(outcome.warnings),
        *(["Files are saved; not saved:", *bullets(degraded)] if degraded else []),
        *path_list("Not saved correctly:", problems),
        f'To return to this state: checkpoint_restore {{"checkpoint_id": "{made.id}"}}.',
    ]
    left_out = len([one for one in outcome.skipped if _is_left_out_by_rule(one)])
    if left_out:
        lines.append(
            f"{count_words(left_out, 'path')} left out by rules (ignored, too large); "
            "checkpoint_show lists them."
        )
    info = checkpoint_info(made, head=made.id)
    data = Created(
        True,
        info.id,
        info.sha,
        made.files,
        info.timestamp,
        bool(degraded),
        info,
        problems,
        left_out,
        [reason_line(w) for w in outcome.warnings],
        outcome.deduplicated,
        remarks=remarks_in(map(reason_line, outcome.warnings)),
        git=git,
        degraded=degraded,
        databases=databases,
        agents=agents,
    )
    return Answer("\n".join(lines), data)


def _given_reason(arguments: dict[str, Any]) -> str | None:
    reasoning: str | None = arguments["reasoning"]
    description: str | None = arguments["description"]
    if reasoning and description and reasoning != description:
        raise BadArguments(
            "checkpoint_create got reasoning and description with different values; they mean the "
            "same",
            hint='pass one of them; for example: checkpoint_create {"reasoning": "before auth"}',
        )
    return reasoning or description


def _is_left_out_by_rule(one: Skipped) -> bool:
    """Excluded by an ignore rule, a size limit or similar."""
    return not one.reason.is_failure and not one.is_expected


def _git(context: ToolContext, made: Checkpoint) -> tuple[str | None, GitNow | None]:
    """The git position at the checkpoint, as text and as data."""
    state = context.workspace.contents.git_state(made)
    data = git_at_checkpoint_view(state, made)
    if data is None:
        return None, None
    return git_place(state, made), git_now(
        PresentGit(data["branch"], data["commit"], data["dirty"])
    )


def annotate(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    found = context.resolve(arguments["checkpoint_id"] or "HEAD")
    note = context.session.annotate(found.id, arguments["text"], number=arguments["number"])
    text = (
        f"Annotation {note.number} of {label(found)} is kept"
        f"{f' as revision {note.revision}' if note.revision > 1 else ''}. checkpoint_show and "
        "checkpoint_search find it. To change it: checkpoint_annotate "
        f'{{"checkpoint_id": "{found.id}", "number": {note.number}, "text": "…"}}.'
    )
    data = Annotated(
        checkpoint_info(found, head=context.session.head_id), note.number, note.revision, note.text
    )
    return Answer(text, data)


def approve(context: ToolContext, arguments: dict[str, Any]) -> Answer:
    outcome = context.session.approve(arguments["message"])
    approved = outcome.approved
    text = (
        f"Approved {count_words(outcome.count, 'checkpoint')} of {round_title(outcome.merged)}, "
        f"up to {label(approved)}. Now {round_title(outcome.new_round)} begins. To return here: "
        'checkpoint_reset {}, or checkpoint_restore {"checkpoint_id": "approved"}.'
    )
    data = Approved(
        checkpoint_info(approved, head=context.session.head_id),
        outcome.merged,
        outcome.new_round,
        outcome.count,
    )
    return Answer(text, data)


CREATE = Tool(
    "checkpoint_create",
    "Save a checkpoint",
    "Save the whole workspace, so that it can be restored exactly. Call it before anything risky "
    "(refactor, deletion, migration, a command that rewrites files) and after reaching a state "
    "worth keeping. Fast; durable when it returns.",
    (
        Parameter(
            "reasoning",
            "string",
            "What is about to happen and why. Default: what changed.",
            "before moving auth to its own module",
            most=LONGEST_TEXT,
        ),
        Parameter("description", "string", "Same as reasoning.", "before auth", most=LONGEST_TEXT),
        Parameter("tags", "strings", "To find it by.", ["auth"], default=()),
        Parameter("name", "string", "Short and unique, to return to.", "before-refactor", most=128),
        Parameter(
            "confidence",
            "number",
            "How sure you are that this state is good.",
            0.8,
            default=DEFAULT_CONFIDENCE,
            least=0,
            most=1,
        ),
        Parameter("goal_id", "string", "Its goal.", "issue-42", most=400),
        Parameter("task_id", "string", "Its task.", "task-7", most=400),
        Parameter(
            "reuse",
            "boolean",
            "Reuse the last checkpoint if under a minute old and nothing changed.",
            True,
            default=False,
        ),
    ),
    "write",
    handler=create,
    result=Created,
    starts_session=True,
)

ANNOTATE = Tool(
    "checkpoint_annotate",
    "Annotate a checkpoint",
    "Add a note to a checkpoint: what was learnt, why it was good or bad. checkpoint_search "
    "finds it.",
    (
        reference("Default: HEAD."),
        Parameter(
            "text",
            "string",
            f"At most {MOST_ANNOTATION_BYTES} bytes.",
            "breaks the login",
            required=True,
            least=1,
            most=MOST_ANNOTATION_BYTES,
            in_bytes=True,
        ),
        Parameter("number", "integer", "Change this note; old versions are kept.", 1, least=1),
    ),
    "write",
    handler=annotate,
    result=Annotated,
)

APPROVE = Tool(
    "checkpoint_approve",
    "Approve the work",
    "Save and lock in everything up to now, and begin a new round; checkpoint_reset returns to "
    "this state. Only when the user said that the work is good.",
    (Parameter("message", "string", "What is approved.", "login works again", most=LONGEST_TEXT),),
    "write",
    handler=approve,
    result=Approved,
)

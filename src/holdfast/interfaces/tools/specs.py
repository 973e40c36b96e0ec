"""Every tool as data: its words, its parameters, and what it may do.

Definitions in any format, the check of arguments and the server's annotations are made from this.
The words are for a model that decides when to call: when to use the tool, what comes back, and
what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.domain.messages import MOST_ANNOTATION_BYTES

ParameterType = Literal["string", "integer", "number", "boolean", "strings", "object"]
Scope = Literal["read", "write", "restore", "admin"]

LONGEST_TEXT = 100_000
MOST_ITEMS = 1_000
_REFERENCE = (
    "A checkpoint: its id, the unique beginning of one, its name, HEAD, HEAD~n, initial, approved, "
    "or a time such as @{10 minutes ago}."
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool. `least` and `most` bound a number, or the length of a text."""

    name: str
    type: ParameterType
    description: str
    example: Any
    required: bool = False
    default: Any = None
    least: float | None = None
    most: float | None = None
    in_bytes: bool = False
    """The length of the text is one in bytes, which who keeps it measures and refuses."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool. A `destructive` one can change or remove what is in the workspace or the store."""

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    scope: Scope
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False

    def parameter(self, name: str) -> Parameter | None:
        return next((known for known in self.parameters if known.name == name), None)


_CONFIRM = Parameter(
    "confirm_token",
    "string",
    "The token from the preview. Leave it out to get the preview; nothing happens without it.",
    "3f9c2a…",
    most=200,
)
_LIMIT = Parameter(
    "limit", "integer", "At most this many.", 20, default=20, least=1, most=MOST_ITEMS
)
_PATHS = Parameter(
    "paths",
    "strings",
    "Only these files or directories, relative to the workspace.",
    ["src/app.py"],
    default=(),
)


def _reference(default: str, name: str = "ref") -> Parameter:
    return Parameter(name, "string", f"{_REFERENCE} {default}", "HEAD~1", most=400)


_ALL = (
    ToolSpec(
        "checkpoint_create",
        "Save a checkpoint",
        "Save the whole workspace with the reason, so that it can be brought back exactly. Call it "
        "before anything risky (a refactor, a deletion, a migration, a command that rewrites "
        "files) and after reaching a state worth keeping. It is fast, stores only what changed and "
        "returns when the checkpoint is durable. Say in `reasoning` what is about to happen and "
        "why; give a `name` to states you may want to return to.",
        (
            Parameter(
                "reasoning",
                "string",
                "Why this checkpoint is made.",
                "before moving auth to its own module",
                required=True,
                least=1,
                most=LONGEST_TEXT,
            ),
            Parameter("name", "string", "A short unique name.", "before-refactor", most=128),
            Parameter(
                "confidence",
                "number",
                "How sure you are that this state is good, from 0.0 to 1.0.",
                0.8,
                least=0,
                most=1,
            ),
            Parameter("tags", "strings", "Words to find it by.", ["auth"], default=()),
            Parameter("goal_id", "string", "The goal it belongs to.", "issue-42", most=400),
            Parameter("task_id", "string", "The task it belongs to.", "task-7", most=400),
            Parameter(
                "reuse",
                "boolean",
                "Be content with the last checkpoint if it is less than a minute old and nothing "
                "has changed since; without `name`.",
                True,
                default=False,
            ),
        ),
        "write",
    ),
    ToolSpec(
        "checkpoint_list",
        "List checkpoints",
        "List the checkpoints of this session, newest first, with ids, names, reasons and what "
        "changed. Use it to find the state to compare with or to return to. For more than one "
        "page, pass the `next_cursor` of the last answer as `cursor`.",
        (
            _LIMIT,
            Parameter(
                "cursor", "string", "Where the last page ended: its `next_cursor`.", "9", most=40
            ),
            Parameter(
                "kind",
                "string",
                "Only of this kind: manual, initial, message, tool, risky, interval, threshold, "
                "end-of-day, merge.",
                "manual",
                most=20,
            ),
            Parameter("tag", "string", "Only with this tag.", "auth", most=64),
            Parameter(
                "records",
                "boolean",
                "Also what restores left behind: the state before and after each.",
                False,
                default=False,
            ),
        ),
        "read",
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "checkpoint_history",
        "How this state came about",
        "Follow a checkpoint back to the beginning, step by step, with the whole reasoning of each "
        "step. Unlike checkpoint_list it shows only the line that led there, without the attempts "
        "that were taken back. Use it to recall what was done and why.",
        (_reference("Default: HEAD."), _LIMIT),
        "read",
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "checkpoint_show",
        "Show a checkpoint",
        "Everything about one checkpoint: reason, goal, confidence, tool calls, what changed with "
        "it, and what was left out of it and why. With `files`, also the paths in it.",
        (
            _reference("Default: HEAD."),
            Parameter("files", "boolean", "List the paths too.", False, default=False),
            _LIMIT,
        ),
        "read",
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "checkpoint_search",
        "Search",
        "Find checkpoints of this session by their names, reasons, tags, tool calls and changed "
        "paths, and by the messages around them, best first. All words have to be there; "
        '"words in quotes" follow each other; auth* finds beginnings. Filters: kind:risky, tag:x, '
        "path:src/auth, after:2h, is:named. Use it to find when something was done or why.",
        (
            Parameter(
                "query",
                "string",
                "What to look for. An empty one lists the newest checkpoints.",
                "login timeout path:src/auth",
                required=True,
                most=2_000,
            ),
            _LIMIT,
        ),
        "read",
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "checkpoint_diff",
        "Compare",
        "What differs between a checkpoint and the workspace as it is now, or between two "
        "checkpoints. Use it before restoring, and to review your own work. With `content`, the "
        "changed lines as a unified diff; otherwise the changed paths.",
        (
            _reference("The old side. Default: HEAD.", "from_ref"),
            _reference("The new side. Default: the workspace as it is now.", "to_ref"),
            _PATHS,
            Parameter("content", "boolean", "Show the changed lines.", False, default=False),
        ),
        "read",
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "checkpoint_why",
        "Why a line is there",
        "For each line of a file, or for one, tell who wrote it and why: the first checkpoint that "
        "has it, the reason, the tool call and the message that led to it. Use it before changing "
        "code that looks odd, and to find which step broke something. Lines that no checkpoint has "
        "yet are said to be unsaved.",
        (
            Parameter(
                "path",
                "string",
                "The file, relative to the workspace.",
                "src/app.py",
                required=True,
                least=1,
                most=4_096,
            ),
            Parameter(
                "line",
                "integer",
                "Only this line, counted from 1.",
                12,
                least=1,
                most=1_000_000_000,
            ),
            _reference("The file as it is in this checkpoint. Default: as it is now."),
        ),
        "read",
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "checkpoint_restore",
        "Restore a checkpoint",
        "Make the workspace, or some paths of it, what it was at a checkpoint. The first call only "
        "previews: it lists what would change and returns a `confirm_token`. Read the preview, "
        "then call again with that token to do it. The present state is saved first, so "
        "checkpoint_undo brings it back; files that no checkpoint has are not touched. Use it when "
        "work went wrong, instead of repairing by hand.",
        (
            _reference("Default: the checkpoint before the one the work stands on."),
            _PATHS,
            Parameter(
                "best_effort",
                "boolean",
                "Skip and list what cannot be restored, instead of refusing as a whole.",
                False,
                default=False,
            ),
            _CONFIRM,
        ),
        "restore",
        destructive=True,
    ),
    ToolSpec(
        "checkpoint_undo",
        "Undo a restore",
        "Take back the last restore, reset or undo: the workspace is exactly what it was before, "
        "edits made in between included. With `redo`, take back the last undo. With `dry_run`, "
        "only tell what would change.",
        (
            Parameter("redo", "boolean", "Go forward again instead.", False, default=False),
            Parameter("dry_run", "boolean", "Only tell.", False, default=False),
        ),
        "restore",
        destructive=True,
    ),
    ToolSpec(
        "checkpoint_annotate",
        "Write about a checkpoint",
        "Add a note to a checkpoint: what was learnt since, why it was good or bad, what to do "
        "differently. Notes are found by checkpoint_search. With a number, an earlier note gets "
        "new words; its old ones are kept.",
        (
            _reference("Default: HEAD."),
            Parameter(
                "text",
                "string",
                f"The note, of at most {MOST_ANNOTATION_BYTES} bytes.",
                "breaks the login",
                required=True,
                least=1,
                most=MOST_ANNOTATION_BYTES,
                in_bytes=True,
            ),
            Parameter("number", "integer", "The note to change.", 1, least=1),
        ),
        "write",
    ),
    ToolSpec(
        "checkpoint_approve",
        "Approve the work",
        "Lock in everything up to now: the workspace is saved, the round is approved and the next "
        "one begins. A later checkpoint_reset comes back to here. Call it only when the "
        "person has said that the work is good.",
        (
            Parameter(
                "message", "string", "What is approved.", "login works again", most=LONGEST_TEXT
            ),
        ),
        "write",
    ),
    ToolSpec(
        "checkpoint_reset",
        "Throw away unapproved work",
        "Take the workspace back to what was approved last, or to how the session began, and "
        "abandon the round of work. The first call only previews and returns a `confirm_token`. "
        "The present state is saved first, so checkpoint_undo brings it back. Call it only when "
        "the person wants the whole round gone; for less, use checkpoint_restore.",
        (_CONFIRM,),
        "restore",
        destructive=True,
    ),
    ToolSpec(
        "checkpoint_stats",
        "Statistics",
        "How many checkpoints and restores the session has and how much space the store takes.",
        (),
        "read",
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "checkpoint_cleanup",
        "Clean up",
        "Drop the checkpoints that the retention rules let go, in all sessions of the workspace, "
        "and free their space. The first call only previews and returns a `confirm_token`. Named, "
        "first and approved checkpoints, HEAD and what undo needs always stay. Dropped ones cannot "
        "be brought back: use it only when asked to.",
        (_CONFIRM,),
        "admin",
        destructive=True,
    ),
    ToolSpec(
        "checkpoint_auto_configure",
        "Configure automatic checkpoints",
        "See or change how automatic checkpoints of this workspace are made and kept. Without "
        "`settings` it lists each one with its value and meaning. Change them only when the person "
        "asks for it.",
        (
            Parameter(
                "settings",
                "object",
                "New values by name; null goes back to the default.",
                {"auto_interval": 10},
            ),
        ),
        "admin",
        destructive=True,
        idempotent=True,
    ),
)

SPECS: Mapping[str, ToolSpec] = {spec.name: spec for spec in _ALL}

"""Checkpoints as data: saved, listed, shown, annotated, deleted, and the files in them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from holdfast.api.views.git import GitAtCheckpointView, git_at_checkpoint_view
from holdfast.domain.paths import to_text
from holdfast.domain.wording import iso, iso_from_ns, remarks_in

if TYPE_CHECKING:
    from holdfast.api.contents import SavedDatabase
    from holdfast.api.sessions import ActiveAgent
    from holdfast.domain.checkpoints import ChangeCounts, Checkpoint, Skipped
    from holdfast.domain.component_states import ComponentState
    from holdfast.domain.outcomes import DeleteOutcome, SaveOutcome
    from holdfast.domain.sessions import Session
    from holdfast.domain.story import Annotation, Message
    from holdfast.domain.trees.entries import Entry


class ChangeCountsView(TypedDict):
    """How many files differ from the previous checkpoint."""

    added: int
    modified: int
    removed: int


class CheckpointView(TypedDict):
    """The common keys of every listed checkpoint."""

    id: str
    name: str | None
    session_id: str
    kind: str
    created_at: str
    parent: str | None
    confidence: float
    files: int
    bytes: int
    changed: ChangeCountsView


class TaggedCheckpointView(CheckpointView):
    """A checkpoint that was named or tagged."""

    tags: list[str]


class FoundCheckpointView(TaggedCheckpointView):
    """A checkpoint that a search found."""

    reasoning: str
    message_index: int | None


class CheckpointWithIntentView(TaggedCheckpointView):
    """The keys that `log` and `show` share."""

    reasoning: str
    goal_id: str | None
    task_id: str | None
    partial: bool
    restores_from: str | None
    selected: list[str] | None
    is_head: bool


class LoggedCheckpointView(CheckpointWithIntentView):
    """A checkpoint in `log`."""

    session_title: str | None
    git: GitAtCheckpointView | None


class SkippedView(TypedDict):
    """A path that is not in a checkpoint. `failed` if it should be."""

    path: str
    reason: str
    detail: NotRequired[str]
    failed: NotRequired[bool]


class DatabaseView(TypedDict):
    """A database in a checkpoint: the size of a file, or tables and rows of a server's database.
    Files have row counts only if they were counted."""

    type: str
    name: str
    bytes: int | None
    tables: int | None
    rows: int | None


class ActiveAgentView(TypedDict):
    """An agent with a session that has not ended; `process` if hooks recorded it."""

    session_id: str
    agent: str
    process: int | None


class EnvironmentView(TypedDict):
    """Versions of tools by name, and names of the environment variables that were set."""

    tools: dict[str, str]
    variables: list[str]


class SavedView(CheckpointView):
    """A new, durable checkpoint."""

    skipped: list[SkippedView]
    deduplicated: bool
    elapsed_ms: float
    warnings: list[str]
    remarks: list[str]
    partial: bool
    degraded: list[str]
    git: GitAtCheckpointView | None
    databases: list[DatabaseView]
    agents: list[ActiveAgentView]
    environment: EnvironmentView | None
    restore: str


class AnnotationView(TypedDict):
    """A note about a checkpoint; an edit is a new revision of the same number."""

    number: int
    revision: int
    text: str
    author: str | None
    at: str


class NewAnnotationView(AnnotationView):
    """A note that was just written, with the checkpoint that it is about."""

    checkpoint: str


class MessageTextView(TypedDict):
    """A message of the conversation."""

    role: str
    content: str


class ComponentStateView(TypedDict):
    """What a component recorded at a checkpoint; `failure` if it has nothing."""

    name: str
    facts: dict[str, Any]
    problems: list[str]
    failure: NotRequired[str]


class EntryView(TypedDict):
    """A file, a directory or a link in a checkpoint."""

    path: str
    type: str
    mode: NotRequired[str]
    size: NotRequired[int]
    digest: NotRequired[str]
    target: NotRequired[str]


class ContentView(TypedDict, total=False):
    """`content` for a text file, `base64` for another file."""

    content: str
    base64: str


class PathsView(TypedDict, total=False):
    """The paths in a directory."""

    paths: list[str]


class OldFileView(EntryView, PathsView, ContentView):
    """A path in a checkpoint."""

    checkpoint: str


class EntriesView(TypedDict, total=False):
    """Everything in a checkpoint, if requested."""

    entries: list[EntryView]


class ShownCheckpointView(CheckpointWithIntentView, EntriesView):
    """Everything about one checkpoint."""

    tool_calls: list[Any]
    round: str
    message_index: int | None
    message: MessageTextView | None
    tool_use_id: str | None
    is_approved: bool
    annotations: list[AnnotationView]
    skipped: list[SkippedView]
    components: list[ComponentStateView]
    git: GitAtCheckpointView | None


class DeletedView(TypedDict):
    """A deleted checkpoint. `waiting` means that the next cleanup frees its space."""

    deleted: str
    name: str | None
    freed_bytes: int
    waiting: bool
    saved_first: str | None
    warnings: list[str]


def checkpoint_view(found: "Checkpoint") -> CheckpointView:
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
        "changed": change_counts_view(found.changed),
    }


def change_counts_view(changed: "ChangeCounts") -> ChangeCountsView:
    return {"added": changed.added, "modified": changed.modified, "removed": changed.removed}


def tagged_checkpoint_view(found: "Checkpoint") -> TaggedCheckpointView:
    return {**checkpoint_view(found), "tags": list(found.intent.tags)}


def found_checkpoint_view(found: "Checkpoint") -> FoundCheckpointView:
    return {
        **checkpoint_view(found),
        "reasoning": found.intent.reasoning,
        "tags": list(found.intent.tags),
        "message_index": found.message_index,
    }


def checkpoint_with_intent_view(found: "Checkpoint", *, is_head: bool) -> CheckpointWithIntentView:
    from holdfast.domain.restore.selections import selection_of

    intent, selected = found.intent, selection_of(found)
    return {
        **checkpoint_view(found),
        "reasoning": intent.reasoning,
        "goal_id": intent.goal_id,
        "task_id": intent.task_id,
        "tags": list(intent.tags),
        "partial": found.partial,
        "restores_from": found.restores_from,
        "selected": None if selected is None else [to_text(path) for path in selected.paths],
        "is_head": is_head,
    }


def logged_checkpoint_view(
    found: "Checkpoint", session: "Session", git: "ComponentState | None", *, is_head: bool
) -> LoggedCheckpointView:
    return {
        **checkpoint_with_intent_view(found, is_head=is_head),
        "session_title": session.title,
        "git": git_at_checkpoint_view(git, found),
    }


def saved_view(
    outcome: "SaveOutcome",
    elapsed_ms: float,
    git: GitAtCheckpointView | None,
    databases: "Sequence[SavedDatabase]",
    agents: "Sequence[ActiveAgent]",
    reference: str,
    environment: "ComponentState | None",
) -> SavedView:
    """`reference` names the checkpoint in the command that restores it."""
    if outcome.checkpoint.name is not None:
        from shlex import quote  # late: an id needs no quotes

        reference = quote(reference)
    return {
        **checkpoint_view(outcome.checkpoint),
        "skipped": skipped_view(outcome.skipped),
        "deduplicated": outcome.deduplicated,
        "elapsed_ms": elapsed_ms,
        "warnings": list(outcome.warnings),
        "remarks": remarks_in(outcome.warnings),
        "partial": outcome.checkpoint.partial,
        "degraded": list(outcome.degraded),
        "git": git,
        "databases": [database_view(one) for one in databases],
        "agents": [active_agent_view(one) for one in agents],
        "environment": _environment(environment),
        "restore": f"holdfast restore {reference}",
    }


def _environment(state: "ComponentState | None") -> EnvironmentView | None:
    if state is None or state.failure is not None:
        return None
    tools, variables = state.facts["tools"], state.facts["variables"]
    return {"tools": dict(tools), "variables": list(variables)}


def database_view(one: "SavedDatabase") -> DatabaseView:
    return {
        "type": one.type,
        "name": one.name,
        "bytes": one.size_bytes,
        "tables": one.tables,
        "rows": one.rows,
    }


def active_agent_view(one: "ActiveAgent") -> ActiveAgentView:
    return {"session_id": one.session_id, "agent": one.agent, "process": one.process_number}


def annotation_view(one: "Annotation") -> AnnotationView:
    return {
        "number": one.number,
        "revision": one.revision,
        "text": one.text,
        "author": one.author,
        "at": iso_from_ns(one.at_ns),
    }


def new_annotation_view(one: "Annotation") -> NewAnnotationView:
    return {"checkpoint": one.checkpoint_id, **annotation_view(one)}


def skipped_view(paths: "Iterable[Skipped]") -> list[SkippedView]:
    return [_skipped(one) for one in paths]


def _skipped(one: "Skipped") -> SkippedView:
    view: SkippedView = {"path": to_text(one.path), "reason": one.reason.value}
    if one.detail:
        view["detail"] = one.detail
    if one.reason.is_failure:
        view["failed"] = True
    return view


def shown_checkpoint_view(
    found: "Checkpoint",
    *,
    is_head: bool,
    is_approved: bool,
    message: "Message | None",
    annotations: "Iterable[Annotation]",
    skipped: "Iterable[Skipped]",
    components: "Sequence[ComponentState]",
    entries: "Iterable[tuple[bytes, Entry]] | None",
) -> ShownCheckpointView:
    from holdfast.domain.sessions import round_name

    git = next((state for state in components if state.name == "git"), None)
    listed: EntriesView = {}
    if entries is not None:
        listed["entries"] = [entry_view(path, entry) for path, entry in entries]
    return {
        **checkpoint_with_intent_view(found, is_head=is_head),
        "tool_calls": found.intent.to_dict()["tool_calls"],
        "round": round_name(found.round),
        "message_index": found.message_index,
        "message": None if message is None else message_text_view(message),
        "tool_use_id": found.tool_use_id,
        "is_approved": is_approved,
        "annotations": [annotation_view(note) for note in annotations],
        "skipped": skipped_view(skipped),
        "components": [component_view(state) for state in components],
        "git": git_at_checkpoint_view(git, found),
        **listed,
    }


def message_text_view(message: "Message") -> MessageTextView:
    return {"role": message.role.value, "content": message.content}


def component_view(state: "ComponentState") -> ComponentStateView:
    view: ComponentStateView = {
        "name": state.name,
        "facts": dict(state.facts),
        "problems": list(state.problems),
    }
    if state.failure is not None:
        view["failure"] = state.failure
    return view


def entry_view(path: bytes, entry: "Entry") -> EntryView:
    from holdfast.domain.trees.entries import FileEntry, SymlinkEntry, kind_of

    view: EntryView = {"path": to_text(path), "type": kind_of(entry)}
    if isinstance(entry, SymlinkEntry):
        view["target"] = to_text(entry.target)
        return view
    view["mode"] = f"{entry.mode:04o}"
    if isinstance(entry, FileEntry):
        view["size"] = entry.size
        view["digest"] = entry.digest.hex()
    return view


def old_file_view(
    found: "Checkpoint",
    path: bytes,
    entry: "Entry",
    *,
    content: bytes | None = None,
    paths: Iterable[bytes] | None = None,
) -> OldFileView:
    """`content` is for a file, `paths` for a directory."""
    listed: PathsView = {} if paths is None else {"paths": [to_text(name) for name in paths]}
    encoded: ContentView = {} if content is None else content_view(content)
    return {"checkpoint": found.id, **entry_view(path, entry), **listed, **encoded}


def content_view(content: bytes) -> ContentView:
    try:
        return {"content": content.decode("utf-8")}
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(content).decode()}


def deleted_view(found: "Checkpoint", outcome: "DeleteOutcome") -> DeletedView:
    return {
        "deleted": found.id,
        "name": found.name,
        "freed_bytes": outcome.freed_bytes,
        "waiting": outcome.waiting,
        "saved_first": outcome.saved_first,
        "warnings": list(outcome.warnings),
    }

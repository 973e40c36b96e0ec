"""The library: save and restore one workspace in one session.

>>> from holdfast import SessionCheckpointer
>>> session = SessionCheckpointer(Path("my-project"), "refactor")
>>> before = session.checkpoint("before the refactor")
>>> session.restore(before)
0

A session checks its arguments, then calls the topics of its workspace (see `Workspace`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from holdfast.api import arguments
from holdfast.api.arguments import flag, optional
from holdfast.api.workspace import NoProgress, Workspace, open_workspace
from holdfast.bootstrap.workspace import new_session_id
from holdfast.domain.errors import UnknownReference, UsageError
from holdfast.domain.ids import CheckpointId
from holdfast.domain.ids import session_id as valid_session_id
from holdfast.domain.intent import DEFAULT_CONFIDENCE, ToolCall, make_intent
from holdfast.domain.outcomes import RestoreOutcome, SaveOutcome
from holdfast.domain.paths import from_text, to_text
from holdfast.domain.restore.plan import RestorePlan, Step
from holdfast.domain.snapshots import CheckpointSummary, WorkspaceSnapshot
from holdfast.domain.trees.changes import ChangeType

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.api.guarded_blocks import Attempt, Editing
    from holdfast.domain.checkpoints import Checkpoint
    from holdfast.domain.diff.hunk_choice import NumberedHunk
    from holdfast.domain.diff.line_origins import Explanation
    from holdfast.domain.git.commits import AcceptOutcome
    from holdfast.domain.purges import PurgeOutcome
    from holdfast.domain.search.hits import SearchResult
    from holdfast.domain.sessions import Round, Session
    from holdfast.domain.story import Activity, Annotation, Message
    from holdfast.domain.timeline.timeline import Timeline
    from holdfast.engine.bundles.exporter import ExportOutcome
    from holdfast.engine.bundles.importer import ImportOutcome
    from holdfast.engine.conversation.transcript_import import TranscriptImport
    from holdfast.engine.replay.replay import Replay
    from holdfast.engine.restore.records import RestoreRequest
    from holdfast.engine.sessions.approval import ApprovalStatus, ApproveOutcome, ResetOutcome
    from holdfast.ports.repository import MirrorOutcome

P = ParamSpec("P")
T = TypeVar("T")


class SessionCheckpointer:
    """Checkpoints of a workspace in one session; thread-safe.

    `file_filter` gets the absolute path of each file and returns whether to capture it.
    """

    def __init__(
        self,
        workspace: Path,
        session_id: str,
        file_filter: Callable[[Path], bool] | None = None,
    ) -> None:
        directory = Path(arguments.path("workspace", workspace))
        chosen = optional(arguments.function, "file_filter", file_filter)
        self._id = valid_session_id(session_id)
        self._file_filter = chosen
        self._workspace = open_workspace(
            directory, create=True, file_filter=chosen, purpose=f"session {self._id}"
        )
        self._restored_elsewhere: list[CheckpointId] = []
        self._closed = False
        for problem in self._workspace.setting_problems:
            warnings.warn(f"{problem.finding}: {problem.cure}", stacklevel=2)

    @classmethod
    def load(cls, workspace: Path, session_id: str) -> SessionCheckpointer:
        """Open a session with everything saved in it. A new session is empty."""
        return cls(workspace, session_id)

    @classmethod
    def start(
        cls,
        workspace: Path,
        session_id: str | None = None,
        *,
        title: str | None = None,
        agent: str | None = None,
        file_filter: Callable[[Path], bool] | None = None,
    ) -> Self:
        """Start a session with a checkpoint of the current state, or resume an interrupted one."""
        directory = Path(arguments.path("workspace", workspace))
        title = optional(arguments.prose, "title", title)
        agent = optional(arguments.prose, "agent", agent)
        session = cls(directory, session_id or new_session_id(), file_filter)
        try:
            session.opened.sessions.start(session._id, title=title, agent=agent)
        except BaseException:
            session.close()
            raise
        return session

    @property
    def session_id(self) -> str:
        return self._id

    @property
    def workspace(self) -> Path:
        return self._workspace.path

    @property
    def file_filter(self) -> Callable[[Path], bool] | None:
        return self._file_filter

    @property
    def opened(self) -> Workspace:
        """The session's workspace, for everything that is not specific to one session."""
        return self._workspace

    @property
    def _topics(self) -> Workspace:
        if self._closed:
            raise UsageError(
                f"the session {self._id!r} is closed",
                hint="open it again: SessionCheckpointer(workspace, session_id)",
            )
        return self._workspace

    # Saving and restoring

    def checkpoint(
        self,
        reasoning: str,
        *,
        goal_id: str | None = None,
        task_id: str | None = None,
        tool_calls: Iterable[ToolCall] = (),
        confidence: float = DEFAULT_CONFIDENCE,
        name: str | None = None,
        tags: Iterable[str] = (),
        reuse: bool = False,
    ) -> str:
        """Save the workspace. Returns the checkpoint's id once it is durable.

        With `reuse` and no name, returns HEAD if it is less than a minute old and nothing has
        changed since."""
        return self.save_checkpoint(
            reasoning,
            goal_id=goal_id,
            task_id=task_id,
            tool_calls=tool_calls,
            confidence=confidence,
            name=name,
            tags=tags,
            reuse=reuse,
        ).checkpoint.id

    def save_checkpoint(
        self,
        reasoning: str,
        *,
        goal_id: str | None = None,
        task_id: str | None = None,
        tool_calls: Iterable[ToolCall] = (),
        confidence: float = DEFAULT_CONFIDENCE,
        name: str | None = None,
        tags: Iterable[str] = (),
        reuse: bool = False,
        record_environment: bool = False,
    ) -> SaveOutcome:
        """Like `checkpoint`, with the full outcome: skipped paths with reasons, and whether an
        existing checkpoint was reused (`deduplicated`). With `record_environment`, the checkpoint
        also records tool versions and environment variable names."""
        reuse = flag("reuse", reuse)
        record_environment = flag("record_environment", record_environment)
        intent = make_intent(
            reasoning,
            goal_id=goal_id,
            task_id=task_id,
            tool_calls=arguments.items("tool_calls", tool_calls),
            confidence=confidence,
            name=name,
            tags=arguments.items("tags", tags),
        )
        return self._topics.save(
            self._id, intent, reuse=reuse, record_environment=record_environment
        )

    def restore(self, snapshot_id: str | None = None) -> int:
        """Restore the workspace. Returns how many files changed on disk.

        Without an argument, restores the checkpoint before HEAD.
        """
        return self.restore_checkpoint(
            optional(arguments.text, "snapshot_id", snapshot_id)
        ).files_changed

    def restore_checkpoint(
        self,
        reference: str | None = None,
        paths: Sequence[str | PathLike[str]] | None = None,
        *,
        hunks: Sequence[int | str] | None = None,
        best_effort: bool = False,
        components: Mapping[str, str] | None = None,
    ) -> RestoreOutcome:
        """Like `restore`, for all or some paths, with the full outcome.

        `hunks` are numbers or names of hunks in the one file of `paths`, as `hunks()` returns them.
        `components` sets how state other than files is restored, such as `{"git": "exact"}`, or
        "branch", "revert", or "files" to leave git alone.
        """
        request = self._restore_request(reference, paths, hunks, best_effort, components)
        outcome = self._topics.restores.restore(request)
        if outcome.recorded and request.session_id != self._id:
            self._restored_elsewhere.append(outcome.record)
        return outcome

    def plan_restore(
        self,
        reference: str | None = None,
        paths: Sequence[str | PathLike[str]] | None = None,
        *,
        hunks: Sequence[int | str] | None = None,
        components: Mapping[str, str] | None = None,
    ) -> RestorePlan:
        """What `restore_checkpoint` would do now; nothing is changed."""
        request = self._restore_request(reference, paths, hunks, False, components)
        return self._topics.restores.plan(request)

    def step_contents(self, step: Step) -> tuple[bytes | None, bytes | None]:
        """The content that a plan's step would write, and the current content; None if there is
        none. Raises `Refused` for an ignored file."""
        return self._topics.restores.step_contents(arguments.step("step", step))

    def hunks(self, reference: str, path: str | PathLike[str]) -> list[NumberedHunk]:
        """The differences in a file between a checkpoint and now, as hunks that can be restored."""
        reference, chosen = arguments.text("reference", reference), arguments.path("path", path)
        restores = self._topics.restores
        request = restores.request(self._id, reference, paths=[from_text(chosen)])
        return list(restores.look(request.target).hunks(request.target, *request.paths))

    def undo(self) -> RestoreOutcome:
        """Undo the last restore. The workspace is then exactly as it was before."""
        restores = self._topics.restores
        elsewhere = self._restored_elsewhere
        return restores.restore(lambda: restores.undo_request(self._id, elsewhere))

    def redo(self) -> RestoreOutcome:
        """Undo the last undo."""
        restores = self._topics.restores
        elsewhere = self._restored_elsewhere
        return restores.restore(lambda: restores.redo_request(self._id, elsewhere))

    # History

    @property
    def head(self) -> WorkspaceSnapshot | None:
        """The session's current checkpoint: the newest one, or the one restored last."""
        topics = self._topics
        found = topics.head(self._id)
        return topics.history.snapshots([found])[0] if found else None

    @property
    def head_id(self) -> str | None:
        """The id of `head`, without reading its file list."""
        found = self._topics.head(self._id)
        return found.id if found else None

    @property
    def checkpoint_count(self) -> int:
        return self._topics.sessions.checkpoint_count(self._id)

    @property
    def stats(self) -> dict[str, int]:
        return self._topics.upkeep.statistics(self._id)

    def history(
        self, limit: int | None = 20, *, records: bool = False, kind: str | None = None
    ) -> list[WorkspaceSnapshot]:
        """Checkpoints, newest first; `records` adds restore records. `kind` is one or several
        kinds, as in "tool,risky"; "auto" means all automatic ones."""
        found = self._listed(limit, records, kind)
        return self._topics.history.snapshots(found)

    def summaries(
        self, limit: int | None = None, *, records: bool = False, kind: str | None = None
    ) -> list[CheckpointSummary]:
        """A one-line summary of each checkpoint, without its files."""
        return [CheckpointSummary.of(one) for one in self._listed(limit, records, kind)]

    def get(self, reference: str) -> WorkspaceSnapshot | None:
        """The checkpoint that a reference names; None if there is none."""
        topics = self._topics
        try:
            found = topics.resolve(self._id, arguments.text("reference", reference))
        except UnknownReference:
            return None
        return topics.history.snapshots([found])[0]

    def get_by_name(self, name: str) -> WorkspaceSnapshot | None:
        history = self._topics.history
        found = history.named(self._id, arguments.text("name", name))
        return None if found is None else history.snapshots([found])[0]

    def diff(self, from_id: str | None = None, to_id: str | None = None) -> dict[str, str]:
        """Changed paths between two checkpoints (default: the first one and HEAD).

        Empty for a session without checkpoints."""
        from_id = optional(arguments.text, "from_id", from_id)
        to_id = optional(arguments.text, "to_id", to_id)
        topics = self._topics
        if from_id is None and to_id is None and not self.checkpoint_count:
            return {}
        old = topics.resolve(self._id, from_id or "initial")
        new = topics.resolve(self._id, to_id or "HEAD")
        changes = topics.diffs.changes(old, new, renames=False)
        return {to_text(c.path): ChangeType(c.type).value for c in changes}

    def timeline(
        self,
        limit: int = 100,
        *,
        before: str | None = None,
        days: int | None = None,
        everywhere: bool = False,
    ) -> Timeline:
        """Every event, newest first, with lanes. `before` is the previous page's `next`. `days`
        limits how far it goes back; `everywhere` includes all sessions of the workspace."""
        limit = arguments.limit("limit", limit)
        days = optional(arguments.limit, "days", days)
        wanted = None if flag("everywhere", everywhere) else self._id
        return self._topics.history.timeline(wanted, limit=limit, before=before, days=days)

    def search(self, query: str, limit: int = 20, *, everywhere: bool = False) -> SearchResult:
        """Matching checkpoints and messages of this session, best first; with `everywhere`, of all
        sessions."""
        wanted = None if flag("everywhere", everywhere) else self._id
        return self._topics.history.search(query, session_id=wanted, limit=limit)

    def why(self, path: str, line: int | None = None, ref: str | None = None) -> Explanation:
        """The checkpoint, reason, tool call and message that wrote each line of a file, or one
        line. The file is the current one or, with a reference, the one in a checkpoint."""
        chosen = from_text(arguments.named_path("path", path))
        ref = optional(arguments.text, "ref", ref)
        return self._topics.history.why(self._id, chosen, line=line, reference=ref)

    def replay(self, reference: str | None = None) -> Replay:
        """Replay the session, starting at a checkpoint or, by default, at the last step. The
        workspace is never touched. Use it as a context manager."""
        reference = optional(arguments.text, "reference", reference)
        start = self._topics.resolve(self._id, reference or "HEAD")
        last = reference is None
        return self._topics.history.replay(self._id, start, from_last_step=last)

    # Conversation

    def user_message(self, text: str) -> Message:
        """Save the workspace, then record the user's message.

        Call it before the agent reads the message. `session.restore(message.checkpoint)` then
        undoes everything the agent did in response. No checkpoint limit applies."""
        return self._topics.conversation.user_message(self._id, text)

    def add_message(
        self,
        role: str,
        content: str,
        *,
        tool_calls: Iterable[ToolCall] = (),
        at: datetime | None = None,
    ) -> Message:
        """Record a message (role: user, assistant, system or tool); durable when this returns."""
        calls = arguments.items("tool_calls", tool_calls)
        return self._topics.conversation.add_message(
            self._id, role, content, tool_calls=calls, at=at
        )

    def messages(self, *, first: int = 0, limit: int | None = None) -> list[Message]:
        """Messages by index. `rolled_back_by` is the restore that rolled a message back.
        `checkpoint` is the one made before a user's message."""
        return self._topics.conversation.messages(self._id, first=first, limit=limit)

    def import_transcript(self, path: Path, agent: str = "claude-code") -> TranscriptImport:
        """Add the new messages of an agent's transcript to the conversation."""
        place = Path(arguments.named_path("path", path))
        arguments.prose("agent", agent)
        return self._topics.conversation.import_transcript(self._id, place, agent)

    def annotate(
        self, reference: str, text: str, author: str | None = None, *, number: int | None = None
    ) -> Annotation:
        """Add a note to a checkpoint. With `number`, replace that note; earlier revisions are
        kept."""
        reference = arguments.text("reference", reference)
        return self._topics.conversation.annotate(self._id, reference, text, author, number=number)

    def annotations(
        self, reference: str | None = None, *, revisions: bool = False
    ) -> list[Annotation]:
        """Notes of one checkpoint or of the whole session; with `revisions`, including earlier
        ones."""
        reference = optional(arguments.text, "reference", reference)
        revisions = flag("revisions", revisions)
        return self._topics.conversation.annotations(self._id, reference, revisions=revisions)

    def take_notices(self) -> list[str]:
        """Notices about restores since the last call, to pass to the agent. Each one is returned
        once."""
        return self._topics.conversation.take_notices(self._id)

    def set_agent_state(self, agent_id: str, state: Mapping[str, Any] | None) -> None:
        """Include an agent's own state in every later checkpoint. None removes it."""
        self._topics.agent_states.set(self._id, agent_id, state)

    def agent_states(self) -> dict[str, dict[str, Any]]:
        """The last state that each agent set, or that a restore brought back."""
        return self._topics.agent_states.of(self._id)

    # Guarded edits and attempts

    def start_edit(self, paths: Iterable[str | Path], reason: str | None = None) -> int:
        """Save files before a tool changes them. Returns the edit's number. A relative path starts
        at the workspace. It is refused if it could mean another file in the current directory."""
        chosen = arguments.paths("paths", paths)
        return self._topics.edits.start(self._id, chosen, _prose("reason", reason))

    def finalize_edit(self, number: int | None = None) -> Activity:
        """Keep the edit's changes and record their diff. Without a number: the newest edit."""
        return self._topics.edits.finalize(
            self._id, optional(arguments.whole_number, "number", number)
        )

    def abort_edit(self, number: int | None = None, *, why: str | None = None) -> Activity:
        """Restore the edit's files, and no others. Without a number: the newest edit."""
        number = optional(arguments.whole_number, "number", number)
        return self._topics.edits.abort(self._id, number, _prose("why", why))

    def editing(self, paths: Iterable[str | Path], reason: str | None = None) -> Editing:
        """`with session.editing(["a.py"]):` restores the files if the block fails. `async with`
        works too. Paths are as in `start_edit`."""
        chosen = arguments.paths("paths", paths)
        return self._topics.edits.editing(self._id, chosen, _prose("reason", reason))

    def open_edits(self) -> list[Activity]:
        """Edits whose process ended before they were kept or rolled back."""
        return [a for a in self._topics.edits.interrupted(self._id) if a.kind.value == "edit"]

    def open_attempts(self) -> list[Activity]:
        """Attempts whose process ended before they were kept or rolled back."""
        return [a for a in self._topics.edits.interrupted(self._id) if a.kind.value != "edit"]

    def activities(self, *, after: int = 0, limit: int | None = None) -> list[Activity]:
        """Every edit, attempt and guarded call of the session, in order, with its result."""
        after = arguments.whole_number("after", after)
        limit = optional(arguments.limit, "limit", limit)
        return self._topics.edits.activities(self._id, after=after, limit=limit)

    def edit_diff(self, number: int) -> str | None:
        """The changes of a finished edit as a unified diff; None if it is open or was rolled back,
        and for attempts."""
        return self._topics.edits.diff(self._id, arguments.whole_number("number", number))

    def attempt(self, reasoning: str) -> Attempt:
        """`with session.attempt("why") as a:` saves first. If the block fails or calls
        `a.reject(why)`, the workspace is rolled back and the attempt recorded. `async with` works
        too."""
        return self._topics.edits.attempt(self._id, reasoning)

    def guarded(self, reasoning: str | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """A decorator that turns every call of a function or coroutine function into an attempt."""
        from holdfast.api.guarded_blocks import guarded
        from holdfast.domain.story import ActivityKind

        def attempt(why: str) -> Attempt:
            return self._topics.edits.attempt(self._id, why, ActivityKind.TOOL)

        return guarded(attempt, reasoning)

    # Rounds

    def approve(self, message: str | None = None) -> ApproveOutcome:
        """Approve the current state of the workspace, and begin the next round."""
        return self._topics.rounds.approve(self._id, _prose("message", message))

    def reset(self) -> ResetOutcome:
        """Restore the last approved checkpoint, or the first one. The round is abandoned."""
        topics = self._topics
        restored = topics.restores.restore(topics.rounds.reset_request(self._id))
        return topics.rounds.reset_outcome(self._id, restored)

    def approval(self, *, look: bool = False) -> ApprovalStatus:
        """The active round, whether HEAD differs from the last approval, and when that was.

        With `look`, the workspace is scanned, so that unsaved edits count too."""
        return self._topics.rounds.status(self._id, look=flag("look", look))

    def rounds(self) -> list[Round]:
        """Every round, oldest first: approved, abandoned, and the active one last, each with its
        number of checkpoints."""
        return self._topics.rounds.all(self._id)

    # Bundles, git and removal for good

    def export(self, path: Path, *references: str, replace: bool = False) -> ExportOutcome:
        """Write the whole session, or some of its checkpoints, to one file."""
        place, chosen = Path(arguments.path("path", path)), _references(references)
        replace = flag("replace", replace)
        bundles = self._topics.bundles
        if chosen:
            found = [self._topics.resolve(self._id, reference) for reference in chosen]
            selection = bundles.select_checkpoints(found)
        else:
            selection = bundles.select_session(self._id)
        return bundles.export(selection, place, replace=replace, progress=NoProgress())

    @classmethod
    def import_bundle(
        cls,
        workspace: Path,
        path: Path,
        *,
        as_session: str | None = None,
        foreign: bool = False,
        dry_run: bool = False,
    ) -> ImportOutcome:
        """Import a file that `export` wrote; `foreign` accepts a file from another workspace."""
        from holdfast.api.exchange import ImportRequest

        directory = Path(arguments.path("workspace", workspace))
        place = Path(arguments.path("path", path))
        name = optional(arguments.text, "as_session", as_session)
        request = ImportRequest(
            place,
            None if name is None else valid_session_id(name),
            foreign=flag("foreign", foreign),
            dry_run=flag("dry_run", dry_run),
        )
        with open_workspace(directory, create=True) as opened:
            return opened.bundles.import_file(request, progress=NoProgress())

    def purge(self, *references: str, force: bool = False) -> PurgeOutcome:
        """Permanently remove checkpoints with all content that only they need, and prove it."""
        wanted, force = _references(references), flag("force", force)
        upkeep = self._topics.upkeep
        upkeep.finish_purge()
        chosen = [self._topics.resolve(self._id, reference) for reference in wanted]
        return upkeep.purge(upkeep.purge_request((), chosen, force=force))

    def purge_paths(
        self,
        *paths: str,
        everywhere: bool = False,
        keep_shared: bool = False,
        force: bool = False,
    ) -> PurgeOutcome:
        """Permanently remove paths from every checkpoint of the workspace, and prove it."""
        upkeep = self._topics.upkeep
        request = upkeep.purge_request(
            [from_text(path) for path in arguments.paths("paths", paths)],
            (),
            everywhere=flag("everywhere", everywhere),
            keep_shared=flag("keep_shared", keep_shared),
            force=flag("force", force),
        )
        return upkeep.purge(request)

    def accept(
        self,
        checkpoints: str | None = None,
        *,
        message: str | None = None,
        co_authors: Sequence[str] = (),
        edit: bool = False,
        dry_run: bool = False,
    ) -> AcceptOutcome:
        """Squash a range of checkpoints, `A..B`, into one commit on the current branch.

        By default, the range starts at the last accepted or approved checkpoint, or at the first
        one, and ends at HEAD. Without a message, one is composed from the reasons. With `dry_run`
        nothing is changed, and the outcome has no commit. Raises `Refused`, with a hint, if
        something prevents the commit.
        """
        from holdfast.api.exchange import CommitWish

        edit, dry_run = flag("edit", edit), flag("dry_run", dry_run)
        git = self._topics.git
        acceptance = git.prepare(
            self._id,
            optional(arguments.text, "checkpoints", checkpoints),
            message=_prose("message", message),
            co_authors=arguments.texts("co_authors", co_authors),
        )
        if dry_run:
            return git.preview(acceptance)
        return git.commit(acceptance, CommitWish(acceptance.message, edit=edit))

    def export_git_bundle(
        self, path: Path, *, everything: bool = False, replace: bool = False
    ) -> MirrorOutcome:
        """Write the session, or all sessions, to a git bundle for `git clone`."""
        place = Path(arguments.path("path", path))
        sessions = None if flag("everything", everything) else [self._id]
        replace = flag("replace", replace)
        return self._topics.bundles.export_git(place, sessions=sessions, replace=replace)

    # The session itself

    @property
    def title(self) -> str | None:
        """The session's title in listings; None if it has none."""
        session = self._topics.sessions.get(self._id)
        return session.title if session else None

    def rename(self, title: str) -> None:
        """Change the session's title."""
        self._topics.sessions.rename(self._id, arguments.prose("title", title))

    @property
    def status(self) -> str | None:
        """`active`, `ended` or `archived`; None before the first checkpoint.

        A session whose agent's process is gone has ended."""
        sessions = self._topics.sessions
        session = sessions.get(self._id)
        return None if session is None else sessions.status(session).value

    def end(self) -> Session:
        """End the session. It can still be listed and restored.

        It becomes active again when it is started again, or when a checkpoint or a message is
        added."""
        return self._topics.sessions.end(self._id)

    def save(self) -> Path:
        """Return the store's directory. There is nothing to flush: checkpoints are durable when
        they are returned."""
        return self._workspace.store_directory

    def archive(self) -> Path | None:
        """Close the session, which can still be listed and restored. None if it has no
        checkpoint."""
        return self._workspace.store_directory if self._topics.sessions.archive(self._id) else None

    def delete_session(self) -> int:
        """Delete the session and everything that only it has. Returns the number of deleted
        checkpoints.

        This cannot be undone. The workspace is not changed, and the id can be used again."""
        return self._topics.sessions.delete(self._id).checkpoints

    def close(self) -> None:
        """Release the store. Closing twice is allowed; every other later call is refused."""
        self._workspace.close()
        self._closed = True

    def __enter__(self) -> SessionCheckpointer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _listed(self, limit: int | None, records: bool, kind: str | None) -> list[Checkpoint]:
        limit = optional(arguments.limit, "limit", limit)
        records, kinds = flag("records", records), optional(arguments.kinds, "kind", kind)
        return self._topics.history.checkpoints(
            self._id, limit=limit, records=records, kinds=kinds or ()
        )

    def _restore_request(
        self,
        reference: str | None,
        paths: Sequence[str | PathLike[str]] | None,
        hunks: Sequence[int | str] | None,
        best_effort: bool,
        components: Mapping[str, str] | None,
    ) -> RestoreRequest:
        reference = optional(arguments.text, "reference", reference)
        chosen = optional(arguments.paths, "paths", paths)
        hunks = optional(arguments.hunks, "hunks", hunks)
        best_effort = flag("best_effort", best_effort)
        components = optional(arguments.choices, "components", components)
        if chosen is not None and not chosen and hunks is None:
            raise UsageError("paths is empty", hint="leave it out to restore everything")
        restores = self._topics.restores
        request = restores.request(
            self._id,
            reference,
            paths=[from_text(path) for path in chosen or ()],
            best_effort=best_effort,
            components=components,
        )
        if hunks is None:
            return request
        return restores.look(request.target).choose_hunks(request, hunks)


def start_session(
    workspace: Path,
    session_id: str | None = None,
    *,
    title: str | None = None,
    agent: str | None = None,
    file_filter: Callable[[Path], bool] | None = None,
) -> SessionCheckpointer:
    """Start a session with a checkpoint of the current state, or resume an interrupted one."""
    return SessionCheckpointer.start(
        workspace, session_id, title=title, agent=agent, file_filter=file_filter
    )


def _prose(name: str, value: str | None) -> str | None:
    return optional(arguments.prose, name, value)


def _references(references: Iterable[str]) -> list[str]:
    return [arguments.text("an entry of references", one) for one in references]

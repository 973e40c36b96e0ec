"""Finds the tool calls that may have made the change that an undo reverts.

A call that begins in a state that was just saved gets no checkpoint of its own. So the newest
checkpoint before a call may have been made for an earlier one, which changed nothing. The tool log
has each call with the checkpoint that it began at. If the log does not go back that far, the
checkpoint's own call is used.

    calls that began at the checkpoint, without those that were found to have changed nothing
      none                      the call after which the checkpoint with the change was made, or
                                calls that were already in progress; otherwise it was no call
      its own                   quoted with its command or paths
      others                    quoted by their tools, or by the checkpoint made after them

Also finds files without a checkpoint that the last calls deleted, if nothing else changed since:

    rm -rf .git, make clean → every saved file is unchanged → undo would revert an earlier change

The reports of the checkpoints before the calls list such files.

Undo describes all of this briefly: `the Bash call "rm -rf src" by AGENT`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Checkpoint, Kind
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import Digest, SessionId, short
from holdfast.domain.intent import AFTER_CALL, BEFORE_MESSAGE
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.paths import to_text
from holdfast.domain.restore.plan import Missing
from holdfast.domain.restore.selections import selected_words, selection_of
from holdfast.domain.timeline.undo_history import State
from holdfast.domain.trees.changes import TreeLoader, tree_changes, visible_changes
from holdfast.domain.wording import one_line
from holdfast.engine.restore.backfilled_paths import first_captured
from holdfast.engine.undo.outside_files import CallsInProgress
from holdfast.engine.vault import Vault
from holdfast.ports.agent_tools import LoggedCall
from holdfast.values.classes import NamedTuple, dataclass, replace

if TYPE_CHECKING:
    from holdfast.engine.undo.undo import UndoStep

_MOST_PATHS = 3
_LONGEST = 80
_SHOWN = 3
_BEFORE_SOMETHING = (Kind.MESSAGE, Kind.TOOL, Kind.RISKY)
"""Made before something happened: without a tool call, a person changed the files."""
_DONE = {
    OperationKind.RESTORE: "the restore",
    OperationKind.RESET: "the reset",
    OperationKind.UNDO: "the undo",
    OperationKind.REDO: "the redo",
}


@dataclass(frozen=True, slots=True)
class Cause:
    """Calls of one session. `subject` is the command or the paths of a single call, if known;
    `edits` are the files that an edit names. `or_user`: the call was in progress, but the user may
    have made the change instead."""

    session_id: SessionId
    at_ns: int
    tools: tuple[str, ...]
    calls: int = 1
    subject: str = ""
    edits: tuple[str, ...] = ()
    or_user: bool = False


def tool_calls_after(vault: Vault, before: State, after: Checkpoint | None) -> tuple[Cause, ...]:
    """The calls that may have led from a state to the current one; `after` is the first checkpoint
    that has the change."""
    return CausesByLog(vault).between(before, after)


class CausesByLog:
    """Causes of changes from the tool log, which is read once."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._calls = vault.tool_log.calls()
        self._looks = vault.tool_log.looks()
        self._in_progress = CallsInProgress(vault)

    def between(self, before: State, after: Checkpoint | None) -> tuple[Cause, ...]:
        vault = self._vault
        found = tuple(_causes(vault, before, after, self._calls, self._looks))
        if found or after is None or after.kind not in _BEFORE_SOMETHING:
            return found
        return (_own(vault, after),) if _is_after_tool(after) else self.overlapping(before)

    def overlapping(self, state: State) -> tuple[Cause, ...]:
        """Calls that were in progress when a state was last saved."""
        begun = self._in_progress.begun_before(state.checkpoints[-1])
        found = [call_begun_at(self._vault, one) for one in begun]
        return tuple(replace(cause, or_user=True) for cause in found if cause is not None)


def are_overlapping_edits(
    vault: Vault, causes: Sequence[Cause], before: State, after: State
) -> bool:
    """Whether each of several calls is an edit of changed files: then all of them are causes."""
    if not causes[1:] or not all(one.edits for one in causes):
        return False
    try:
        changes = tree_changes(vault.load_tree, before.tree, after.tree)
        changed = {to_text(change.path) for change in changes}
    except StoreDamaged:
        return False
    return all(changed.issuperset(one.edits) for one in causes)


class Authors(NamedTuple):
    """Who made the changes of a turn: sessions, in the order of their work, and the user, who
    changed the files in `edited` while no tool call was in progress."""

    sessions: tuple[SessionId, ...] = ()
    edited: tuple[bytes, ...] = ()


def authors_since(
    vault: Vault, states: Sequence[State], present: Digest, load: TreeLoader
) -> Authors:
    """The authors of all changes from the first of these states until now."""
    log = CausesByLog(vault)
    sessions: dict[SessionId, None] = {}
    edited: dict[bytes, None] = {}
    for before, after in zip_longest(states, states[1:]):
        tree = present if after is None else after.tree
        if before.tree == tree or (after is not None and after.restored is not None):
            continue
        saved = None if after is None else after.checkpoints[0]
        causes = log.between(before, saved) or log.overlapping(before)
        sessions |= dict.fromkeys(cause.session_id for cause in causes)
        if not causes:
            # An ignored file that a call names is captured from then on: that is no edit.
            later = [] if saved is None else [saved]
            captured = {path for path, _ in first_captured(vault, before.newest_checkpoint, later)}
            changes = visible_changes(tree_changes(load, before.tree, tree))
            edited |= dict.fromkeys(one.path for one in changes if one.path not in captured)
    return Authors(tuple(sessions), tuple(edited))


def call_begun_at(vault: Vault, before: Checkpoint) -> Cause | None:
    """The newest call that began at a checkpoint, if any."""
    calls = [call for call in vault.tool_log.calls() if call.at == before.id]
    if is_before_tool(before) and not calls[1:]:
        return _own(vault, before)
    return _later(before, calls[-1:], None) if calls else None


def _causes(
    vault: Vault,
    before: State,
    after: Checkpoint | None,
    calls: list[LoggedCall],
    looks: list[tuple[int, str]],
) -> Iterator[Cause]:
    """The newest call of each session. If the newest checkpoint was made for something else, or an
    undo reverted the call, there is none."""
    returned = [place for place, one in enumerate(before.checkpoints) if one.kind is Kind.RESTORE]
    since = before.checkpoints[returned[-1] + 1 if returned else 0 :]
    ordinary = [one for one in since if not one.kind.is_record]
    seen: set[SessionId] = set()
    for one in reversed(ordinary):
        began_here = [call for call in calls if call.at == one.id]
        if one is ordinary[-1] and not began_here and not is_before_tool(one):
            return
        if one.session_id in seen:
            continue
        seen.add(one.session_id)
        left = [call for call in began_here if _may_have_changed(call, looks)]
        if is_before_tool(one) and (not began_here or left == began_here[:1]):
            yield _own(vault, one)
        elif left:
            yield _later(one, left, after)


def _may_have_changed(call: LoggedCall, looks: list[tuple[int, str]]) -> bool:
    """False if the workspace was unchanged after the call."""
    if call.ended_ns is None:
        return True
    return all(looked_ns < call.ended_ns for looked_ns, seen in looks if seen == call.at)


def _own(vault: Vault, before: Checkpoint) -> Cause:
    call = before.intent.tool_calls[-1]
    known: Mapping[str, object] = call if isinstance(call, Mapping) else {}
    subject = str(known.get("command") or "")
    paths = known.get("paths")
    edits: tuple[str, ...] = ()
    if not subject and isinstance(paths, list | tuple):
        root = f"{vault.workspace}/"
        edits = tuple(str(path).removeprefix(root) for path in paths)
        subject = ", ".join(edits[:_MOST_PATHS])
    tool = str(known.get("tool") or "tool")
    return Cause(before.session_id, before.created_at_ns, (tool,), subject=subject, edits=edits)


def _later(before: Checkpoint, calls: list[LoggedCall], after: Checkpoint | None) -> Cause:
    tools = tuple(dict.fromkeys(call.tool or "tool" for call in calls))
    subject = ""
    if len(calls) == 1 and after is not None and after.session_id == before.session_id:
        said = f"After {tools[0]}: "
        subject = after.intent.reasoning.removeprefix(said)
        subject = "" if subject == after.intent.reasoning else subject
    at_ns = max(call.begun_ns for call in calls)
    return Cause(before.session_id, at_ns, tools, len(calls), subject)


def is_before_tool(checkpoint: Checkpoint) -> bool:
    return _is_for_tool(checkpoint) and not checkpoint.intent.reasoning.startswith(AFTER_CALL)


def _is_after_tool(checkpoint: Checkpoint) -> bool:
    return _is_for_tool(checkpoint) and checkpoint.intent.reasoning.startswith(AFTER_CALL)


def _is_for_tool(checkpoint: Checkpoint) -> bool:
    return checkpoint.kind in (Kind.TOOL, Kind.RISKY) and bool(checkpoint.intent.tool_calls)


@dataclass(frozen=True, slots=True)
class Loss:
    """The call, and the files that it deleted."""

    cause: Cause
    missing: tuple[Missing, ...]

    @property
    def is_caches(self) -> bool:
        return all(gone.is_cache for gone in self.missing)


def loss_since(vault: Vault, state: State) -> Loss | None:
    """Files deleted by calls since a state that the workspace is still in: by the newest such call,
    or else by the newest one that deleted caches. Files that were already missing after an undo or
    a restore to the state do not count."""
    caches: Loss | None = None
    returned = [place for place, one in enumerate(state.checkpoints) if one.kind is Kind.RESTORE]
    for one in reversed(state.checkpoints[returned[-1] + 1 if returned else 0 :]):
        cause = call_begun_at(vault, one)
        if cause is None:
            continue
        from holdfast.engine.restore.plan import missing_now  # late: few need it

        found = Loss(cause, tuple(missing_now(vault, one)))
        if not found.is_caches:
            kept = tuple(gone for gone in found.missing if not gone.is_cache)
            return replace(found, missing=kept)
        caches = caches or (found if found.missing else None)
    return caches


def undone_words(vault: Vault, step: UndoStep) -> str:
    if step.undone is not None:
        words = _restore(vault, step.undone)
        # A redo brings back what the undo reverted.
        redone = step.request.kind is OperationKind.REDO
        return words.removeprefix("the undo of ") if redone else words
    since = step.since or step.request.target
    if step.turn:
        return f"everything since {_quoted(since)}{_by_authors(vault, step.authors)}"
    if step.causes:
        calls = [_tool_calls(vault, one) for one in step.causes]
        if step.overlapping:
            return f"{' and '.join(calls)}, which overlapped"
        words = " or ".join(calls)
        return f"{words} or your edits" if any(one.or_user for one in step.causes) else words
    if step.saved is not None and step.saved.kind in _BEFORE_SOMETHING:
        return one_line(f"your edits before {_cause_of_save(step.saved)}", 2 * _LONGEST)
    if step.saved is not None and not step.saved.kind.is_record:
        return f"the changes up to {_quoted(step.saved)}"
    # Safety checkpoints of restores, undos and redos are unsaved changes, too.
    which = "unsaved changes" if step.saved is None else "changes"
    if selection_of(since) is not None:
        return f"the {which} since {_from(vault, OperationKind.RESTORE, since)}"
    return f"the {which} since {_quoted(since)}"


def _by_authors(vault: Vault, authors: Authors) -> str:
    """`, by AGENT (one) and AGENT (two), with your edits of notes.txt`; agents only if there are
    several."""
    agents = [_agent(vault, one) for one in authors.sessions]
    words = f", by {' and '.join(agents)}" if len(agents) > 1 else ""
    return f"{words}, with your edits of {_listed(authors.edited)}" if authors.edited else words


def _agent(vault: Vault, session_id: SessionId) -> str:
    session = vault.catalog.session(session_id)
    agent = session.agent if session is not None and session.agent else "an agent"
    return f"{one_line(agent, 40)} (session {one_line(session_id, 40)})"


def _listed(paths: Sequence[bytes]) -> str:
    """`a.txt, b.txt, c.txt and 2 more`"""
    names = [one_line(to_text(path), _LONGEST) for path in paths[:_SHOWN]]
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(names)}{more}"


def _cause_of_save(saved: Checkpoint) -> str:
    """What a checkpoint was made for: `the message "tidy up"` or `the Bash call "make"`."""
    head, _, subject = saved.intent.reasoning.partition(": ")
    quoted = f' "{subject}"' if subject else ""
    if head == BEFORE_MESSAGE:
        return f"the message{quoted}"
    if is_before_tool(saved) and head.startswith("Before "):
        return f"the {head.removeprefix('Before ')} call{quoted}"
    return _quoted(saved)


def loss_words(vault: Vault, loss: Loss) -> str:
    """`the Bash call "rm -rf .git" by AGENT deleted .git, which Holdfast does not save`"""
    call = _tool_calls(vault, loss.cause)
    deleted = _listed([gone.path for gone in loss.missing])
    return f"{call} deleted {deleted}, which Holdfast does not save and cannot restore"


def _restore(vault: Vault, operation: Operation) -> str:
    made = None
    if operation.checkpoint is not None:
        made = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    if made is None:
        return _DONE[operation.kind]
    if operation.kind is not OperationKind.UNDO:
        return _from(vault, operation.kind, made)
    undone = None
    if operation.reverses is not None:
        undone = next(iter(vault.catalog.operations_after(operation.reverses - 1, 1)), None)
    if undone is not None and undone.kind in RESTORING_KINDS:
        return f"the undo of {_restore(vault, undone)}"
    before, _, _ = made.intent.reasoning.partition(": back to ")
    return one_line(f"the undo of {before.removeprefix('Undid ')}", _LONGEST)


def _from(vault: Vault, kind: OperationKind, record: Checkpoint) -> str:
    """`the restore to one`, `the restore of a.txt from one`."""
    target = None
    if record.restores_from is not None:
        target = vault.catalog.checkpoint(record.session_id, record.restores_from)
    name = "" if target is None else target.name or short(target.id)
    selection = selection_of(record)
    if selection is None:
        return f"{_DONE[kind]} to {name}" if name else _DONE[kind]
    what = selected_words(selection) or "some paths"
    what = f"parts of {what}" if selection.hunks else what
    return one_line(f"{_DONE[kind]} of {what}{f' from {name}' if name else ''}", _LONGEST)


def _tool_calls(vault: Vault, cause: Cause) -> str:
    session = vault.catalog.session(cause.session_id)
    by = f" by {one_line(session.agent, 40)}" if session is not None and session.agent else ""
    quoted = f' "{one_line(cause.subject, _LONGEST)}"' if cause.subject else ""
    tools = " and ".join(one_line(tool, 40) for tool in cause.tools)
    return f"the {tools} {'call' if cause.calls == 1 else 'calls'}{quoted}{by}"


def _quoted(checkpoint: Checkpoint) -> str:
    name = checkpoint.name or one_line(checkpoint.intent.reasoning, _LONGEST)
    return f'checkpoint {short(checkpoint.id)} "{name}"'

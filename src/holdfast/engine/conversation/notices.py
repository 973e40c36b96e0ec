"""The notice that an agent gets once after a restore, by its own session or another.

    restores in the log without a notice for the session → text → recorded as delivered → returned
    `claim_notices`: the same, recorded as delivered only when the caller confirms it

A session is notified of every restore since it began, because all sessions share the workspace. For
its own restores, the notice has everything: files, messages that no longer apply, effects outside
the workspace. For another session's, it names the files that both share, but no reason or message
of that session (CP-8).

Guarantee: if several processes ask for a session, only one gets a notice. `take_notices` returns no
notice twice. A process that dies after recording the delivery loses its notice. A claimed notice is
delivered at least once, because a claim ends with its process, or after a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice

from holdfast.domain.agent_events import NoticeClaim
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId, short
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.paths import is_within, to_text
from holdfast.domain.restore.selections import Selection, selection_of
from holdfast.domain.story import Marks
from holdfast.domain.trees.changes import ChangeType, tree_changes, visible_changes
from holdfast.engine.components.git_drift import git_drift
from holdfast.engine.conversation.conversation import follow
from holdfast.engine.restore.plan import missing_now
from holdfast.engine.undo.outside_files import changed_between
from holdfast.engine.vault import Vault

LAST_NOTICE = "told"
NOTICE_CLAIM = "telling"
_CLAIM_NS = 60 * 1_000_000_000
_MOST_NOTICES = 5
_NAMED_FILES = 8
_PREVIEW = 60
_MOST_CHANGES = 100_000
_LOOKED_BACK = 200

OUTSIDE = (
    "Not undone, because it is outside the workspace: network calls and their effects, other "
    "databases and services, packages installed elsewhere, git remotes, and background "
    "processes."
)
BEFORE_EDITING = "Read a file again before you edit it or rely on it: it may have changed."
STILL_YOURS = (
    "Your conversation is not rolled back. Your own changes to these files may be gone: "
    "holdfast diff HEAD shows what differs from your last checkpoint."
)

_DONE = {
    OperationKind.RESTORE: "The workspace was restored to an earlier state",
    OperationKind.RESET: "The work was reset to the last approved state",
    OperationKind.UNDO: "A restore was undone: all captured files are as they were before it",
    OperationKind.REDO: "An undone restore was redone",
}
_TO_THE_BEGINNING = (
    "Nothing was approved yet, so the workspace was reset to the start of the session"
)
_DONE_ELSEWHERE = {
    OperationKind.RESTORE: "restored the workspace to one of its own checkpoints",
    OperationKind.RESET: "reset the workspace to its last approved state",
    OperationKind.UNDO: "undid one of its own restores",
    OperationKind.REDO: "redid one of its own restores",
}
_TO_ITS_BEGINNING = "reset the workspace to the start of that session"

_FATES = (
    (ChangeType.MODIFIED, "was restored to earlier content", "were restored to earlier content"),
    (ChangeType.REMOVED, "was removed", "were removed"),
    (ChangeType.ADDED, "was recreated", "were recreated"),
)


def take_notices(
    vault: Vault, session_id: SessionId, *, answered: Collection[CheckpointId] = ()
) -> list[str]:
    """All pending notices of the session, oldest first. For a restore whose record is in
    `answered`, only what its own answer does not contain."""
    while True:
        last = vault.story.fact(session_id, LAST_NOTICE)
        done = _pending(vault, session_id, last)
        if not done:
            return []
        notices = _notices(vault, session_id, done, answered)
        newest = str(done[-1].sequence)
        if vault.story.set_fact(session_id, LAST_NOTICE, newest, expected=last):
            return notices


def claim_notices(
    vault: Vault, session_id: SessionId, *, answered: Collection[CheckpointId] = ()
) -> NoticeClaim | None:
    """The pending notices of the session, unless another process is delivering them; `answered` as
    in `take_notices`."""
    while True:
        done = _pending(vault, session_id, vault.story.fact(session_id, LAST_NOTICE))
        if not done:
            return None
        newest, now_ns = done[-1].sequence, vault.clock.now_ns()
        held = vault.story.fact(session_id, NOTICE_CLAIM)
        if _is_claimed(vault, held, newest, now_ns):
            return None
        texts = tuple(_notices(vault, session_id, done, answered))
        mark = f"{newest} {now_ns} {vault.processes.own_identity()}"
        if vault.story.set_fact(session_id, NOTICE_CLAIM, mark, expected=held):
            return NoticeClaim(session_id, texts, newest, mark)


def _pending(vault: Vault, session_id: SessionId, last: str | None) -> Sequence[Operation]:
    return vault.catalog.restores_since(session_id, after=int(last) if last is not None else 0)


def _is_claimed(vault: Vault, held: str | None, newest: int, now_ns: int) -> bool:
    sequence, _, rest = (held or "").partition(" ")
    at_ns, _, identity = rest.partition(" ")
    if not (sequence.isdecimal() and at_ns.isdecimal()) or int(sequence) < newest:
        return False
    return abs(now_ns - int(at_ns)) < _CLAIM_NS and vault.processes.is_alive(identity)


def settle_claim(vault: Vault, claim: NoticeClaim, *, delivered: bool) -> None:
    """Record the delivery, or release the claim so that another process can deliver."""
    if not delivered:
        vault.story.set_fact(claim.session_id, NOTICE_CLAIM, "", expected=claim.mark)
        return
    while True:
        noted = vault.story.fact(claim.session_id, LAST_NOTICE)
        if noted is not None and int(noted) >= claim.newest:
            return
        if vault.story.set_fact(claim.session_id, LAST_NOTICE, str(claim.newest), expected=noted):
            return


def _notices(
    vault: Vault,
    session_id: SessionId,
    done: Sequence[Operation],
    answered: Collection[CheckpointId] = (),
) -> list[str]:
    follow(vault, session_id)
    history = vault.story.rollbacks(session_id)
    marks = history[-1].after if history else ()
    notices: list[str] = []
    for operation in done[-_MOST_NOTICES:]:
        own = operation.session_id == session_id
        if operation.checkpoint in answered:
            notices.append(_rest_of_answer(vault, operation, marks if own else ()))
        elif not own:
            notices.append(_foreign_notice(vault, operation))
        else:
            notices.append(_own_notice(vault, operation, marks))
    earlier = len(done) - len(notices)
    if earlier:
        came = "restore" if earlier == 1 else "restores"
        notices.insert(
            0, f"{earlier} more {came} happened before that: see holdfast log --records."
        )
    return notices


def _own_notice(vault: Vault, operation: Operation, marks: Marks) -> str:
    """About a restore by the notified session."""
    record = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    target = record and vault.catalog.checkpoint(operation.session_id, record.restores_from)
    done = _TO_THE_BEGINNING if _is_before_approval(vault, operation) else _DONE[operation.kind]
    undone = operation.note if operation.kind is OperationKind.UNDO else None
    if undone:
        # The note addresses the person who made these edits.
        undone = undone.replace("your edits", "their own edits", 1)
        done = f"The user undid {undone}: all captured files are as they were before"
    parts = [done + _target_words(target or record) + "."]
    if operation.note and not undone:
        parts.append(f"Why: {operation.note}.")
    parts += [_files(vault, operation, record), _missing(vault, record), _git(vault, target)]
    parts += _besides(vault, operation, target, marks)
    parts.append(BEFORE_EDITING)
    if operation.kind is not OperationKind.UNDO:
        parts.append("To undo this: holdfast undo.")
    return _notice(parts)


def _rest_of_answer(vault: Vault, operation: Operation, marks: Marks) -> str:
    """The notice for the caller of the restore, whose answer already names the files."""
    record = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    target = record and vault.catalog.checkpoint(operation.session_id, record.restores_from)
    return _notice(_besides(vault, operation, target, marks))


def _foreign_notice(vault: Vault, operation: Operation) -> str:
    """About a restore by another session of the workspace."""
    session = vault.catalog.session(operation.session_id)
    agent = f" (agent {_printable(session.agent)})" if session and session.agent else ""
    record = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    state, target = "", None
    if record is not None and record.restores_from is not None:
        target = vault.catalog.checkpoint(operation.session_id, record.restores_from)
        state = f", checkpoint {short(record.restores_from)}"
        if target is not None:
            saved_at = datetime.fromtimestamp(target.created_at_ns / 1e9, tz=UTC)
            state += f" of {saved_at:%Y-%m-%d %H:%M:%S} UTC"
    who, done = _printable(operation.session_id), _DONE_ELSEWHERE[operation.kind]
    if _is_before_approval(vault, operation):
        done = _TO_ITS_BEGINNING
    if operation.kind is OperationKind.UNDO and operation.note:
        # The session itself gets the details.
        done = "had its last change undone by the user"
    return _notice(
        [
            f"Another session of this workspace, {who}{agent}, {done}{state}.",
            _files(vault, operation, record),
            _missing(vault, record),
            _git(vault, target),
            STILL_YOURS,
            BEFORE_EDITING,
            "If this is a problem, ask the user first: it is that session's work.",
        ]
    )


def _is_before_approval(vault: Vault, operation: Operation) -> bool:
    """Whether it is a reset without any approval to go back to."""
    if operation.kind is not OperationKind.RESET:
        return False
    approvals = vault.catalog.operations(operation.session_id, kinds=(OperationKind.APPROVE,))
    return all(approval.sequence > operation.sequence for approval in approvals)


def _notice(parts: list[str]) -> str:
    # People can write any text, but agents accept only UTF-8.
    return " ".join(part for part in parts if part).encode("utf-8", "backslashreplace").decode()


def _target_words(target: Checkpoint | None) -> str:
    if target is None:
        return ""
    name = f" {target.name!r}" if target.name else ""
    why = " ".join(target.intent.reasoning.split())
    why = why if len(why) <= _PREVIEW else why[: _PREVIEW - 1] + "…"
    return f", checkpoint {short(target.id)}{name} ({why})"


def _files(vault: Vault, operation: Operation, after: Checkpoint | None) -> str:
    """The files that the restore changed, from the safety checkpoint to its record."""
    before = vault.catalog.checkpoint(operation.session_id, operation.safety)
    if before is None or after is None:
        return "The list of changed files is no longer available."
    selected = selection_of(after)
    if selected is None:
        return _changed(vault, before, after) or "No file differs from the version you saw last."
    if not selected.paths:
        return "Only selected paths were restored; all other files are unchanged."
    if selected.hunks:
        count = len(selected.hunks)
        parts, were = ("1 part", "was") if count == 1 else (f"{count} parts", "were")
        return f"Only {parts} of {_names(selected.paths)} {were} restored; the rest is unchanged."
    named = (
        f"Only these paths were restored, all other files are unchanged: {_names(selected.paths)}."
    )
    changed = _changed(vault, before, after, selected)
    return f"{named} {changed}" if changed else named


def _missing(vault: Vault, after: Checkpoint | None) -> str:
    """Missing paths that the restored checkpoint had left out."""
    target = after and vault.catalog.checkpoint(after.session_id, after.restores_from)
    if after is None or target is None:
        return ""
    selected = selection_of(after)
    try:
        gone = tuple(
            one.path
            for one in missing_now(vault, target)
            if selected is None or any(is_within(one.path, path) for path in selected.paths)
        )
    except StoreDamaged:
        return "The list of files that the checkpoint skipped cannot be read."
    return f"Still missing, because Holdfast does not save it: {_names(gone)}." if gone else ""


def _git(vault: Vault, target: Checkpoint | None) -> str:
    """Git's position, if the restored files belong to another commit."""
    drift = None if target is None else git_drift(vault, target)
    if drift is None or not drift.moved or not drift.matters:
        return ""
    words = drift.words()
    return f"{words[0].upper()}{words[1:]}. Do not commit before you know which branch this is for."


def _changed(
    vault: Vault, before: Checkpoint, after: Checkpoint, selected: Selection | None = None
) -> str:
    """The trees also differ in unsaved changes. A restore of some paths touched only those."""
    try:
        differing = visible_changes(tree_changes(vault.load_tree, before.tree, after.tree))
        touched = (
            change
            for change in differing
            if selected is None or any(is_within(change.path, path) for path in selected.paths)
        )
        changes = list(islice(touched, _MOST_CHANGES))
    except StoreDamaged:
        return "The list of changed files cannot be read."
    counted = []
    for kind, one, many in _FATES:
        found = [change for change in changes if change.type is kind]
        if found:
            count = f"1 file {one}" if len(found) == 1 else f"{len(found)} files {many}"
            counted.append(f"{count}: {_names(tuple(change.path for change in found))}")
    return "; ".join(counted) + "." if counted else ""


def _names(paths: tuple[bytes, ...]) -> str:
    shown = ", ".join(_printable(to_text(path)) for path in paths[:_NAMED_FILES])
    more = len(paths) - _NAMED_FILES
    return f"{shown} and {more} more" if more > 0 else shown


def _printable(text: str) -> str:
    """Names can contain any byte; none may start a new line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _besides(
    vault: Vault, operation: Operation, target: Checkpoint | None, marks: Marks
) -> list[str]:
    return [
        _messages(vault, operation, marks),
        OUTSIDE,
        _named_outside(vault, operation, target),
    ]


def _messages(vault: Vault, operation: Operation, marks: Marks) -> str:
    gone = [stretch for stretch in marks if stretch.operation == operation.sequence]
    if not gone:
        return ""
    first, last = gone[0].first, gone[-1].last
    found = vault.story.messages(operation.session_id, first=first, limit=1)
    preview = " ".join(found[0].content.split())[:_PREVIEW] if found else ""
    if first == last:
        about = f" ({preview!r})" if preview else ""
        return (
            f"In the conversation, message {first}{about} no longer applies: its work was "
            "undone. Do it again if it is still wanted."
        )
    about = f" (from {preview!r} on)" if preview else ""
    return (
        f"In the conversation, messages {first} to {last}{about} no longer apply: their work "
        "was undone. Do it again if it is still wanted."
    )


def _named_outside(vault: Vault, operation: Operation, target: Checkpoint | None) -> str:
    """Paths outside the workspace that tools named between the restored state and the restore.
    Later ones are not its concern."""
    if target is None:
        return ""
    named: dict[str, None] = {}
    record = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    for made in vault.catalog.history(operation.session_id, limit=_LOOKED_BACK):
        if made.sequence < target.sequence:
            break
        if record is not None and made.sequence > record.sequence:
            continue
        for call in made.intent.tool_calls:
            outside = call.get("outside", ()) if isinstance(call, Mapping) else ()
            named |= dict.fromkeys(str(path) for path in outside)
    if not named:
        return ""
    shown = ", ".join(map(_printable, list(named)[:_NAMED_FILES])) + (
        " …" if len(named) > _NAMED_FILES else ""
    )
    if _restored_outside(vault, operation):
        return f"Outside the workspace, your tools used {shown}: this was restored too."
    return (
        f"Outside the workspace, your tools used {shown}: this was not restored, unless the "
        "restore was made with --external."
    )


def _restored_outside(vault: Vault, operation: Operation) -> bool:
    safety = vault.catalog.checkpoint(operation.session_id, operation.safety)
    made = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    if operation.kind not in (OperationKind.UNDO, OperationKind.REDO) or not safety or not made:
        return False
    return changed_between(vault, safety, made)

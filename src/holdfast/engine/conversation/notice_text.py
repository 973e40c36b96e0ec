"""What a notice says about one restore, in words that an agent can act on.

Of a restore of its own session an agent is told everything: files, messages that no longer hold,
what lies outside. Of one that another session made it is told about the files that it shares with
it, and nothing that was said or meant over there (CP-8).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import short
from holdfast.domain.operations import Operation, OperationKind
from holdfast.domain.paths import is_within, to_text
from holdfast.domain.restore.selections import Selection, selection_of
from holdfast.domain.story import Marks
from holdfast.domain.trees.changes import Change, ChangeType, tree_changes, visible_changes
from holdfast.engine.components.git_drift import git_drift
from holdfast.engine.undo.outside_files import changed_between
from holdfast.engine.vault import Vault

_NAMED_FILES = 8
_PREVIEW = 60
_MOST_CHANGES = 100_000
_LOOKED_BACK = 200

OUTSIDE = (
    "Not undone, because it is outside the workspace: network calls and what they changed, other "
    "databases and services, packages installed elsewhere, git remotes, processes still running "
    "in the background."
)
BEFORE_EDITING = (
    "Read a file again before you edit it or rely on it: what you remember of it may be gone."
)
STILL_YOURS = (
    "Your conversation is not rolled back: what was said in it still holds. Your own changes to "
    "these files may be gone, though: holdfast diff HEAD shows what differs from your last "
    "checkpoint."
)

_DONE = {
    OperationKind.RESTORE: "The workspace was restored to an earlier state",
    OperationKind.RESET: "The work was reset to the last approved state",
    OperationKind.UNDO: "A restore was undone: the work is as it was before it",
    OperationKind.REDO: "An undone restore was done again",
}
_TO_THE_BEGINNING = "Nothing was approved yet, so the work was reset to how the session began"
_DONE_ELSEWHERE = {
    OperationKind.RESTORE: "restored the workspace to a state of its own",
    OperationKind.RESET: "reset the workspace to what was approved there",
    OperationKind.UNDO: "undid a restore of its own",
    OperationKind.REDO: "did an undone restore of its own again",
}
_TO_ITS_BEGINNING = "reset the workspace to how that session began"

_FATES = (
    (ChangeType.MODIFIED, "went back to earlier content", "went back to earlier content"),
    (ChangeType.REMOVED, "was removed", "were removed"),
    (ChangeType.ADDED, "came back", "came back"),
)


def own_notice(vault: Vault, operation: Operation, marks: Marks) -> str:
    """About a restore of the session that is told."""
    record = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    target = record and vault.catalog.checkpoint(operation.session_id, record.restores_from)
    done = _TO_THE_BEGINNING if _is_before_approval(vault, operation) else _DONE[operation.kind]
    undone = operation.note if operation.kind is OperationKind.UNDO else None
    if undone:
        done = f"A person undid {undone}: the work is as it was before it"
    parts = [done + _to(target or record) + "."]
    if operation.note and not undone:
        parts.append(f"Why: {operation.note}.")
    parts += [_files(vault, operation, record), _git(vault, target)]
    parts += _besides(vault, operation, target, marks)
    parts.append(BEFORE_EDITING)
    if operation.kind is not OperationKind.UNDO:
        parts.append("To take this back: holdfast undo.")
    return _said(parts)


def rest_of_answer(vault: Vault, operation: Operation, marks: Marks) -> str:
    """What whoever asked for the restore is told with the answer, which names the files."""
    record = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    target = record and vault.catalog.checkpoint(operation.session_id, record.restores_from)
    return _said(_besides(vault, operation, target, marks))


def foreign_notice(vault: Vault, operation: Operation) -> str:
    """About a restore that another session of the workspace made."""
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
        # What it was is told where it was done.
        done = "had its last change undone by a person"
    return _said(
        [
            f"Another session of this workspace, {who}{agent}, {done}{state}.",
            _files(vault, operation, record),
            _git(vault, target),
            STILL_YOURS,
            BEFORE_EDITING,
            "If it must not stay so, ask the person first: it is that session's work.",
        ]
    )


def _is_before_approval(vault: Vault, operation: Operation) -> bool:
    """Whether it is a reset that had nothing approved to go back to."""
    if operation.kind is not OperationKind.RESET:
        return False
    approvals = vault.catalog.operations(operation.session_id, kinds=(OperationKind.APPROVE,))
    return all(approval.sequence > operation.sequence for approval in approvals)


def _said(parts: list[str]) -> str:
    # What people wrote can be any text; agents take nothing but what is UTF-8.
    return " ".join(part for part in parts if part).encode("utf-8", "backslashreplace").decode()


def _to(target: Checkpoint | None) -> str:
    if target is None:
        return ""
    name = f" {target.name!r}" if target.name else ""
    why = " ".join(target.intent.reasoning.split())
    why = why if len(why) <= _PREVIEW else why[: _PREVIEW - 1] + "…"
    return f", checkpoint {short(target.id)}{name} ({why})"


def _files(vault: Vault, operation: Operation, after: Checkpoint | None) -> str:
    """What the restore changed on disk: from the state that was saved first to the one it made."""
    before = vault.catalog.checkpoint(operation.session_id, operation.safety)
    if before is None or after is None:
        return "Which files changed is not known any more."
    selected = selection_of(after)
    if selected is None:
        return _changed(vault, before, after) or "No file differs from what you saw last."
    if not selected.paths:
        return "Only selected paths went back; every other file is as it was."
    if selected.hunks:
        parts = "1 part" if len(selected.hunks) == 1 else f"{len(selected.hunks)} parts"
        return f"Only {parts} of {_names(selected.paths)} went back; all else is as it was."
    named = f"Only these paths went back, every other file is as it was: {_names(selected.paths)}."
    changed = _changed(vault, before, after, selected)
    return f"{named} {changed}" if changed else named


def _git(vault: Vault, target: Checkpoint | None) -> str:
    """Where git is, if the files that came back belong to another commit."""
    drift = None if target is None else git_drift(vault, target)
    if drift is None or not drift.matters:
        return ""
    words = drift.words()
    return f"{words[0].upper()}{words[1:]}. Do not commit before you know which branch this is for."


def _changed(
    vault: Vault, before: Checkpoint, after: Checkpoint, selected: Selection | None = None
) -> str:
    """Between two trees lies also what was not saved yet: of a restore of some paths only these
    were touched."""
    try:
        differing = visible_changes(tree_changes(vault.load_tree, before.tree, after.tree))
        touched = (
            change
            for change in differing
            if selected is None or any(is_within(change.path, path) for path in selected.paths)
        )
        changes = list(islice(touched, _MOST_CHANGES))
    except StoreDamaged:
        return "Which files changed cannot be read."
    counted = []
    for kind, one, many in _FATES:
        found = [change for change in changes if change.type is kind]
        if found:
            count = f"1 file {one}" if len(found) == 1 else f"{len(found)} files {many}"
            counted.append(f"{count}: {_names(_paths(found))}")
    return "; ".join(counted) + "." if counted else ""


def _paths(changes: list[Change]) -> tuple[bytes, ...]:
    return tuple(change.path for change in changes)


def _names(paths: tuple[bytes, ...]) -> str:
    shown = ", ".join(_printable(to_text(path)) for path in paths[:_NAMED_FILES])
    more = len(paths) - _NAMED_FILES
    return f"{shown} and {more} more" if more > 0 else shown


def _printable(text: str) -> str:
    """Names can hold any byte; none of them begins a line of its own."""
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
            f"In the conversation, message {first}{about} no longer holds: what was done in it is "
            "undone, and has to be done again if it is still wanted."
        )
    about = f" (from {preview!r} on)" if preview else ""
    return (
        f"In the conversation, messages {first} to {last}{about} no longer hold: what was done in "
        "them is undone, and has to be done again if it is still wanted."
    )


def _named_outside(vault: Vault, operation: Operation, target: Checkpoint | None) -> str:
    """Paths outside the workspace that tools named between the state that was restored and the
    restore: what they named later is not its doing."""
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
        return f"Outside the workspace your tools named {shown}: that was restored too."
    return (
        f"Outside the workspace your tools named {shown}: that is as it is now, unless the restore "
        "was made with --external."
    )


def _restored_outside(vault: Vault, operation: Operation) -> bool:
    safety = vault.catalog.checkpoint(operation.session_id, operation.safety)
    made = vault.catalog.checkpoint(operation.session_id, operation.checkpoint)
    if operation.kind not in (OperationKind.UNDO, OperationKind.REDO) or not safety or not made:
        return False
    return changed_between(vault, safety, made)

"""What an agent is told once after its work was taken back, in words that it can act on.

    restores in the log that nobody was told of → their words → noted as told → given out
    `claim_notices`: the same, noted as told only when whoever tells it says that it was told

Guarantee: of several processes that ask, one gets a notice. `take_notices` gives none out twice,
and one that dies between noting and telling takes it along. What was claimed is told at least once:
a claim ends with its process, or after a minute, and somebody else may tell it then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from holdfast.domain.changes import Change, ChangeType, tree_changes, visible_changes
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, SessionId, short
from holdfast.domain.operations import RESTORING_KINDS, Operation, OperationKind
from holdfast.domain.paths import to_text
from holdfast.domain.rollbacks import Marks
from holdfast.engine.conversation import follow
from holdfast.engine.restore.records import restored_in_part
from holdfast.engine.vault import Vault
from holdfast.store.processes import is_alive, own_identity

TOLD = "told"
TELLING = "telling"
_CLAIM_NS = 60 * 1_000_000_000
_MOST_NOTICES = 5
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

_DONE = {
    OperationKind.RESTORE: "The workspace was restored to an earlier state",
    OperationKind.RESET: "The work was reset to the last approved state",
    OperationKind.UNDO: "A restore was undone: the work is as it was before it",
    OperationKind.REDO: "An undone restore was done again",
}

_FATES = (
    (ChangeType.MODIFIED, "went back to earlier content", "went back to earlier content"),
    (ChangeType.REMOVED, "was removed", "were removed"),
    (ChangeType.ADDED, "came back", "came back"),
)


def take_notices(vault: Vault, session_id: SessionId) -> list[str]:
    """Everything the session has not been told yet, oldest first; empty when there is nothing."""
    while True:
        told = vault.story.fact(session_id, TOLD)
        done = vault.catalog.operations(
            session_id, kinds=RESTORING_KINDS, after=int(told) if told is not None else 0
        )
        if not done:
            return []
        notices = _notices(vault, session_id, done)
        newest = str(done[-1].sequence)
        if vault.story.set_fact(session_id, TOLD, newest, expected=told):
            return notices


@dataclass(frozen=True, slots=True)
class Claim:
    """Notices that somebody is about to tell; `newest` is the last restore they are about."""

    session_id: SessionId
    texts: tuple[str, ...]
    newest: int
    mark: str


def claim_notices(vault: Vault, session_id: SessionId) -> Claim | None:
    """What the session has not been told yet, unless somebody is just telling it."""
    while True:
        told = vault.story.fact(session_id, TOLD)
        done = vault.catalog.operations(
            session_id, kinds=RESTORING_KINDS, after=int(told) if told is not None else 0
        )
        if not done:
            return None
        newest, now_ns = done[-1].sequence, vault.clock.now_ns()
        held = vault.story.fact(session_id, TELLING)
        if _is_being_told(held, newest, now_ns):
            return None
        texts = tuple(_notices(vault, session_id, done))
        mark = f"{newest} {now_ns} {own_identity()}"
        if vault.story.set_fact(session_id, TELLING, mark, expected=held):
            return Claim(session_id, texts, newest, mark)


def _is_being_told(held: str | None, newest: int, now_ns: int) -> bool:
    sequence, _, rest = (held or "").partition(" ")
    at_ns, _, identity = rest.partition(" ")
    if not (sequence.isdecimal() and at_ns.isdecimal()) or int(sequence) < newest:
        return False
    return abs(now_ns - int(at_ns)) < _CLAIM_NS and is_alive(identity)


def settle_claim(vault: Vault, claim: Claim, *, told: bool) -> None:
    """It was told; or it was not, and somebody else is to tell it."""
    if not told:
        vault.story.set_fact(claim.session_id, TELLING, "", expected=claim.mark)
        return
    while True:
        noted = vault.story.fact(claim.session_id, TOLD)
        if noted is not None and int(noted) >= claim.newest:
            return
        if vault.story.set_fact(claim.session_id, TOLD, str(claim.newest), expected=noted):
            return


def _notices(vault: Vault, session_id: SessionId, done: Sequence[Operation]) -> list[str]:
    follow(vault, session_id)
    history = vault.story.rollbacks(session_id)
    marks = history[-1].after if history else ()
    notices = [_notice(vault, operation, marks) for operation in done[-_MOST_NOTICES:]]
    earlier = len(done) - len(notices)
    if earlier:
        notices.insert(0, f"{earlier} more restores came before: see holdfast log --records.")
    return notices


def _notice(vault: Vault, operation: Operation, marks: Marks) -> str:
    record = _checkpoint(vault, operation, operation.checkpoint)
    safety = _checkpoint(vault, operation, operation.safety)
    target = None
    if record is not None:
        target = _checkpoint(vault, operation, record.restores_from)
    parts = [_DONE[operation.kind] + _to(target or record) + "."]
    if operation.note:
        parts.append(f"Why: {operation.note}.")
    parts.append(_files(vault, safety, record))
    parts.append(_messages(vault, operation, marks))
    parts += [OUTSIDE, _named_outside(vault, operation, target), BEFORE_EDITING]
    if operation.kind is not OperationKind.UNDO:
        parts.append("To take this back: holdfast undo.")
    said_so = " ".join(part for part in parts if part)
    # Names of files can be any bytes; agents take nothing but text.
    return said_so.encode("utf-8", "backslashreplace").decode()


def _to(target: Checkpoint | None) -> str:
    if target is None:
        return ""
    name = f" {target.name!r}" if target.name else ""
    why = " ".join(target.intent.reasoning.split())
    why = why if len(why) <= _PREVIEW else why[: _PREVIEW - 1] + "…"
    return f", checkpoint {short(target.id)}{name} ({why})"


def _files(vault: Vault, before: Checkpoint | None, after: Checkpoint | None) -> str:
    """What the restore changed on disk: from the state that was saved first to the one it made."""
    if before is None or after is None:
        return "Which files changed is not known any more."
    if restored_in_part(after):
        # Between the two trees lies also what was not saved yet and has not been touched.
        return "Only selected paths went back; every other file is as it was."
    try:
        changes = list(
            islice(
                visible_changes(tree_changes(vault.load_tree, before.tree, after.tree)),
                _MOST_CHANGES,
            )
        )
    except StoreDamaged:
        return "Which files changed cannot be read."
    if not changes:
        return "No file differs from what you saw last."
    counted = []
    for kind, one, many in _FATES:
        found = [change for change in changes if change.type is kind]
        if found:
            count = f"1 file {one}" if len(found) == 1 else f"{len(found)} files {many}"
            counted.append(f"{count}: {_names(found)}")
    return "; ".join(counted) + "."


def _names(changes: list[Change]) -> str:
    shown = ", ".join(to_text(change.path) for change in changes[:_NAMED_FILES])
    more = len(changes) - _NAMED_FILES
    return f"{shown} and {more} more" if more > 0 else shown


def _messages(vault: Vault, operation: Operation, marks: Marks) -> str:
    gone = [stretch for stretch in marks if stretch.operation == operation.sequence]
    if not gone:
        return ""
    first, last = gone[0].first, gone[-1].last
    found = vault.story.messages(operation.session_id, first=first, limit=1)
    preview = " ".join(found[0].content.split())[:_PREVIEW] if found else ""
    where = f"message {first}" if first == last else f"messages {first} to {last}"
    about = f" (from {preview!r} on)" if preview else ""
    return (
        f"In the conversation, {where}{about} no longer hold: what was done in them is undone, "
        "and has to be done again if it is still wanted."
    )


def _named_outside(vault: Vault, operation: Operation, target: Checkpoint | None) -> str:
    """Paths outside the workspace that tools named since the state that was restored."""
    if target is None:
        return ""
    named: dict[str, None] = {}
    for made in vault.catalog.history(operation.session_id, limit=_LOOKED_BACK):
        if made.sequence < target.sequence:
            break
        for call in made.intent.tool_calls:
            outside = call.get("outside", ()) if isinstance(call, Mapping) else ()
            named |= dict.fromkeys(str(path) for path in outside)
    if not named:
        return ""
    shown = ", ".join(list(named)[:_NAMED_FILES]) + (" …" if len(named) > _NAMED_FILES else "")
    return (
        f"Outside the workspace your tools named {shown}: that is as it is now, unless the restore "
        "was made with --external."
    )


def _checkpoint(
    vault: Vault, operation: Operation, checkpoint_id: CheckpointId | None
) -> Checkpoint | None:
    if checkpoint_id is None:
        return None
    return vault.catalog.checkpoint(operation.session_id, checkpoint_id)

"""Saving unsaved changes before a command that deletes saved states.

    scan → the log's newest state has this tree: nothing to do → else a safety checkpoint

Such a command does not touch the workspace, so a failed save is reported but does not stop it; the
command may be needed to free space. A purge does not save first, because unsaved changes may
contain the purged content.
"""

from __future__ import annotations

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.outcomes import SavedFirst
from holdfast.domain.sessions import Session
from holdfast.engine.components.component_snapshot import capture_components
from holdfast.engine.history.history import MOVING_KINDS, head_checkpoint
from holdfast.engine.restore.records import add_safety
from holdfast.engine.save.save import add_session
from holdfast.engine.save.workspace_tree import save_tree
from holdfast.engine.scan.scanner import Scanner
from holdfast.engine.vault import Vault


def save_unsaved_work(
    vault: Vault,
    scanner: Scanner,
    what: str,
    *,
    outside: SessionId | None = None,
) -> SavedFirst:
    """Called with the lock held. `what` names the command. The checkpoint goes to another session
    than `outside`, which is about to be deleted."""
    try:
        return SavedFirst(_save(vault, scanner, what, outside))
    except (HoldfastError, OSError) as error:
        reason = error.message if isinstance(error, HoldfastError) else str(error)
        return SavedFirst(None, (f"unsaved changes could not be saved first: {reason}",))


def _save(
    vault: Vault,
    scanner: Scanner,
    what: str,
    outside: SessionId | None,
) -> CheckpointId | None:
    saved = save_tree(vault, scanner)
    if saved.scan.tree == _newest_state(vault):
        scanner.remember(saved.scan)
        return None
    session = _session(vault, outside)
    head = vault.catalog.checkpoint(session.id, session.head)
    identifier = CheckpointId(vault.ids.new_id())
    components = capture_components(vault, identifier, head, scan=saved.scan)
    safety = add_safety(vault, saved, session.id, what, head, identifier, components)
    scanner.remember(saved.scan)
    return safety.id


def _newest_state(vault: Vault) -> Digest | None:
    """The tree that was last saved or restored; None if that checkpoint was deleted."""
    newest = vault.catalog.operations_before(None, 1, kinds=MOVING_KINDS)
    identifier = newest[0].checkpoint if newest else None
    made = vault.catalog.checkpoint(None, identifier)
    return made.tree if made is not None else None


def _session(vault: Vault, outside: SessionId | None) -> Session:
    """The workspace's session, else any other, else a new one."""
    head: Checkpoint | None = head_checkpoint(vault, None)
    at = vault.catalog.session(head.session_id) if head is not None else None
    for one in (at, *reversed(vault.catalog.sessions())):
        if one is not None and one.id != outside:
            return one
    made = SessionId(vault.ids.new_id())
    with vault.catalog.transaction() as transaction:
        add_session(vault, transaction, made)
        transaction.set_current_session(made)
    return Session(made, vault.clock.now_ns())

"""Names and tags that an existing checkpoint gets, or loses. Its state and its place stay."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import InvalidIntent, NotFound
from holdfast.domain.intent import make_intent
from holdfast.engine.search.catching_up import take_in_again
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace


def name_checkpoint(
    vault: Vault,
    checkpoint: Checkpoint,
    *,
    name: str | None = None,
    unname: bool = False,
    tags: Sequence[str] = (),
    untags: Sequence[str] = (),
) -> Checkpoint:
    """The checkpoint as it is called now. The caller holds the lock."""
    known = vault.catalog.checkpoint(checkpoint.session_id, checkpoint.id)
    if known is None:
        raise NotFound(f"checkpoint {checkpoint.id} is gone", hint="see: holdfast log")
    intent = known.intent
    kept = None if unname else intent.checkpoint_name
    checked = make_intent(
        intent.reasoning,
        name=kept if name is None else name,
        tags=[*(tag for tag in intent.tags if tag not in untags), *tags],
    )
    called = checked.checkpoint_name
    other = vault.catalog.checkpoint_named(known.session_id, called) if called else None
    if other is not None and other.id != known.id:
        raise InvalidIntent(
            f"the session already has a checkpoint named {called!r}", hint="choose another name"
        )
    changed = replace(known, intent=replace(intent, checkpoint_name=called, tags=checked.tags))
    if changed != known:
        with vault.catalog.transaction() as transaction:
            transaction.replace_checkpoint(changed)
        take_in_again(vault, changed)
    return changed

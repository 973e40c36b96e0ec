"""Additions to an existing checkpoint: annotations, its name and its tags.

Nothing waits for a save, and the saved state does not change.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import InvalidIntent, NotFound, UsageError
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent, storable
from holdfast.domain.story import MOST_ANNOTATION_BYTES, Annotation
from holdfast.engine.conversation.conversation import require_room
from holdfast.engine.history.references import resolve
from holdfast.engine.search.index_update import reindex
from holdfast.engine.sessions.lifecycle import require_label
from holdfast.engine.vault import Vault
from holdfast.values.classes import replace

_LARGEST_NUMBER = 1_000_000_000


def annotate(
    vault: Vault,
    session_id: SessionId,
    reference: str,
    text: str,
    *,
    author: str | None = None,
    number: int | None = None,
) -> Annotation:
    """A new annotation, or a new revision of annotation `number`; durable on return."""
    text, author = _text(text), require_label("author", author)
    _require_number(number)
    checkpoint = resolve(vault, session_id, reference)
    require_room(vault)
    return vault.story.annotate(
        checkpoint.session_id,
        checkpoint.id,
        text,
        author=author,
        at_ns=vault.clock.now_ns(),
        number=number,
    )


def annotations_of(
    vault: Vault, session_id: SessionId, reference: str | None = None, *, revisions: bool = False
) -> Sequence[Annotation]:
    """For one checkpoint or the whole session; the newest revisions, or all of them."""
    checkpoint = None if reference is None else resolve(vault, session_id, reference)
    if not vault.has_story():
        return ()
    if checkpoint is None:
        return vault.story.annotations(session_id, None, revisions=revisions)
    return vault.story.annotations(checkpoint.session_id, checkpoint.id, revisions=revisions)


def _text(text: str) -> str:
    if not isinstance(text, str):
        raise UsageError(f"the annotation is {text!r:.40}, not a string", hint="use a string")
    if not text.strip():
        raise UsageError("the annotation is empty", hint="write a note about the checkpoint")
    text = storable(text)
    if len(text.encode()) > MOST_ANNOTATION_BYTES:
        raise UsageError(
            f"the annotation has {len(text.encode())} bytes; the limit is {MOST_ANNOTATION_BYTES}",
            hint="shorten it, or put long text in a file of the workspace",
        )
    return text


def _require_number(number: int | None) -> None:
    is_number = isinstance(number, int) and not isinstance(number, bool)
    if number is not None and not (is_number and 0 < number <= _LARGEST_NUMBER):
        raise UsageError(
            f"the annotation number {number!r:.40} must be 1 or more",
            hint="list the notes of a checkpoint: holdfast show REF",
        )


def name_checkpoint(
    vault: Vault,
    checkpoint: Checkpoint,
    *,
    name: str | None = None,
    unname: bool = False,
    tags: Sequence[str] = (),
    untags: Sequence[str] = (),
) -> Checkpoint:
    """The checkpoint with its new name and tags. The caller holds the lock."""
    known = vault.catalog.checkpoint(checkpoint.session_id, checkpoint.id)
    if known is None:
        raise NotFound(f"checkpoint {checkpoint.id} no longer exists", hint="see: holdfast log")
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
        reindex(vault, changed)
    return changed

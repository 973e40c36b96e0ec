"""Removing content permanently.

    lock → finish an interrupted purge → plan → take samples → make new trees durable → write a note
    → one transaction: change or delete rows → rewrite packs → rebuild databases, empty logs, remove
    caches and leftovers → remove the note → search every file of the store

Guarantees: at every instant the store is sound, and each remaining checkpoint is whole. Before the
transaction, nothing has changed. After it, the next purge finishes the removal, however often it is
interrupted. A token in both says whether the transaction of a note was committed. The outcome lists
what was searched for, where, and what was found.

Not guaranteed: anything outside the store's files. See docs/guides/removing-secrets.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.domain.errors import NotFound, StoreDamaged, UsageError
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.domain.operations import OperationKind
from holdfast.domain.paths import from_text, is_within, to_text
from holdfast.domain.purges import PurgeOutcome, TextReplacement, Trace
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.components.manifests import release_components
from holdfast.engine.purge.contents import file_components, is_absolute
from holdfast.engine.purge.plan import (
    PurgePlan,
    PurgeRequest,
    TextPurgePlan,
    plan_purge,
    with_holders,
)
from holdfast.engine.purge.proof import Sample, is_in_file_names, paths_holding, samples_for, search
from holdfast.engine.purge.story_texts import count_in_story, replace_in_story
from holdfast.engine.retention.cleanup import reachable
from holdfast.engine.stored_objects import store_chained
from holdfast.engine.vault import Vault
from holdfast.ports.catalog import NewOperation, all_checkpoints

if TYPE_CHECKING:
    from holdfast.engine.engine import Engine

_VERSION = 1


def purge(engine: Engine, request: PurgeRequest) -> PurgeOutcome:
    """Remove paths or checkpoints for good, then search the store for remains."""
    with engine.recovered(required=True):
        outcome = _purge(engine.vault, request)
    return engine.with_mirror_warnings(outcome, "afresh")


def _purge(vault: Vault, request: PurgeRequest) -> PurgeOutcome:
    finished = _finish_purge(vault)
    _require_sound_packs(vault)
    try:
        plan = plan_purge(vault, request)
    except (NotFound, UsageError):
        if finished is None:
            raise
        # The same request again: the interrupted purge was this one.
        still = still_in_workspace(vault, request.paths)
        return replace(finished, paths=request.paths, still_in_workspace=still)
    plan.require_allowed()
    samples = samples_for(vault, plan.gone_contents, plan.removed)
    _store(vault, plan)
    token = vault.ids.new_id()
    vault.parts.purge_note.write(_encode_note(plan.gone, plan.paths, token))
    _record(vault, plan, token)
    release_components(vault)
    freed_bytes = _erase(vault, plan.paths)
    return PurgeOutcome(
        removed=tuple(c.id for c in plan.removed),
        changed=plan.changed,
        paths=plan.paths,
        objects=len(plan.gone),
        freed_bytes=freed_bytes,
        proof=search(vault, samples, plan.gone),
        still_in_workspace=still_in_workspace(vault, plan.paths),
        holders=with_holders(vault, plan).holders,
    )


def plan_text_purge(engine: Engine, text: str) -> TextPurgePlan:
    """The places where `purge_text` would replace a text. Changes nothing."""
    replacement = TextReplacement(text)
    with engine.recovered(read_only=True):
        paths, components = paths_holding(engine.vault, set(replacement.needles))
        return TextPurgePlan(count_in_story(engine.vault, replacement), paths, components)


def purge_text(engine: Engine, text: str) -> PurgeOutcome:
    """Replace a text in all recorded messages, then search the store for remains. Files in
    checkpoints that contain it are kept, and listed. The note does not contain the text, so an
    interrupted purge must be requested again."""
    with engine.recovered(required=True):
        outcome = _purge_text(engine.vault, TextReplacement(text))
    return engine.with_mirror_warnings(outcome, "afresh")


def _purge_text(vault: Vault, replacement: TextReplacement) -> PurgeOutcome:
    _finish_purge(vault)
    _require_sound_packs(vault)
    vault.parts.purge_note.write(_encode_note(()))
    said = replace_in_story(vault, replacement)
    freed_bytes = _erase(vault, ())
    samples = [Sample(needle, "the text") for needle in replacement.needles]
    proof = search(vault, samples, frozenset())
    paths, components = paths_holding(vault, set(replacement.needles))
    named = is_in_file_names(vault, replacement.needles)
    traces = (*proof.traces, *([_IN_FILE_NAMES] if named else ()))
    proof = replace(proof, elsewhere=paths, components=components, traces=traces)
    return PurgeOutcome((), (), (), 0, freed_bytes, proof, said=said)


_IN_FILE_NAMES = Trace(
    "objects", "a file name; to remove it, purge the checkpoints that have it: holdfast purge REF"
)


def _require_sound_packs(vault: Vault) -> None:
    """Packs will be rewritten, so find damage before the first row changes."""
    if damaged := vault.open_packs().damaged_packs():
        number, problem = next(iter(damaged.items()))
        raise StoreDamaged(
            f"nothing was purged: pack {number} of the store is damaged: {problem}",
            hint="repair it first: holdfast repair",
        )


def finish_purge(engine: Engine) -> PurgeOutcome | None:
    """Finish an interrupted purge; None if there is none, or if it had not begun."""
    with engine.recovered(required=True):
        outcome = _finish_purge(engine.vault)
    return outcome and engine.with_mirror_warnings(outcome, "afresh")


def _finish_purge(vault: Vault) -> PurgeOutcome | None:
    note = vault.parts.purge_note.read()
    if note is None:
        return None
    noted, paths, token = _decode_note(note)
    if token is None or vault.catalog.operation_with_token(token) is None:
        noted, paths = set(), []  # the rows were never changed
    gone = noted - reachable(vault)
    freed_bytes = _erase(vault, paths)
    if not gone:
        return None
    proof = search(vault, (), gone)
    return PurgeOutcome((), (), (), len(gone), freed_bytes, proof, resumed=True)


def still_in_workspace(vault: Vault, paths: Iterable[bytes]) -> tuple[bytes, ...]:
    """The paths that still exist, so that a later checkpoint would save them again."""
    root = os.fsencode(vault.workspace)
    following = file_components(vault).values()
    return tuple(
        path
        for path in paths
        if os.path.lexists(os.path.join(root, path))
        and (not is_absolute(path) or any(c.follows(path) for c in following))
    )


def _store(vault: Vault, plan: PurgePlan) -> None:
    similar = plan.similar
    items = ((digest, data, similar.get(digest)) for digest, data in plan.new_objects.items())
    store_chained(vault.objects, items)


def _record(vault: Vault, plan: PurgePlan, token: str) -> None:
    now_ns = vault.clock.now_ns()
    heads = {s.id: s.head for s in vault.catalog.sessions()}
    removed = {c.id: c for c in plan.removed}
    touched = {c.session_id for c in (*plan.removed, *plan.replaced)}
    with vault.catalog.transaction() as transaction:
        for row in plan.replaced:
            transaction.replace_checkpoint(row)
        for number, session_id in enumerate(sorted(touched)):
            head = heads[session_id]
            while head is not None and head in removed:
                head = removed[head].parent
            if head != heads[session_id]:
                transaction.set_head(session_id, head)
            transaction.add_operation(
                NewOperation(
                    OperationKind.PURGE,
                    session_id,
                    now_ns,
                    head_before=heads[session_id],
                    token=token if number == 0 else None,
                )
            )
        for checkpoint in plan.removed:
            transaction.remove_checkpoint(checkpoint.id)
            gone = NewOperation(
                OperationKind.PURGE, checkpoint.session_id, now_ns, checkpoint=checkpoint.id
            )
            transaction.add_operation(gone)


def _erase(vault: Vault, paths: Sequence[bytes]) -> int:
    """Erase objects that no row needs, and edits of these paths, from the store's files."""
    if vault.has_story():
        gone = vault.story.named_checkpoints() - {c.id for c in all_checkpoints(vault.catalog)}
        vault.story.forget_checkpoints(sorted(gone))
        vault.story.forget_paths(paths)
        vault.story.erase_traces()
    outside = [path for path in paths if is_absolute(path)]
    for component in file_components(vault).values() if outside else ():
        component.forget(outside)
    named = vault.parts.named_paths.load()
    left = [name for name in named if not any(is_within(name, path) for path in paths)]
    if len(left) < len(named):
        vault.parts.named_paths.replace(left)
    freed_bytes = vault.open_packs().erase_all_but(reachable(vault))
    vault.catalog.erase_traces()
    vault.stat_cache.erase()
    vault.search.erase()
    vault.journal.remove_report()
    vault.files.erase_leftovers()
    vault.parts.purge_note.remove()
    return freed_bytes


def _encode_note(
    gone: Iterable[Digest], paths: Iterable[bytes] = (), token: str | None = None
) -> bytes:
    fields = {
        "version": _VERSION,
        "gone": sorted(d.hex() for d in gone),
        "paths": [to_text(path) for path in paths],
        "token": token,
    }
    body = json.dumps(fields).encode()
    return digest_of(body).hex().encode() + b"\n" + body


def _decode_note(data: bytes) -> tuple[set[Digest], list[bytes], str | None]:
    checksum, _, body = data.partition(b"\n")
    try:
        if checksum != digest_of(body).hex().encode():
            raise ValueError("its checksum does not match")
        fields = json.loads(body)
        if fields["version"] != _VERSION:
            raise ValueError("a later version of Holdfast wrote it")
        gone = {Digest(bytes.fromhex(text)) for text in fields["gone"]}
        if any(len(digest) != DIGEST_BYTES for digest in gone):
            raise ValueError("it has no digest")
        paths = [from_text(text) for text in fields["paths"]]
        token = None if fields["token"] is None else str(fields["token"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreDamaged(
            f"the record of an unfinished purge is unusable: {error}",
            hint="run: holdfast check",
        ) from None
    return gone, paths, token

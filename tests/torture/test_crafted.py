"""Part 6: stores and journals that name other places than the workspace.

Crafted trees, packs and journals are whole and have right checksums: only what they say is wrong.
Each is refused as damage, and nothing outside the workspace, or in it, changes.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from holdfast.adapters.local.objects.packs import PackAppender
from holdfast.domain.checkpoints import Checkpoint, Kind, NewCheckpoint
from holdfast.domain.errors import StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest
from holdfast.domain.intent import make_intent
from holdfast.domain.object_records import Record, encode_record
from holdfast.domain.paths import to_text
from holdfast.domain.trees.entries import DirectoryEntry, SymlinkEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import Tree, encode_tree
from holdfast.engine.retention.deletion import delete
from holdfast.values.compression import Codec
from tests.support.composition import SESSION, Composed
from tests.support.tree_hash import describe, differences
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.swapped import RENEWED_AFTER, Place, SwappedWorkspace

pytestmark = pytest.mark.requirement("RL-7")

_ELSEWHERE = (
    b"..", b".", b"", b"/", b"../outside/victim", b"../../escaped", b"/escaped",
    b"sub/../../escaped", b".git", b".git/hooks/post-checkout", b".git/config", b"sub/.git/hooks/x",
    b"./x", b"x/", b"a//b", b"a\0b", b"\0", b"../outside\0x", b"sub/..", b"../project.aside/x",
)  # fmt: skip


def _elsewhere(rng: random.Random, outside: Path) -> bytes:
    """A name that no tree and no journal may hold."""
    known = rng.choice((*_ELSEWHERE, os.fsencode(outside / "0")))
    return rng.choice(
        (known, known, b"sub/" + known, known + b"/x", b"../" * rng.randint(1, 9) + known)
    )


def _hostile_trees(
    rng: random.Random, name: bytes, honest: Tree, store: Callable[[bytes], Digest]
) -> Digest:
    """A tree that says `name` in one of the ways that there are."""
    file = honest.files[0]
    below = store(encode_tree(Tree(files=(replace(file, name=b"victim"),))))
    directory = DirectoryEntry(name, 0o777, below, 1, file.size)
    tree = rng.choice(
        (
            Tree(files=(replace(file, name=name),)),
            Tree(files=(replace(file, name=b"other", link=name),)),
            Tree(directories=(directory,)),
            Tree(symlinks=(SymlinkEntry(name, b"target", 0),)),
        )
    )
    digest = store(encode_tree(tree))
    for above in (b"deep", b"sub")[: rng.randint(0, 2)]:
        row = DirectoryEntry(above, 0o755, digest, 1, file.size)
        digest = store(encode_tree(Tree(directories=(row,))))
    return digest


def _into_the_store(opened: Composed, encoded: bytes) -> Digest:
    vault, digest = opened.engine.vault, digest_of(encoded)
    with vault.lock.hold():
        writer = vault.objects.writer()
        writer.add(digest, encoded)
        writer.commit()
    return digest


def _into_a_pack(opened: Composed, encoded: bytes) -> Digest:
    """As somebody would who writes packs by hand: the index learns of it when it is opened."""
    objects, digest = opened.local_store.objects, digest_of(encoded)
    number = max(objects.packs.numbers()) + 1
    appender = PackAppender(objects.fs, objects.packs, number, create=True)
    appender.append(encode_record(Record(digest, Codec.RAW, 0, len(encoded), None, encoded)))
    appender.sync()
    appender.close()
    with opened.engine.vault.lock.hold():
        objects.catch_up()
    return digest


def _checkpoint_of(opened: Composed, like: Checkpoint, tree: Digest, name: str) -> str:
    new = NewCheckpoint(
        id=CheckpointId(opened.engine.vault.ids.new_id()),
        session_id=SESSION,
        parent=None,
        kind=Kind.MANUAL,
        created_at_ns=like.created_at_ns,
        tree=tree,
        intent=make_intent("crafted", name=name),
        files=like.files,
        size_bytes=like.size_bytes,
        changed=like.changed,
        report=like.report,
    )
    vault = opened.engine.vault
    with vault.lock.hold(), vault.catalog.transaction() as transaction:
        transaction.add_checkpoint(new)
    return new.id


def _hostile_journal(rng: random.Random, checkpoint: Checkpoint, name: bytes) -> bytes:
    path = to_text(name)
    fields: dict[str, object] = {
        "version": 1,
        "token": "f" * 20,
        "kind": "restore",
        "session_id": SESSION,
        "target": checkpoint.id,
        "safety": checkpoint.id,
        "head_before": checkpoint.id,
        "reverses": None,
        "paths": [],
        "best_effort": rng.random() < 0.5,
        "staging": [],
        "slots": {},
        "modes": {},
        "backwards": rng.random() < 0.5,
    }
    fields |= rng.choice(
        (
            {"staging": [path]},
            {"staging": [path + "/.holdfast-staging-x"]},
            {"slots": {"0": path}},
            {"paths": [path]},
            {"modes": {path + "/x": 0o777}},
        )
    )
    body = json.dumps(fields).encode()
    return digest_of(body).hex().encode() + b"\n" + body


def test_stores_and_journals_that_name_other_places(
    campaign: Campaign, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(quick_disk / "place", monkeypatch)
    current: list[SwappedWorkspace] = []

    def case(case: Case) -> None:
        if case.number % RENEWED_AFTER == 0 or not current:
            for held in current:
                held.close()
            current[:] = [SwappedWorkspace(place)]
        held, rng = current[0], case.rng()
        opened = held.opened
        before = describe(place.project)
        good = opened.engine.resolve(SESSION, held.good)
        name = _elsewhere(rng, place.outside)
        if rng.random() < 0.4:
            opened.store.journal.write(_hostile_journal(rng, good, name))
            with pytest.raises(StoreDamaged):
                opened.engine.recover()
            opened.store.journal.remove()
        else:
            into = rng.choice((_into_the_store, _into_a_pack))
            honest = opened.engine.vault.load_tree(good.tree)
            tree = _hostile_trees(rng, name, honest, partial(into, opened))
            crafted = _checkpoint_of(opened, good, tree, f"crafted {case.number}")
            act = rng.choice((opened.engine.restore, opened.engine.plan))
            request = opened.engine.restore_request(SESSION, crafted, best_effort=True)
            with pytest.raises(StoreDamaged):
                act(request)
            delete(opened.engine, opened.engine.resolve(SESSION, crafted))
        wrong = held.wrong() + differences(describe(place.project), before)
        assert not wrong, "\n".join(wrong)

    title = "forged trees, packs and journals with `../`, `/`, NUL or `.git/hooks`"
    try:
        campaign.run(Scenario(6, "crafted", title), case, slice_cases=60)
    finally:
        for held in current:
            held.close()

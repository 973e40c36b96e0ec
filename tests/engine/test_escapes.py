"""No restore writes outside its workspace: not through a link, a race, a store or a journal."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import Checkpoint
from holdfast.domain.errors import HoldfastError
from holdfast.domain.ids import Digest
from holdfast.domain.trees.entries import FileEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import Tree, encode_tree
from holdfast.engine.restore.records import RestoreRequest
from tests.support.composition import SESSION, Composed, composed
from tests.support.hostile_trees import fill
from tests.support.session_states import get_snapshot
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("RL-7")

RACES = 60


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    fill(outside / "victim", b"precious")
    fill(outside / "deep/victim", b"precious")
    return outside


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return workspace


def test_a_directory_replaced_by_a_link_is_restored_without_following_it(
    workspace: Path, outside: Path
) -> None:
    fill(workspace / "sub/victim", b"mine")
    fill(workspace / "sub/deep/victim", b"mine")
    before, mine = describe(outside, mtimes=True), describe(workspace)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
        shutil.rmtree(workspace / "sub")
        (workspace / "sub").symlink_to(outside)
        session.restore(first)
        assert describe(workspace) == mine
        session.undo()
    assert os.readlink(workspace / "sub") == str(outside)
    assert describe(outside, mtimes=True) == before


def test_a_target_behind_a_link_is_not_captured(workspace: Path, outside: Path) -> None:
    (workspace / "link").symlink_to(outside)
    with SessionCheckpointer(workspace, "s") as session:
        assert get_snapshot(session, session.checkpoint("why")).artifacts == ()


class _Swapper:
    """Another process that keeps turning a directory into a link to the outside and back."""

    def __init__(self, directory: Path, outside: Path) -> None:
        self._directory = directory
        self._aside = directory.with_name(directory.name + ".aside")
        self._link = directory.with_name(directory.name + ".link")
        self._link.symlink_to(outside)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            for source, target in (
                (self._directory, self._aside),
                (self._link, self._directory),
                (self._directory, self._link),
                (self._aside, self._directory),
            ):
                try:
                    source.rename(target)
                except OSError:
                    break

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for left in (self._aside, self._link):
            if left.is_symlink():
                left.unlink()
            else:
                shutil.rmtree(left, ignore_errors=True)


def test_links_swapped_in_during_restores_lead_nowhere(workspace: Path, outside: Path) -> None:
    for number in range(8):
        fill(workspace / f"sub/deep/{number}", b"mine")
        fill(workspace / f"sub/{number}", b"mine")
    before = describe(outside, mtimes=True)
    with SessionCheckpointer(workspace, "s") as session:
        good = session.checkpoint("before")
        for number in range(8):
            fill(workspace / f"sub/deep/{number}", b"changed")
            (workspace / f"sub/{number}").unlink()
        bad = session.checkpoint("after")
        with _Swapper(workspace / "sub", outside):
            for number in range(RACES):
                try:
                    session.restore_checkpoint((good, bad)[number % 2], best_effort=number % 3 == 0)
                except HoldfastError:
                    continue
        assert describe(outside, mtimes=True) == before
        shutil.rmtree(workspace / "sub", ignore_errors=True)
        (workspace / "sub").unlink(missing_ok=True)
        session.restore(good)
    assert (workspace / "sub/deep/1").read_bytes() == b"mine"
    assert describe(outside, mtimes=True) == before


def _store_tree(opened: Composed, encoded: bytes) -> Digest:
    vault = opened.engine.vault
    digest = digest_of(encoded)
    with vault.lock.hold():
        writer = vault.objects.writer()
        writer.add(digest, encoded)
        writer.commit()
    return digest


def _crafted(opened: Composed, name: bytes, good: Checkpoint) -> Checkpoint:
    """The store's checkpoint `good`, now with a tree that holds one file under a hostile name."""
    content = next(iter(opened.engine.vault.load_tree(good.tree).files))
    honest = encode_tree(Tree(files=(replace(content, name=b"N" * len(name)),)))
    return _with_tree(opened, good, honest.replace(b"N" * len(name), name))


def _with_tree(opened: Composed, good: Checkpoint, encoded: bytes) -> Checkpoint:
    crafted = replace(good, tree=_store_tree(opened, encoded))
    vault = opened.engine.vault
    with vault.lock.hold(), vault.catalog.transaction() as transaction:
        transaction.replace_checkpoint(crafted)
    return crafted


@pytest.mark.parametrize(
    "name",
    [b"../escaped", b"..", b".", b"/tmp/escaped", b".git", b".git/hooks/x", b"a/b", b"a\0b"],
)
def test_a_store_that_names_a_path_outside_is_refused(
    workspace: Path, tmp_path: Path, name: bytes
) -> None:
    fill(workspace / "file", b"mine")
    with composed(workspace) as opened:
        good = opened.save()
        request = RestoreRequest(SESSION, _crafted(opened, name, good))
        before = describe(tmp_path)
        with pytest.raises(HoldfastError):
            opened.engine.restore(request)
    assert describe(tmp_path / "project") == {
        path.removeprefix(b"project/"): node
        for path, node in before.items()
        if path.startswith(b"project/") and not path.startswith(b"project/.holdfast")
    }
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("link", [b"../outside/victim", b"/etc/passwd", b".git/config"])
def test_a_store_that_names_a_hardlink_outside_is_refused(
    workspace: Path, outside: Path, link: bytes
) -> None:
    fill(workspace / "file", b"mine")
    with composed(workspace) as opened:
        good = opened.save()
        entry = next(iter(opened.engine.vault.load_tree(good.tree).files))
        tree = Tree(files=(replace(entry, name=b"other", link=link),))
        crafted = _with_tree(opened, good, encode_tree(tree))
        with pytest.raises(HoldfastError):
            opened.engine.restore(RestoreRequest(SESSION, crafted))
    assert (outside / "victim").stat().st_nlink == 1
    assert (workspace / "file").read_bytes() == b"mine"


def _journal(opened: Composed, checkpoint: Checkpoint, **changes: object) -> bytes:
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
        "best_effort": False,
        "staging": [],
        "slots": {},
        "backwards": False,
    }
    body = json.dumps(fields | changes).encode()
    return digest_of(body).hex().encode() + b"\n" + body


HOSTILE_JOURNALS: dict[str, Callable[[], dict[str, object]]] = {
    "staging beside the workspace": lambda: {"staging": ["../outside"]},
    "staging at an absolute path": lambda: {"staging": ["/outside"]},
    "staging that is the user's": lambda: {"staging": ["keep"]},
    "a slot outside": lambda: {"slots": {"0": "../outside/victim"}},
    "a selected path outside": lambda: {"paths": ["../outside"]},
    "no fields": lambda: {"staging": None, "slots": None, "paths": None},
}


@pytest.mark.parametrize("case", HOSTILE_JOURNALS)
def test_a_journal_that_names_a_path_outside_touches_nothing(
    workspace: Path, outside: Path, case: str
) -> None:
    fill(workspace / "file", b"mine")
    fill(workspace / "keep/file", b"mine")
    before, mine = describe(outside, mtimes=True), describe(workspace)
    with composed(workspace) as opened:
        good = opened.save()
        opened.store.journal.write(_journal(opened, good, **HOSTILE_JOURNALS[case]()))
    with composed(workspace) as opened, contextlib.suppress(HoldfastError):
        opened.engine.recover()
    assert describe(outside, mtimes=True) == before
    assert describe(workspace) == mine


@pytest.mark.parametrize("moment", ["before the store is made", "before a restore"])
def test_our_own_directory_replaced_by_a_link_is_not_followed(
    workspace: Path, outside: Path, moment: str
) -> None:
    fill(workspace / "file", b"mine")
    before = describe(outside, mtimes=True)
    if moment == "before the store is made":
        (workspace / ".holdfast").symlink_to(outside)
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
    if moment == "before a restore":
        shutil.rmtree(workspace / ".holdfast")
        (workspace / ".holdfast").symlink_to(outside)
    fill(workspace / "file", b"changed")
    with (
        contextlib.suppress(HoldfastError),
        SessionCheckpointer(workspace, "s") as session,
    ):
        session.restore(first)
    assert describe(outside, mtimes=True) == before


def test_our_own_directory_replaced_by_a_file_does_not_stop_a_restore(
    workspace: Path,
) -> None:
    fill(workspace / "file", b"mine")
    with SessionCheckpointer(workspace, "s") as session:
        first = session.checkpoint("before")
    shutil.rmtree(workspace / ".holdfast")
    fill(workspace / ".holdfast", b"in the way")
    fill(workspace / "file", b"changed")
    with SessionCheckpointer(workspace, "s") as session:
        session.restore(first)
        assert (workspace / "file").read_bytes() == b"mine"
        session.undo()
        assert (workspace / "file").read_bytes() == b"changed"
    assert (workspace / ".holdfast").read_bytes() == b"in the way"
    assert {path.name for path in workspace.iterdir()} == {".holdfast", "file"}


def test_a_file_entry_is_what_the_tests_above_craft(workspace: Path) -> None:
    fill(workspace / "file", b"mine")
    with composed(workspace) as opened:
        good = opened.save()
        honest = _crafted(opened, b"honest", good)
        opened.engine.restore(RestoreRequest(SESSION, honest))
        assert isinstance(opened.engine.vault.load_tree(honest.tree).files[0], FileEntry)
    assert (workspace / "honest").read_bytes() == b"mine"

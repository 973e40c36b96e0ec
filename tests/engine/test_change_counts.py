"""How many paths a checkpoint says have changed: from memory, and as the trees show it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.domain.checkpoints import ChangeCounts, Checkpoint
from holdfast.domain.ids import Digest
from holdfast.domain.trees.changes import ChangeType, tree_changes, visible_changes
from tests.support.composition import Composed, composed
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.both_stores

Edit = Callable[[Path, random.Random], None]


def _told_by_trees(opened: Composed, before: Checkpoint, after: Checkpoint) -> ChangeCounts:
    counts = dict.fromkeys(ChangeType, 0)
    load = opened.engine.vault.load_tree
    for change in visible_changes(tree_changes(load, before.tree, after.tree)):
        counts[change.type] += 1
    added, removed = counts[ChangeType.ADDED], counts[ChangeType.REMOVED]
    return ChangeCounts(added, counts[ChangeType.MODIFIED], removed)


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


def _write(path: Path, rng: random.Random) -> None:
    _clear(path)
    fill(path, rng.randbytes(rng.randrange(40)))


def _make_directory(path: Path, rng: random.Random) -> None:
    if not path.is_dir() or path.is_symlink():
        _clear(path)
        path.mkdir(parents=True)


def _point(path: Path, rng: random.Random) -> None:
    _clear(path)
    path.symlink_to(rng.choice("ab"))


def _remove(path: Path, rng: random.Random) -> None:
    _clear(path)


def _change_mode(path: Path, rng: random.Random) -> None:
    if path.exists() and not path.is_symlink():
        path.chmod(rng.choice((0o700, 0o755)))


def _second_name(path: Path, rng: random.Random) -> None:
    other = path.with_name("linked")
    if path.is_file() and not path.is_symlink() and not os.path.lexists(other):
        os.link(path, other)


EDITS: tuple[Edit, ...] = (_write, _make_directory, _point, _remove, _change_mode, _second_name)


def _any_path(root: Path, rng: random.Random) -> Path:
    """Few names, so that one becomes something else often; only what is a directory is entered."""
    path = root / rng.choice("abc")
    while path.is_dir() and not path.is_symlink() and rng.random() < 0.7:
        path /= rng.choice("abc")
    return path


@pytest.mark.requirement("PF-1")
@pytest.mark.parametrize("turn", range(4))
def test_a_checkpoint_counts_what_a_comparison_of_its_tree_counts(
    tmp_path: Path, rng: random.Random, turn: int
) -> None:
    root = tmp_path / "project"
    for directory in ("a/a", "a/b", "b/c"):
        fill(root / directory / "a", b"begin\n")
    with composed(root) as opened:
        before = opened.save()
        for number in range(40):
            for _ in range(rng.randrange(1, 5)):
                rng.choice(EDITS)(_any_path(root, rng), rng)
            after = opened.save()
            told = _told_by_trees(opened, before, after)
            assert after.changed == told, f"turn {turn}, save {number}"
            before = after


@pytest.mark.requirement("PF-1")
def test_no_tree_is_loaded_to_count_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "project"
    for directory in ("one", "two/deep", "three", "going/down"):
        fill(root / directory / "file", directory.encode())
    (root / "one/link").symlink_to("file")
    with composed(root) as opened:
        opened.save()

        def refuse(digest: Digest) -> bytes:
            raise AssertionError(f"{digest.hex()} was read from the store")

        monkeypatch.setattr(opened.engine.vault.objects, "read", refuse)
        monkeypatch.setattr(
            "holdfast.adapters.local.objects.writer.LocalObjectWriter._base", _no_base
        )
        fill(root / "new/deep/file", b"new")
        (root / "empty").mkdir()
        shutil.rmtree(root / "going")
        (root / "one/file").write_bytes(b"edited")
        (root / "one/link").unlink()
        (root / "two").chmod(0o700)
        assert opened.save().changed == ChangeCounts(added=2, modified=2, removed=2)


def _no_base(*_: object) -> None:
    """What a new version is stored against is read, and is none of counting."""

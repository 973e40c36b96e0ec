"""Bundles made to do harm: nothing is written outside, nothing is inflated, nothing is kept."""

from __future__ import annotations

import os
import random
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.domain.bundles.inventory import DEEPEST_TREE, Role
from holdfast.domain.errors import BudgetReached, BundleRefused, HoldfastError
from holdfast.domain.trees.entries import DirectoryEntry, FileEntry
from holdfast.domain.trees.objects import digest_of
from holdfast.domain.trees.tree import Tree, encode_tree
from holdfast.engine.bundles.importer import ImportRequest, import_bundle
from holdfast.engine.bundles.objects import LARGEST_DELTA_BYTES, MOST_TIMES_THE_BUDGET
from holdfast.values.compression import Codec, compress, compress_against
from tests.support.bundle_files import (
    crafted,
    edited,
    put_together,
    record,
    take_apart,
    tree_naming,
)
from tests.support.composition import Composed, composed, configure
from tests.support.hostile_trees import fill
from tests.support.tree_hash import describe

pytestmark = pytest.mark.in_memory

TB = 10**12
SMALL = b"small"
_ROUND = {
    "number": 1,
    "status": "merged",
    "started_at_ns": 1,
    "ended_at_ns": 2,
    "head": None,
    "message": None,
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "around/project"
    fill(workspace / "mine", b"mine")
    fill(workspace / ".git/hooks/pre-commit", b"mine")
    return workspace


@pytest.fixture
def target(workspace: Path) -> Iterator[Composed]:
    with composed(workspace) as opened:
        opened.save("mine")
        yield opened


def _refuse(target: Composed, path: Path) -> HoldfastError:
    with pytest.raises(HoldfastError) as refusal:
        import_bundle(target.engine.vault, ImportRequest(path, foreign=True))
    assert len(target.engine.vault.catalog.sessions()) == 1
    return refusal.value


@pytest.mark.requirement("ST-7")
@pytest.mark.parametrize("content", [b"", bytes(1000), b"HFBUNDLE"])
def test_a_file_that_is_no_bundle_is_refused_by_its_name(
    content: bytes, target: Composed, tmp_path: Path
) -> None:
    path = tmp_path / "no-bundle"
    path.write_bytes(content)
    refusal = _refuse(target, path)
    assert refusal.message.startswith(f"{path}: ")
    assert "again" in (refusal.hint or "")


@pytest.mark.requirement("ST-7", "RL-7")
@pytest.mark.parametrize(
    "name",
    [
        b"..",
        b".",
        b"../escaped",
        b"a/../../escaped",
        b"/etc/cron.d/escaped",
        b"nul\0byte",
        b".git",
        b".git/hooks/pre-commit",
        b"",
    ],
)
def test_a_bundle_that_names_a_path_outside_is_refused_and_nothing_is_written(
    name: bytes, target: Composed, workspace: Path, tmp_path: Path
) -> None:
    before = describe(workspace.parent, mtimes=True)
    bundle = crafted(tmp_path / "crafted", [tree_naming(name or b"x", SMALL)], [SMALL])
    if not name:  # a name of no bytes at all
        empty = tree_naming(b"x", SMALL).replace(b"x", b"", 1)
        bundle = crafted(tmp_path / "crafted", [empty], [SMALL])
    assert isinstance(_refuse(target, bundle), BundleRefused)
    assert describe(workspace.parent, mtimes=True) == before


@pytest.mark.requirement("ST-7", "RL-7")
def test_a_bundle_that_names_a_hook_of_git_through_directories_is_refused(
    target: Composed, workspace: Path, tmp_path: Path
) -> None:
    hooks = tree_naming(b"pre-commit", SMALL)
    entry = DirectoryEntry(b"hooks", 0o755, digest_of(hooks), 1, len(SMALL))
    inner = encode_tree(Tree(directories=(entry,)))
    entry = DirectoryEntry(b"xxxx", 0o755, digest_of(inner), 1, len(SMALL))
    root = encode_tree(Tree(directories=(entry,))).replace(b"xxxx", b".git", 1)
    before = describe(workspace.parent, mtimes=True)
    bundle = crafted(tmp_path / "crafted", [hooks, inner, root], [SMALL])
    assert isinstance(_refuse(target, bundle), BundleRefused)
    assert describe(workspace.parent, mtimes=True) == before


@pytest.mark.requirement("ST-7", "RL-7")
@pytest.mark.parametrize("name", [b".holdfast", b".holdfast-staging-" + b"0" * 20])
def test_a_bundle_that_would_write_holdfasts_own_files_is_refused(
    name: bytes, target: Composed, tmp_path: Path
) -> None:
    bundle = crafted(tmp_path / "crafted", [tree_naming(name, SMALL)], [SMALL])
    assert isinstance(_refuse(target, bundle), BundleRefused)


@pytest.mark.requirement("ST-7", "RL-7")
@pytest.mark.parametrize(
    "report",
    [
        b'[["../outside","IGNORED",""]]',
        b'[["/etc","IGNORED",""]]',
        b'[["a","STRANGE",""]]',
        b'[["a"]]',
        b"{}",
        b"[" * 100_000,
        b"not json",
    ],
)
def test_a_report_that_no_save_would_write_is_refused(
    report: bytes, target: Composed, tmp_path: Path
) -> None:
    tree = encode_tree(Tree())
    bundle = crafted(tmp_path / "crafted", [tree], report=report)
    assert isinstance(_refuse(target, bundle), BundleRefused)


@pytest.mark.requirement("ST-7", "SE-5")
@pytest.mark.parametrize(
    "rounds",
    [
        {},
        [None],
        [{}],
        [{**_ROUND, "status": "active"}],
        [{**_ROUND, "status": "won"}],
        [{**_ROUND, "head": "0" * 20}],
        [{**_ROUND, "head": "../x"}],
        [{**_ROUND, "number": -1}],
        [{**_ROUND, "ended_at_ns": None}],
        [{**_ROUND, "message": ["x"]}],
        [{**_ROUND, "message": "\ud800"}],
        [{**_ROUND, "message": "x" * 100_001}],
    ],
)
def test_rounds_that_no_session_has_are_refused(
    rounds: object, target: Composed, tmp_path: Path
) -> None:
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree())])
    frames = edited(take_apart(bundle), b"SESS", lambda f: f.update({"rounds": rounds}))
    assert isinstance(_refuse(target, put_together(bundle, frames)), BundleRefused)


@pytest.mark.requirement("ST-7", "ST-3")
def test_a_bundle_that_says_it_inflates_to_a_terabyte_is_refused_at_once(
    target: Composed, tmp_path: Path
) -> None:
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree())])
    frames = edited(take_apart(bundle), b"BNDL", lambda f: f.update({"content_bytes": TB}))
    refusal = _refuse(target, put_together(bundle, frames))
    assert isinstance(refusal, BudgetReached)
    assert str(TB) in refusal.message


def _zeros(claimed_bytes: int, real_bytes: int) -> tuple[bytes, bytes]:
    """An object of zeros: compressed to next to nothing, whatever it says."""
    codec, stored = compress(b"\0" * real_bytes)
    assert codec is Codec.ZSTD
    assert len(stored) < real_bytes // 1000
    digest = digest_of(b"\0" * min(claimed_bytes, real_bytes))
    return b"OBJT", bytes((Role.BLOB,)) + record(digest, stored, codec=1, size=claimed_bytes)


@pytest.mark.requirement("ST-7")
@pytest.mark.parametrize(
    ("claimed_bytes", "real_bytes"),
    [((1 << 32) - 1, 1 << 20), (1 << 30, 1 << 20), (100, 256 << 20), (0, 256 << 20)],
)
def test_zeros_that_inflate_further_than_allowed_or_said_take_no_memory(
    claimed_bytes: int, real_bytes: int, target: Composed, tmp_path: Path
) -> None:
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree())])
    frames = take_apart(bundle)
    frames = edited(frames, b"BNDL", lambda f: f.update({"content_bytes": 10**9, "objects": 2}))
    zeros = _zeros(claimed_bytes, real_bytes)
    put_together(bundle, [*frames[:3], zeros, *frames[3:]])
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert isinstance(_refuse(target, bundle), BundleRefused)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 64 << 10


@pytest.mark.requirement("ST-7")
def test_many_small_objects_that_inflate_stop_where_the_bundle_said_it_would_end(
    target: Composed, tmp_path: Path
) -> None:
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree())])
    blobs = [struct.pack("<I", n) + b"\0" * 1_000_000 for n in range(50)]
    frames = edited(
        take_apart(bundle), b"BNDL", lambda f: f.update({"content_bytes": 3_000_000, "objects": 51})
    )
    packed = [
        (
            b"OBJT",
            bytes((Role.BLOB,)) + record(digest_of(b), compress(b)[1], codec=1, size=len(b)),
        )
        for b in blobs
    ]
    put_together(bundle, [*frames[:3], *packed, *frames[3:]])
    assert "more than it declares" in _refuse(target, bundle).message


@pytest.mark.requirement("ST-7")
def test_directories_that_unfold_without_end_are_refused(target: Composed, tmp_path: Path) -> None:
    """Forty levels, each naming the next twice: a few kilobytes that would be 2**40 directories."""
    trees = [encode_tree(Tree())]
    for _ in range(40):
        below = digest_of(trees[-1])
        twice = tuple(DirectoryEntry(name, 0o755, below, 0, 0) for name in (b"a", b"b"))
        trees.append(encode_tree(Tree(directories=twice)))
    assert "expand to more" in _refuse(target, crafted(tmp_path / "crafted", trees)).message


@pytest.mark.requirement("ST-7")
def test_directories_nested_without_end_are_refused(target: Composed, tmp_path: Path) -> None:
    trees = [encode_tree(Tree())]
    for _ in range(DEEPEST_TREE + 1):
        entry = DirectoryEntry(b"d", 0o755, digest_of(trees[-1]), 0, 0)
        trees.append(encode_tree(Tree(directories=(entry,))))
    assert "expand to more" in _refuse(target, crafted(tmp_path / "crafted", trees)).message


@pytest.mark.requirement("ST-7")
@pytest.mark.parametrize(
    "tree",
    [
        Tree(files=(FileEntry(b"f", 0o644, 99, 0, digest_of(SMALL)),)),
        Tree(files=(FileEntry(b"f", 0o644, 5, 0, digest_of(b"other")),)),
        Tree(files=(FileEntry(b"f", 0o644, 5, 0, digest_of(SMALL), digest_of(SMALL)),)),
        Tree(directories=(DirectoryEntry(b"d", 0o755, digest_of(SMALL), 0, 0),)),
        Tree(directories=(DirectoryEntry(b"d", 0o755, digest_of(encode_tree(Tree())), 7, 0),)),
    ],
    ids=["another size", "missing content", "no pieces", "a file as directory", "false totals"],
)
def test_trees_that_claim_what_is_not_so_are_refused(
    tree: Tree, target: Composed, tmp_path: Path
) -> None:
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree()), encode_tree(tree)], [SMALL])
    assert isinstance(_refuse(target, bundle), BundleRefused)


@pytest.mark.requirement("ST-7", "RL-4")
def test_pieces_that_do_not_make_up_a_large_file_are_refused(
    workspace: Path, target: Composed, tmp_path: Path
) -> None:
    from holdfast.domain.trees.objects import Piece, encode_chunk_list

    pieces = encode_chunk_list([Piece(len(SMALL), digest_of(SMALL))] * 3)
    entry = FileEntry(b"f", 0o644, 15, 0, digest_of(b"another content"), digest_of(pieces))
    tree = encode_tree(Tree(files=(entry,)))
    bundle = crafted(tmp_path / "crafted", [tree], [SMALL])
    frames = take_apart(bundle)
    added = (b"OBJT", bytes((Role.PIECES,)) + record(digest_of(pieces), pieces))
    frames = edited(
        frames,
        b"BNDL",
        lambda f: f.update({"objects": 3, "content_bytes": f["content_bytes"] + len(pieces)}),
    )
    put_together(bundle, [*frames[:4], added, *frames[4:]])
    assert "chunks of a large file" in _refuse(target, bundle).message


@pytest.mark.requirement("ST-7", "ST-3")
def test_one_piece_named_again_and_again_is_not_put_together_to_a_terabyte(
    target: Composed, tmp_path: Path
) -> None:
    from holdfast.domain.trees.objects import Piece, encode_chunk_list

    block = bytes(1 << 20)
    pieces = encode_chunk_list([Piece(len(block), digest_of(block))] * 1_000_000)
    size = len(block) * 1_000_000
    entry = FileEntry(b"f", 0o644, size, 0, digest_of(b"whatever"), digest_of(pieces))
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree(files=(entry,)))], [block])
    frames = edited(
        take_apart(bundle),
        b"BNDL",
        lambda f: f.update({"objects": 3, "content_bytes": f["content_bytes"] + len(pieces)}),
    )
    codec, stored = compress(pieces)
    packed = record(digest_of(pieces), stored, codec=codec, size=len(pieces))
    put_together(bundle, [*frames[:4], (b"OBJT", bytes((Role.PIECES,)) + packed), *frames[4:]])
    assert bundle.stat().st_size < 3_000_000
    refusal = _refuse(target, bundle)
    assert isinstance(refusal, BudgetReached)
    assert str(size) in refusal.message


@pytest.mark.requirement("ST-7")
def test_an_object_stored_against_one_that_does_not_come_before_is_refused(
    target: Composed, tmp_path: Path
) -> None:
    base = b"the base of it all, long enough to be one " * 9
    codec, stored = compress_against(base + b"!", base)
    assert codec is Codec.ZSTD_AGAINST_BASE
    digest = digest_of(base + b"!")
    body = digest_of(base) + stored
    forged = record(digest, body, codec=2, size=len(base) + 1)
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree())])
    frames = edited(
        take_apart(bundle), b"BNDL", lambda f: f.update({"objects": 2, "content_bytes": 10**6})
    )
    put_together(bundle, [*frames[:3], (b"OBJT", bytes((Role.BLOB,)) + forged), *frames[3:]])
    assert "does not precede it" in _refuse(target, bundle).message


def _against(data: bytes, base: bytes) -> tuple[bytes, bytes]:
    """A blob that is stored against another one, however large that is."""
    codec, stored = compress_against(data, base)
    assert codec is Codec.ZSTD_AGAINST_BASE
    body = digest_of(base) + stored
    return b"OBJT", bytes((Role.BLOB,)) + record(digest_of(data), body, codec=2, size=len(data))


def _packed(data: bytes) -> tuple[bytes, bytes]:
    codec, stored = compress(data)
    body = record(digest_of(data), stored, codec=codec, size=len(data))
    return b"OBJT", bytes((Role.BLOB,)) + body


def _with_objects(path: Path, objects: list[tuple[bytes, bytes]], content_bytes: int) -> Path:
    bundle = crafted(path, [encode_tree(Tree())])
    said = {"objects": len(objects) + 1, "content_bytes": content_bytes + 1000}
    frames = edited(take_apart(bundle), b"BNDL", lambda f: f.update(said))
    return put_together(bundle, [*frames[:3], *objects, *frames[3:]])


@pytest.mark.requirement("ST-7", "ST-3")
def test_small_objects_stored_against_a_huge_one_are_refused(
    target: Composed, tmp_path: Path
) -> None:
    """Each of them would unpack it again: a few kilobytes that keep a machine busy for hours."""
    end = random.Random(1).randbytes(300)
    base = bytes(LARGEST_DELTA_BYTES) + end
    objects = [_packed(base), _against(end + b"!", base)]
    refusal = _refuse(target, _with_objects(tmp_path / "crafted", objects, 10**8))
    assert "too large" in refusal.message


@pytest.mark.requirement("ST-7", "ST-3")
def test_content_that_is_unpacked_again_and_again_counts_each_time(
    workspace: Path, tmp_path: Path
) -> None:
    """Twelve objects that do not fit into memory together, and small ones against each in turn."""
    ends = [random.Random(n).randbytes(300) for n in range(12)]
    bases = [bytes(LARGEST_DELTA_BYTES - 300) + end for end in ends]
    small = [(end + bytes((turn,)), n) for turn in range(3) for n, end in enumerate(ends)]
    objects = [_packed(base) for base in bases]
    objects += [_against(data, bases[n]) for data, n in small]
    content_bytes = sum(map(len, bases)) + sum(len(data) for data, _ in small)
    bundle = _with_objects(tmp_path / "crafted", objects, content_bytes)
    budget = 2 * content_bytes // MOST_TIMES_THE_BUDGET
    configure(workspace, budget=budget)
    with composed(workspace) as target, pytest.raises(BudgetReached, match="unpacks to"):
        import_bundle(target.engine.vault, ImportRequest(bundle, foreign=True))


@pytest.mark.requirement("ST-7", "ST-3")
def test_a_file_that_is_larger_than_it_may_unpack_to_is_not_even_read(
    target: Composed, tmp_path: Path
) -> None:
    bundle = crafted(tmp_path / "crafted", [encode_tree(Tree())])
    frames = take_apart(bundle)
    put_together(bundle, [*frames, (b"zero", b"")])
    os.truncate(bundle, TB)
    assert isinstance(_refuse(target, bundle), BudgetReached)

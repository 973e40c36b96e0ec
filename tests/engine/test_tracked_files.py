"""Files that git tracks are captured whatever an ignore rule says, and so are files that tools
named; nothing else in an ignored directory is."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import SkipReason
from holdfast.engine.restore.plan import read_report
from holdfast.engine.stored_objects import list_entries
from tests.support.aided_saves import opened_new, require_as_if_alone, save
from tests.support.composition import Composed, composed, configure, scan_from_nothing
from tests.support.hostile_trees import fill
from tests.support.ruled_trees import DATABASE, RuledTree, random_settings
from tests.support.watched_workspaces import watched

TREES = 25
TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n"


def git(directory: Path, *words: str) -> None:
    subprocess.run(
        ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words),
        cwd=directory,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that ignores `lib/` and tracks one file in it."""
    root = tmp_path / "project"
    fill(root / "src/lib/util.ts", b"export const a = 1\n")
    fill(root / "src/lib/scratch.ts", b"not tracked\n")
    fill(root / "src/main.ts", b"main\n")
    fill(root / ".gitignore", b"lib/\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "add", "-f", "src/lib/util.ts")
    return root


def saved_paths(opened: Composed) -> set[bytes]:
    saved = opened.save()
    vault = opened.engine.vault
    return {path for path, _ in list_entries(vault.load_tree, saved.tree)}


@pytest.mark.requirement("CP-15")
def test_a_tracked_file_that_a_rule_ignores_is_captured_and_comes_back(project: Path) -> None:
    with composed(project) as opened:
        first = opened.save()
        shutil.rmtree(project / "src")
        outcome = opened.restore(first.id)
    assert (project / "src/lib/util.ts").read_bytes() == b"export const a = 1\n"
    assert not (project / "src/lib/scratch.ts").exists()
    assert outcome.verified


@pytest.mark.requirement("CP-15")
def test_only_the_tracked_file_of_an_ignored_directory_is_captured(project: Path) -> None:
    with composed(project) as opened:
        paths = saved_paths(opened)
        skipped = {s.path: s.reason for s in opened.engine.scan().skipped}
    assert b"src/lib/util.ts" in paths
    assert b"src/lib/scratch.ts" not in paths
    assert skipped[b"src/lib/scratch.ts"] is SkipReason.IGNORED


@pytest.mark.requirement("CP-15")
@pytest.mark.parametrize("where", [".gitignore", ".holdfastignore", ".git/info/exclude", "setting"])
def test_a_rule_that_comes_later_does_not_drop_a_tracked_file(project: Path, where: str) -> None:
    with composed(project) as opened:
        opened.save()
    if where == "setting":
        configure(project, ignore=["src/"])
    else:
        fill(project / where, b"src/\n")
    with composed(project) as opened:
        paths = saved_paths(opened)
    assert {b"src/main.ts", b"src/lib/util.ts"} <= paths
    assert b"src/lib/scratch.ts" not in paths


@pytest.mark.requirement("CP-15")
def test_tracked_files_below_built_in_rules_and_in_caches_are_captured(project: Path) -> None:
    fill(project / "node_modules/mine/index.js")
    fill(project / "node_modules/other/index.js")
    fill(project / "target/CACHEDIR.TAG", TAG)
    fill(project / "target/kept.rs")
    git(project, "add", "-f", "node_modules/mine/index.js", "target/kept.rs")
    with composed(project) as opened:
        paths = saved_paths(opened)
    assert {b"node_modules/mine/index.js", b"target/kept.rs"} <= paths
    assert not {b"node_modules/other", b"target/CACHEDIR.TAG"} & paths


@pytest.mark.requirement("CP-15")
def test_a_file_that_git_tracks_from_now_on_is_captured_from_now_on(project: Path) -> None:
    fill(project / "a/b/lib/late.ts")
    with composed(project) as opened:
        opened.save()
        opened.save()
        assert b"a/b/lib/late.ts" not in saved_paths(opened)
        git(project, "add", "-f", "a/b/lib/late.ts")
        assert b"a/b/lib/late.ts" in saved_paths(opened)
        git(project, "rm", "-q", "--cached", "a/b/lib/late.ts")
        assert b"a/b/lib/late.ts" not in saved_paths(opened)


@pytest.mark.linux
@pytest.mark.requirement("CP-15", "AU-6")
def test_under_a_watch_the_index_decides_as_in_a_scan_from_nothing(project: Path) -> None:
    fill(project / "a/b/lib/late.ts")
    fill(project / "deep/down/here/x.ts")
    with watched(project) as one:
        one.settle()
        for words in (
            ("add", "-f", "a/b/lib/late.ts"),
            ("rm", "-q", "--cached", "src/lib/util.ts"),
            ("add", "-f", "src/lib/scratch.ts"),
            ("rm", "-q", "-r", "--cached", "."),
            ("add", "-f", "."),
        ):
            git(project, *words)
            assert one.seen() == one.from_nothing()
            one.save()
            assert one.seen() == one.from_nothing()
        before = one.status.hinted_scans
        fill(project / "a/b/lib/late.ts", b"changed")
        assert one.seen() == one.from_nothing()
        one.save()
        assert one.status.hinted_scans > before


@pytest.mark.linux
@pytest.mark.requirement("CP-15", "AU-6")
def test_under_a_watch_a_repository_that_comes_or_goes_is_seen(project: Path) -> None:
    fill(project / "inner/lib/x.ts")
    fill(project / "inner/deep/lib/y.ts")
    with watched(project) as one:
        one.settle()
        git(project / "inner", "init", "-q")
        git(project / "inner", "add", "-f", "lib/x.ts", "deep/lib/y.ts")
        assert one.seen() == one.from_nothing()
        one.save()
        git(project / "inner", "rm", "-q", "--cached", "deep/lib/y.ts")
        assert one.seen() == one.from_nothing()
        one.save()
        shutil.rmtree(project / "inner/.git")
        assert one.seen() == one.from_nothing()
        one.save()
        shutil.rmtree(project / ".git")
        assert one.seen() == one.from_nothing()


@pytest.mark.requirement("CP-15")
def test_nested_repositories_submodules_and_worktrees_have_their_own_index(
    project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    fill(other / "lib/mine.ts")
    fill(other / "plain.ts")
    git(other, "init", "-q")
    git(other, "add", "-f", ".")
    git(other, "commit", "-qm", "first")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "mod")
    git(project, "commit", "-qm", "first")
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    with composed(project) as opened:
        assert b"mod/lib/mine.ts" in saved_paths(opened)
        fill(project / ".gitignore", b"lib/\nmod/\n")
        assert {b"mod/lib/mine.ts", b"mod/plain.ts"} <= saved_paths(opened)
    fill(tmp_path / "tree/src/lib/untracked.ts")
    with composed(tmp_path / "tree") as opened:
        paths = saved_paths(opened)
    assert b"src/lib/util.ts" in paths
    assert b"src/lib/untracked.ts" not in paths


@pytest.mark.requirement("CP-15")
def test_a_workspace_that_is_a_directory_of_a_repository_knows_what_that_tracks(
    project: Path,
) -> None:
    fill(project / "src/.gitignore", b"lib/\n")
    with composed(project / "src") as opened:
        paths = saved_paths(opened)
    assert b"lib/util.ts" in paths
    assert b"lib/scratch.ts" not in paths


@pytest.mark.requirement("CP-15")
@pytest.mark.parametrize(
    "words",
    [
        ("update-index", "--index-version", "4"),
        ("update-index", "--split-index"),
        ("update-index", "--force-untracked-cache"),
    ],
)
def test_every_form_of_an_index_is_understood(project: Path, words: tuple[str, ...]) -> None:
    for number in range(40):
        fill(project / f"src/lib/{'n' * number}{number}.ts")
    git(project, "add", "-f", "src/lib")
    git(project, *words)
    fill(project / "lib/later.ts")
    git(project, "add", "-f", "lib/later.ts")
    with composed(project) as opened:
        paths = saved_paths(opened)
        assert not [s for s in opened.engine.scan().skipped if s.reason.is_failure]
    assert {b"src/lib/util.ts", b"src/lib/%s39.ts" % (b"n" * 39), b"lib/later.ts"} <= paths


@pytest.mark.requirement("CP-15")
def test_an_index_with_sha256_names_is_understood(tmp_path: Path) -> None:
    root = tmp_path / "project"
    fill(root / ".gitignore", b"lib/\n")
    for number in range(30):
        fill(root / f"lib/{number}")
    git(root, "init", "-q", "--object-format=sha256")
    git(root, "add", "-f", ".")
    with composed(root) as opened:
        assert {b"lib/%d" % number for number in range(30)} <= saved_paths(opened)


@pytest.mark.requirement("CP-15", "BX-7")
@pytest.mark.parametrize("damage", ["cut", "other", "empty", "directory"])
def test_an_index_that_cannot_be_read_makes_the_checkpoint_partial_and_says_so(
    project: Path, damage: str
) -> None:
    index = project / ".git/index"
    data = index.read_bytes()
    if damage == "directory":
        index.unlink()
        index.mkdir()
    else:
        index.write_bytes({"cut": data[:-30], "other": b"DIRC\0\0\0\x09", "empty": b""}[damage])
    with composed(project) as opened:
        saved = opened.save()
        reasons = {s.path: s.reason for s in read_report(opened.engine.vault, saved)}
    assert saved.partial
    assert reasons[b".git/index"] is SkipReason.UNKNOWN_INDEX


@pytest.mark.requirement("CP-15", "PF-2")
@pytest.mark.usefixtures("aided_from_the_first_file")
def test_a_helped_first_save_has_the_tracked_and_named_files(project: Path) -> None:
    for number in range(300):
        fill(project / f"d{number % 7}/lib/f{number}")
    git(project, "add", "-f", "d3/lib", "d6/lib/f6")
    fill(project / "d5/lib/named")
    with opened_new(project) as opened:
        with opened.store.hold():
            opened.store.named_paths.replace([b"d5/lib/named"])
        saved = save(opened)
        require_as_if_alone(opened, saved)
        vault = opened.engine.vault
        paths = {path for path, _ in list_entries(vault.load_tree, saved.tree)}
    assert {b"d3/lib/f3", b"d6/lib/f6", b"d5/lib/named"} <= paths
    assert b"d6/lib/f13" not in paths


@pytest.mark.requirement("CP-13")
def test_a_named_file_is_captured_alone_and_noted_until_the_setting_is_off(project: Path) -> None:
    fill(project / ".gitignore", b".env\nnode_modules/\n")
    fill(project / ".env", b"TOKEN=1\n")
    fill(project / "node_modules/x/y.js")
    fill(project / "node_modules/x/z.js")
    with composed(project) as opened:
        assert b".env" not in saved_paths(opened)
        with opened.store.hold():
            opened.store.named_paths.replace([b".env", b"node_modules/x/y.js"])
        saved = opened.save()
        noted = {s.path: s.describe() for s in read_report(opened.engine.vault, saved)}
        assert noted[b".env"] == (
            "ignored, but captured because a tool named it (.gitignore:1: .env)"
        )
        assert noted[b"node_modules/x/z.js"].startswith("ignored (")
        (project / ".env").write_bytes(b"lost")
        opened.restore(saved.id)
        assert (project / ".env").read_bytes() == b"TOKEN=1\n"
    configure(project, capture_named_ignored="off")
    with composed(project) as opened:
        assert b".env" not in saved_paths(opened)


@pytest.mark.linux
@pytest.mark.requirement("CP-13", "AU-6")
def test_under_a_watch_a_file_that_a_tool_names_is_captured_at_once(project: Path) -> None:
    fill(project / "a/b/.gitignore", b".env\n")
    fill(project / "a/b/.env", b"TOKEN=1\n")
    with watched(project) as one:
        one.settle()
        store = one.opened.store
        for named in ([b"a/b/.env"], [b"a/b/.env", b"src/lib/scratch.ts"], [b"src/lib/scratch.ts"]):
            with store.hold():
                store.named_paths.replace(named)
            assert one.seen() == one.from_nothing()
            one.save()
            assert one.seen() == one.from_nothing()


@pytest.mark.requirement("CP-13", "RB-2")
def test_a_restore_to_before_a_file_was_captured_leaves_it_alone(project: Path) -> None:
    fill(project / ".gitignore", b".env\n")
    fill(project / ".env", b"TOKEN=1\n")
    with composed(project) as opened:
        before = opened.save()
        with opened.store.hold():
            opened.store.named_paths.replace([b".env"])
        opened.save()
        fill(project / "src/main.ts", b"changed")
        opened.restore(before.id)
    assert (project / ".env").read_bytes() == b"TOKEN=1\n"
    assert (project / "src/main.ts").read_bytes() == b"main\n"


@pytest.mark.requirement("CP-13", "CP-12")
def test_a_named_file_above_the_size_cap_is_reported_and_left_out(project: Path) -> None:
    fill(project / ".gitignore", b"*.bin\n")
    fill(project / "big.bin", b"0" * 5_000)
    configure(project, max_file_size=1_000)
    with composed(project) as opened:
        with opened.store.hold():
            opened.store.named_paths.replace([b"big.bin"])
        reasons = {s.path: s.reason for s in read_report(opened.engine.vault, opened.save())}
    assert reasons[b"big.bin"] is SkipReason.TOO_LARGE


@pytest.mark.requirement("CP-15", "CP-2")
@pytest.mark.parametrize("seed", range(TREES))
def test_in_random_trees_exactly_the_tracked_files_are_added(tmp_path: Path, seed: int) -> None:
    """What a scan takes beyond what it takes without an index is tracked, or above what is."""
    rng = random.Random(seed)
    root = tmp_path / "project"
    RuledTree(rng, root, tmp_path / "outside").grow()
    for found, directories, _ in os.walk(root):
        if ".git" in directories:
            shutil.rmtree(os.path.join(found, ".git"))
            directories.remove(".git")
    (root / ".git").unlink(missing_ok=True)
    git(root, "init", "-q")
    files = sorted(
        os.path.relpath(os.path.join(found, name), os.fsencode(root))
        for found, _, names in os.walk(os.fsencode(root))
        for name in names
        if b".git/" not in found + b"/" and name != b".git"
        if stat.S_ISREG(os.lstat(os.path.join(found, name)).st_mode)
    )
    tracked = set(rng.sample(files, len(files) // 3))
    settings = random_settings(rng) | {"include": []}
    with open_workspace(root, create=True):
        configure(root, **settings)
    with composed(root) as opened:
        without = saved_paths(opened)
        listing = b"\0".join(sorted(tracked))
        subprocess.run(
            ("git", "update-index", "--add", "-z", "--stdin"), cwd=root, input=listing, check=True
        )
        taken = saved_paths(opened)
        alone = scan_from_nothing(opened.engine.vault)
        assert opened.engine.scan().tree == alone.tree
    large = {s.path for s in alone.skipped if s.reason is not SkipReason.IGNORED}
    above = {path[:at] for path in tracked for at in range(len(path)) if path[at : at + 1] == b"/"}
    parts = (DATABASE, DATABASE + b"-wal", DATABASE + b"-shm", DATABASE + b"-journal")
    added = {path for path in taken - without if not path.endswith(parts)}
    assert without <= taken
    assert added <= tracked | above
    assert tracked - large <= taken

"""What saves and restores cost, counted in calls and bytes: never measured in time."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.adapters.local import linux_calls
from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.store_lock import StoreLock
from holdfast.domain.errors import NothingToUndo, RestoreFailed
from holdfast.domain.ids import Digest
from holdfast.domain.ignore.rules import RuleStack
from holdfast.domain.trees.tree import Tree
from holdfast.engine.scan.directory_state import DirectoryState
from holdfast.engine.scan.policy import CapturePolicy, Mode, Verdict
from holdfast.engine.sessions.approval import approve
from holdfast.engine.undo.undo import next_step
from holdfast.engine.vault import Vault
from holdfast.ports.filesystem import StatNumbers
from tests.support.composition import SESSION, composed, configure
from tests.support.hostile_trees import fill
from tests.support.watched_filesystem import Call, WatchedFilesystem, once
from tests.support.watched_workspaces import watched

DIRECTORIES = 20
FILES_EACH = 10
FILES = DIRECTORIES * FILES_EACH


def _source(rng: random.Random, lines: int) -> bytes:
    words = ["value", "self", "return", "index", "for", "result", "path", "None", "count"]
    return "".join(
        f"    {rng.choice(words)}_{rng.randrange(1000)} = {rng.choice(words)}({rng.random()})\n"
        for _ in range(lines)
    ).encode()


@pytest.fixture
def workspace(tmp_path: Path, rng: random.Random) -> Path:
    root = tmp_path / "project"
    for d in range(DIRECTORIES):
        directory = root / f"package{d}"
        directory.mkdir(parents=True)
        for f in range(FILES_EACH):
            (directory / f"module{f}.py").write_bytes(_source(rng, 120))
    _age(root)
    return root


def _age(root: Path) -> None:
    """Let a clock tick pass after every change, so it need not be read again."""
    newest = max(path.stat().st_ctime_ns for path in (root, *root.rglob("*")))
    probe = root.parent / "probe"
    while True:
        probe.write_bytes(b"")
        if probe.stat().st_ctime_ns > newest + 40_000_000:
            return


class Counting:
    """Counts calls by member and remembers the names that were opened."""

    def __init__(self) -> None:
        self.members: Counter[str] = Counter()
        self.opened: list[bytes] = []

    def __call__(self, call: Call) -> None:
        self.members[call.member] += 1
        if call.member == "open":
            self.opened.append(call.arguments[0])

    def reset(self) -> None:
        self.members.clear()
        self.opened.clear()


def _edit_five(workspace: Path) -> list[bytes]:
    edited = [workspace / f"package{d}" / "module3.py" for d in range(5)]
    for path in edited:
        path.write_bytes(path.read_bytes() + b"# edited\n")
    return [os.fsencode(path.name) for path in edited]


@pytest.mark.requirement("PF-1")
def test_a_save_after_five_edits_stats_each_file_once_and_opens_only_what_changed(
    workspace: Path,
) -> None:
    count = Counting()
    with composed(workspace, fs=WatchedFilesystem(before=count).as_port()) as opened:
        opened.save()
        _age(workspace)
        opened.save()
        _edit_five(workspace)
        count.reset()
        opened.save()
    python_files = [name for name in count.opened if name.endswith(b".py")]
    assert len(python_files) == 5
    assert count.members["stat"] <= FILES + 20
    assert count.members["list_names"] <= 2
    assert count.members["fsync"] == 1


@pytest.mark.requirement("PF-1")
def test_a_new_file_costs_its_neighbours_no_decision_of_their_own(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[bytes] = []
    judge = CapturePolicy.judge

    def counted(
        policy: CapturePolicy, stack: RuleStack, path: bytes, is_dir: bool, mode: Mode
    ) -> Verdict:
        judged.append(path)
        return judge(policy, stack, path, is_dir, mode)

    with composed(workspace) as opened:
        opened.save()
        _age(workspace)
        opened.save()
        monkeypatch.setattr(CapturePolicy, "judge", counted)
        (workspace / "package1" / "new.py").write_bytes(b"new")
        opened.save()
        assert judged == [b"package1/new.py"]
        judged.clear()
        # A moment later: the directory changed too lately to be believed by its times.
        (workspace / "package1" / "newer.py").write_bytes(b"newer")
        opened.save()
    assert set(judged) <= {b"package1/new.py", b"package1/newer.py"}


@pytest.mark.requirement("PF-1", "PF-6")
def test_a_save_with_nothing_changed_reads_and_lists_nothing(workspace: Path) -> None:
    count = Counting()
    with composed(workspace, fs=WatchedFilesystem(before=count).as_port()) as opened:
        opened.save()
        _age(workspace)
        opened.save()
        count.reset()
        opened.save()
    assert [name for name in count.opened if name.endswith(b".py")] == []
    assert count.members["read"] == 0


class Answers(LocalFilesystem):
    """Counts the answers about many files that have to be taken apart."""

    def __init__(self) -> None:
        self.taken_apart = 0

    def stat_numbers(self, told: bytes) -> Sequence[StatNumbers]:  # type: ignore[override]
        self.taken_apart += 1
        return linux_calls.stat_numbers(told)


@pytest.mark.requirement("PF-1")
def test_what_the_system_said_of_unchanged_files_is_not_taken_apart_twice(workspace: Path) -> None:
    fs = Answers()
    with composed(workspace, fs=fs) as opened:
        opened.save()
        _age(workspace)
        opened.save()  # reads once more what was written shortly before the first
        opened.save()
        assert fs.taken_apart >= DIRECTORIES
        fs.taken_apart = 0
        opened.save()
        assert fs.taken_apart == 0
        _edit_five(workspace)
        opened.save()
    assert fs.taken_apart == 5


@pytest.mark.requirement("PF-1", "PF-5")
def test_what_the_system_said_is_not_kept_of_very_many_files(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.scan.walker._MOST_KEPT", FILES - 1)
    fs = Answers()
    with composed(workspace, fs=fs) as opened:
        opened.save()
        _age(workspace)
        opened.save()
        opened.save()
        fs.taken_apart = 0
        opened.save()
    assert fs.taken_apart == DIRECTORIES


@pytest.mark.linux
@pytest.mark.requirement("PF-5", "AU-4")
def test_what_the_system_said_is_not_kept_under_watch(workspace: Path) -> None:
    """A daemon waits with it in memory for a look that comes every ten minutes at most."""
    fs = Answers()
    with watched(workspace, fs=fs) as one:
        one.save()
        _age(workspace)
        for _ in range(3):
            fs.taken_apart = 0
            one.watch.doubt("everything is to be looked at")
            one.save()
    assert fs.taken_apart == DIRECTORIES


@pytest.mark.requirement("PF-1")
def test_another_process_starts_from_what_the_last_one_learned(workspace: Path) -> None:
    with composed(workspace) as opened:
        opened.save()
        _age(workspace)
        opened.save()
    count = Counting()
    with composed(workspace, fs=WatchedFilesystem(before=count).as_port()) as opened:
        count.reset()
        opened.save()
    assert [name for name in count.opened if name.endswith(b".py")] == []


@pytest.mark.requirement("AU-6", "PF-5")
@pytest.mark.parametrize("reopened", [False, True], ids=["scanned", "loaded"])
def test_what_most_directories_have_in_common_is_kept_once(workspace: Path, reopened: bool) -> None:
    with composed(workspace) as opened:
        opened.save()
        _age(workspace)
        opened.save()
        root = opened.engine.scanner.root
    if reopened:
        with composed(workspace) as opened:
            opened.save()
            root = opened.engine.scanner.root
    assert root is not None
    states = [state for state in root.children.values() if isinstance(state, DirectoryState)]
    assert len(states) == DIRECTORIES
    for shared in ("chunks", "links", "children", "parent_rules", "rules"):
        assert len({id(getattr(state, shared)) for state in states}) == 1, shared
    assert len({id(state.key.mode) for state in states}) == 1
    once = [state.key for state in states if state.key.mtime_ns == state.key.ctime_ns]
    assert all(key.mtime_ns is key.ctime_ns for key in once)


@pytest.mark.requirement("PF-2")
def test_a_first_save_opens_each_file_once_and_syncs_once(workspace: Path) -> None:
    count = Counting()
    with composed(workspace, fs=WatchedFilesystem(before=count).as_port()) as opened:
        count.reset()
        opened.save()
    python_files = [name for name in count.opened if name.endswith(b".py")]
    assert len(python_files) == FILES
    assert count.members["read"] == FILES
    assert count.members["fsync"] == 2  # the pack, and the directory that got it


@pytest.mark.requirement("PF-3")
def test_a_restore_of_five_files_touches_five_files(workspace: Path) -> None:
    count = Counting()
    with composed(workspace, fs=WatchedFilesystem(before=count).as_port()) as opened:
        first = opened.save()
        _age(workspace)
        opened.save()
        _edit_five(workspace)
        count.reset()
        opened.restore(first.id)
    assert count.members["exchange"] == 5
    assert count.members["stat"] <= FILES + 60
    written = [name for name in count.opened if name.endswith(b".py")]
    assert len(written) <= 10  # read for the safety checkpoint, read back to verify


@pytest.mark.requirement("PF-6")
def test_content_is_synced_before_the_save_is_acknowledged(workspace: Path) -> None:
    order: list[str] = []

    def note(call: Call) -> None:
        if call.member in ("write", "fsync"):
            order.append(call.member)

    with composed(workspace, fs=WatchedFilesystem(after=note).as_port()) as opened:
        opened.save()
        order.clear()
        _edit_five(workspace)
        opened.save()
        (level,) = opened.local_store.catalog._db.execute("PRAGMA synchronous").fetchall()[0]
    assert order == ["write", "fsync"]
    assert level == 2  # FULL: a commit returns after its own fsync


@pytest.mark.requirement("PF-4", "ST-1")
def test_a_long_history_of_edits_takes_half_the_space_of_a_shadow_repository(
    workspace: Path, tmp_path: Path, rng: random.Random
) -> None:
    configure(workspace, max_manual_checkpoints=0)
    git = {
        **os.environ,
        "GIT_DIR": str(tmp_path / "shadow.git"),
        "GIT_WORK_TREE": str(workspace),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }

    def run(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], env=git, check=True, capture_output=True, text=True
        ).stdout.strip()

    run("init", "-q")
    (tmp_path / "shadow.git" / "info" / "exclude").write_text(".holdfast/\n")
    with SessionCheckpointer(workspace, "s") as session:
        for number in range(60):
            for _ in range(rng.randint(1, 3)):
                target = workspace / f"package{rng.randrange(DIRECTORIES)}" / "module1.py"
                lines = target.read_bytes().splitlines(keepends=True)
                lines[rng.randrange(len(lines))] = _source(rng, 1)
                target.write_bytes(b"".join(lines))
            session.checkpoint(f"edit {number}")
            run("add", "-A")
            run("commit-tree", run("write-tree"), "-m", "edit")
        packs = session.save() / "objects" / "packs"
        ours = sum(path.stat().st_blocks * 512 for path in packs.iterdir())
    shadow = sum(
        path.stat().st_blocks * 512
        for path in (tmp_path / "shadow.git").rglob("*")
        if path.is_file()
    )
    assert ours <= 0.5 * shadow


_MEASURE = """
import resource, sys
from pathlib import Path
from holdfast import SessionCheckpointer
from holdfast.domain.errors import NothingToUndo, RestoreFailed
from holdfast.domain.ids import Digest
from holdfast.domain.ignore.rules import RuleStack
from holdfast.domain.trees.tree import Tree
from holdfast.engine.scan.policy import CapturePolicy, Mode, Verdict
session = SessionCheckpointer(Path(sys.argv[1]), "s")
Path(sys.argv[1], "small").write_bytes(b"x")
session.checkpoint("warm up")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Path(sys.argv[2]).rename(Path(sys.argv[1], "arrived"))
session.checkpoint("measured")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def _growth_kib(workspace: Path, arriving: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(workspace), str(arriving)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "HOLDFAST_HOME": str(workspace.parent / "home")},
    )
    return int(done.stdout)


@pytest.mark.requirement("PF-5")
def test_a_save_of_a_thousand_files_grows_memory_by_less_than_50_mb(
    tmp_path: Path, rng: random.Random
) -> None:
    (tmp_path / "project").mkdir()
    arriving = tmp_path / "arriving"
    for d in range(100):
        (arriving / f"d{d}").mkdir(parents=True)
        for f in range(10):
            (arriving / f"d{d}" / f"f{f}").write_bytes(_source(rng, 60))
    assert _growth_kib(tmp_path / "project", arriving) < 50 * 1024


@pytest.mark.requirement("PF-5")
def test_memory_does_not_follow_the_size_of_a_file(tmp_path: Path, rng: random.Random) -> None:
    (tmp_path / "project").mkdir()
    arriving = tmp_path / "arriving"
    block = rng.randbytes(1 << 20)
    with arriving.open("wb") as file:
        for number in range(90):
            file.write(block[number * 11 :] + block[: number * 11])
    assert _growth_kib(tmp_path / "project", arriving) < 60 * 1024


@pytest.mark.requirement("PF-6", "RB-3")
def test_new_content_is_synced_before_the_journal_says_that_it_is_there(workspace: Path) -> None:
    """A journal that outlives the content it speaks of would promise what it cannot keep."""
    synced_since_staging = 0
    before_journal: list[int] = []

    def note(call: Call) -> None:
        nonlocal synced_since_staging
        if call.member == "set_times":
            synced_since_staging = 0
        elif call.member in ("fsync", "sync_all"):
            synced_since_staging += 1
        elif call.member == "rename" and call.names()[-1].endswith(b"journal"):
            before_journal.append(synced_since_staging)

    with composed(workspace, fs=WatchedFilesystem(after=note).as_port()) as opened:
        first = opened.save()
        _edit_five(workspace)
        opened.restore(first.id)
    # Five files, the directory that names them, and the journal itself.
    assert before_journal == [7]


@pytest.mark.requirement("PF-1", "RB-11")
def test_an_undo_reads_no_more_of_a_long_history_than_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    rows = 0

    def counted(method: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal rows
            found = method(*arguments, **named)
            rows += len(found)
            return found

        return call

    with composed(project) as opened:
        for number in range(230):
            (project / "file").write_text(f"{number}\n")
            opened.save()
        catalog = type(opened.store.catalog)
        monkeypatch.setattr(catalog, "history", counted(catalog.history))
        monkeypatch.setattr(catalog, "operations_before", counted(catalog.operations_before))
        step = opened.engine.last_step()
        assert step.request.target.sequence == 229
        assert 0 < rows <= 200
        rows = 0
        with pytest.raises(NothingToUndo):
            next_step(opened.engine.vault)
        assert 0 < rows <= 200


@pytest.mark.requirement("PF-1", "RB-11")
def test_an_undo_compares_old_states_only_until_they_differ(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Digest] = []
    load = Vault.load_tree

    def counted(vault: Vault, digest: Digest) -> Tree:
        loaded.append(digest)
        return load(vault, digest)

    with composed(workspace) as opened:
        opened.save()
        for number in range(3):
            for directory in workspace.glob("package*"):
                (directory / "module3.py").write_text(f"# {number}\n")
            opened.save()
            opened.engine.restore(opened.engine.last_step().request)
        for directory in workspace.glob("package*"):
            (directory / "module3.py").write_text("# something else\n")
        opened.save()
        monkeypatch.setattr(Vault, "load_tree", counted)
        opened.engine.last_step()
    # For each of the three undos both roots and one directory of each; all of them are twenty-one.
    assert len(loaded) < 4 * 4 + 2 * (DIRECTORIES + 1)


@pytest.mark.requirement("RB-3")
def test_taking_back_reads_each_directory_once_whatever_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "project"
    for number in range(FILES):
        fill(workspace / f"deep/er/{number}", b"%d" % number)
    fill(workspace / "x", b"the last step")
    fs = WatchedFilesystem()
    with composed(workspace, fs=fs.as_port()) as opened:
        first = opened.save()
        shutil.rmtree(workspace / "deep")
        (workspace / "x").unlink()
        read: Counter[Digest] = Counter()
        load = Vault.load_tree

        def counted(vault: Vault, digest: Digest) -> Tree:
            read[digest] += 1
            return load(vault, digest)

        def stand_in_the_way() -> None:
            monkeypatch.setattr(Vault, "load_tree", counted)
            (workspace / "x").mkdir()

        fs.before = once(
            lambda call: call.member == "rename_new" and call.arguments[1] == b"x", stand_in_the_way
        )
        with pytest.raises(RestoreFailed, match="rolled back"):
            opened.restore(first.id)
    assert read
    assert max(read.values()) < FILES / 10, read.most_common(3)


def test_a_save_a_restore_and_an_approval_each_take_the_lock_once(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nested holds too would count: what works under the lock is called with it held."""
    with composed(workspace) as opened:
        first = opened.save()
        held: list[str] = []
        hold = StoreLock.hold

        def counted(self: StoreLock, *args: Any, **kinds: Any) -> Any:
            held.append(self._path.name)
            return hold(self, *args, **kinds)

        monkeypatch.setattr(StoreLock, "hold", counted)
        fill(workspace / "package0/module0.py", b"2")
        for work in (
            opened.save,
            lambda: opened.restore(first.id),
            lambda: approve(opened.engine, SESSION, None),
        ):
            held.clear()
            work()
            assert held.count("lock") == 1

"""An export or import that dies or fails anywhere: the store is sound, and either has it or not."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.domain.errors import HoldfastError
from holdfast.engine.bundles.exporter import export_to_file
from holdfast.engine.bundles.importer import ImportRequest, import_bundle
from holdfast.engine.bundles.selection import select_sessions
from holdfast.engine.repair.check import run_checks
from holdfast.engine.retention.cleanup import collect
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from holdfast.testing.faulty_filesystem import (
    Fail,
    Fault,
    FaultyFilesystem,
    Kill,
    Killed,
    SqliteFaults,
)
from tests.support.bundle_files import small_bundle
from tests.support.composition import SESSION, composed
from tests.support.crash_server import CrashServer, Request
from tests.support.hostile_trees import fill
from tests.support.strides import strides
from tests.support.tree_hash import describe

pytestmark = [pytest.mark.requirement("ST-7", "RL-1", "RL-3"), pytest.mark.in_memory]


@pytest.fixture(scope="module")
def server() -> Iterator[CrashServer]:
    with CrashServer() as server:
        yield server


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return small_bundle(tmp_path)


def _target(tmp_path: Path, number: int = 0) -> Path:
    workspace = tmp_path / f"target-{number}"
    fill(workspace / "mine", b"mine")
    with composed(workspace) as opened:
        opened.save("mine")
    return workspace


def _fallible(counted: FaultyFilesystem) -> list[int]:
    """A close that fails has closed anyway, and nothing can be done about it."""
    return [call.number for call in counted.calls if call.name != "close"]


def _state(workspace: Path) -> int:
    """How many checkpoints the store has, after making sure that it is sound."""
    with composed(workspace) as opened:
        vault = opened.engine.vault
        assert list(run_checks(vault, data=True, progress=NoProgress())) == []
        roots = list(all_checkpoints(vault.catalog))
        for checkpoint in roots:
            opened.engine.restore(
                opened.engine.restore_request(checkpoint.session_id, checkpoint.id)
            )
        return len(roots)


@pytest.mark.requirement("RL-1")
def test_an_import_killed_at_any_call_is_there_whole_or_not_at_all(
    server: CrashServer, bundle: Path, tmp_path: Path
) -> None:
    calls = server.ask(Request(str(_target(tmp_path)), "import", str(bundle))).calls
    assert 20 < calls < 300
    seen = set()
    for at in range(1, calls + 1):
        workspace = _target(tmp_path, at)
        before = describe(workspace)
        answer = server.ask(Request(str(workspace), "import", str(bundle), at=at))
        assert describe(workspace) == before
        with composed(workspace) as opened:
            found = len(list(all_checkpoints(opened.engine.vault.catalog)))
            assert list(run_checks(opened.engine.vault, data=True, progress=NoProgress())) == []
        assert found in (1, 3), at
        assert answer.made is None or found == 3
        seen.add(found)
        # Again: it is finished, or was; and nothing that was left lying about stays for ever.
        again = server.ask(Request(str(workspace), "import", str(bundle)))
        assert again.error is None
        if at % 7 == 0:
            assert _state(workspace) == 3
    assert seen == {1, 3}


@pytest.mark.requirement("RL-1")
def test_an_import_killed_at_random_instants_is_there_whole_or_not_at_all(
    server: CrashServer, bundle: Path, tmp_path: Path, rng: random.Random
) -> None:
    for number in range(1, 13):
        workspace = _target(tmp_path, number)
        for _ in range(3):
            after_s = rng.uniform(0.001, 0.04)
            server.ask(Request(str(workspace), "import", str(bundle), after_s=after_s))
            with composed(workspace) as opened:
                vault = opened.engine.vault
                assert len(list(all_checkpoints(vault.catalog))) in (1, 3)
                assert list(run_checks(vault, data=True, progress=NoProgress())) == []
        assert server.ask(Request(str(workspace), "import", str(bundle))).error is None
        assert _state(workspace) >= 3


def test_what_a_killed_import_left_is_collected(
    server: CrashServer, bundle: Path, tmp_path: Path
) -> None:
    workspace = _target(tmp_path)
    calls = server.ask(Request(str(_target(tmp_path, 1)), "import", str(bundle))).calls
    with composed(workspace) as opened:
        alone = opened.engine.vault.objects.count()
    left = []
    for at in range(calls // 2, calls + 1):
        with composed(workspace) as opened:
            if len(list(all_checkpoints(opened.engine.vault.catalog))) > 1:
                break
        server.ask(Request(str(workspace), "import", str(bundle), at=at))
        with composed(workspace) as opened:
            vault = opened.engine.vault
            if len(list(all_checkpoints(vault.catalog))) == 1:
                left.append(vault.objects.count() - alone)
                with vault.lock.hold():
                    collect(vault)
                assert vault.objects.count() == alone
    assert max(left) > 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_an_import_on_a_failing_disk_says_so_and_adds_nothing(
    code: int, bundle: Path, tmp_path: Path
) -> None:
    counted = FaultyFilesystem(LocalFilesystem(), {})
    with composed(_target(tmp_path), fs=counted) as opened:
        import_bundle(opened.engine.vault, ImportRequest(bundle, foreign=True))
    for number in _fallible(counted):
        workspace = _target(tmp_path, number)
        faults: dict[int, Fault] = {number: Fail(code)}
        expected = 3
        try:
            with composed(workspace, fs=FaultyFilesystem(LocalFilesystem(), faults)) as opened:
                import_bundle(opened.engine.vault, ImportRequest(bundle, foreign=True))
        except HoldfastError:
            expected = 1
        with composed(workspace) as opened:
            assert len(list(all_checkpoints(opened.engine.vault.catalog))) == expected, number
        if number % 9 == 0:
            assert _state(workspace) >= expected


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
@strides(7)
def test_an_import_whose_databases_fail_at_any_write_adds_nothing(
    error: type[apsw.Error], bundle: Path, tmp_path: Path, stride: int
) -> None:
    with SqliteFaults(0) as counting, composed(_target(tmp_path)) as opened:
        import_bundle(opened.engine.vault, ImportRequest(bundle, foreign=True))
    writes = counting.changes
    assert writes > 5
    for number in range(1, writes + 1, stride):
        workspace = _target(tmp_path, number)
        try:
            with SqliteFaults(number, error), composed(workspace) as opened:
                import_bundle(opened.engine.vault, ImportRequest(bundle, foreign=True))
        except HoldfastError:
            pass
        with composed(workspace) as opened:
            assert len(list(all_checkpoints(opened.engine.vault.catalog))) in (1, 3)
            assert list(run_checks(opened.engine.vault, data=True, progress=NoProgress())) == []


@strides(3)
def test_an_export_that_dies_or_fails_at_any_call_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, stride: int
) -> None:
    workspace = _target(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    target = out / "bundle"

    def export(fs: FaultyFilesystem) -> None:
        with composed(workspace, fs=fs) as opened:
            selection = select_sessions(opened.engine.vault, [SESSION])
            export_to_file(opened.engine.vault, selection, target, replace=True)

    counted = FaultyFilesystem(LocalFilesystem(), {})
    export(counted)
    for number in range(1, len(counted.calls) + 1, stride):
        for fault in (Fail(errno.ENOSPC), Kill(), Kill(after=True)):
            target.write_bytes(b"old")
            if isinstance(fault, Fail) and number not in _fallible(counted):
                continue
            fs = FaultyFilesystem(LocalFilesystem(), {number: fault})
            failed = False
            try:
                export(fs)
            except HoldfastError:
                failed = True
            except Killed:
                pass
            finally:
                fs.release()
            content = target.read_bytes()
            assert content == b"old" or content.startswith(b"HFBUNDLE"), number
            assert content == b"old" or not failed, number
            if content != b"old":
                with composed(workspace) as opened:
                    import_bundle(opened.engine.vault, ImportRequest(target))
            if isinstance(fault, Fail):
                assert [path.name for path in out.iterdir()] == ["bundle"], number
    export(FaultyFilesystem(LocalFilesystem(), {}))
    assert [path.name for path in out.iterdir()] == ["bundle"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_an_export_that_fails_at_any_call_leaves_no_file(tmp_path: Path, code: int) -> None:
    workspace = _target(tmp_path)
    out = tmp_path / "out"
    out.mkdir()

    def export(fs: FaultyFilesystem) -> None:
        with composed(workspace, fs=fs) as opened:
            selection = select_sessions(opened.engine.vault, [SESSION])
            export_to_file(opened.engine.vault, selection, out / "bundle", replace=False)

    counted = FaultyFilesystem(LocalFilesystem(), {})
    export(counted)
    (out / "bundle").unlink()
    failures = 0
    for number in _fallible(counted):
        try:
            export(FaultyFilesystem(LocalFilesystem(), {number: Fail(code)}))
        except HoldfastError:
            failures += 1
            assert list(out.iterdir()) == [], number
        else:
            (out / "bundle").unlink()
    assert failures > 3

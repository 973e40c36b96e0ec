"""A disk budget that is used up never ends protection (ST-3)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.local.objects.writer import LocalObjectWriter
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.checkpoints import Checkpoint, Kind, SkipReason
from holdfast.domain.ids import Digest, SessionId
from holdfast.domain.intent import make_intent
from holdfast.domain.outcomes import SaveOutcome
from holdfast.engine.repair.check import run_checks
from holdfast.engine.retention.cleanup import cleanup
from holdfast.engine.retention.deletion import delete
from holdfast.engine.retention.eviction import evict, over_budget
from holdfast.engine.sessions.approval import approve
from holdfast.engine.settings import set_setting
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.progress import NoProgress
from tests.support.clocks import DAY_NS
from tests.support.composition import SESSION, Composed, SteppedClock, composed, configure
from tests.support.hostile_trees import fill, noise
from tests.support.tree_hash import describe

pytestmark = pytest.mark.requirement("ST-3")

BUDGET = 4_000_000


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "project"
    fill(workspace / "source.py", b"1")
    configure(workspace, budget=BUDGET)
    return workspace


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(time.time_ns())


@pytest.fixture
def opened(workspace: Path, clock: SteppedClock) -> Iterator[Composed]:
    with composed(workspace, clock=clock) as opened:
        yield opened
        assert not list(run_checks(opened.engine.vault, data=True, progress=NoProgress()))


def save(
    opened: Composed, reason: str = "why", kind: Kind = Kind.TOOL, session: str = "s"
) -> SaveOutcome:
    return opened.engine.save(SessionId(session), make_intent(reason), kind=kind)


def left_out(outcome: SaveOutcome) -> list[bytes]:
    return [skip.path for skip in outcome.skipped if skip.reason is SkipReason.OVER_BUDGET]


def kept_reasons(opened: Composed) -> list[str]:
    return [one.intent.reasoning for one in all_checkpoints(opened.engine.vault.catalog)]


def packs(opened: Composed) -> dict[str, int]:
    found = (opened.store.directory / "objects/packs").iterdir()
    return {path.name: path.stat().st_size for path in found}


def test_a_file_that_does_not_fit_is_left_out_and_the_rest_is_saved(
    opened: Composed, workspace: Path
) -> None:
    save(opened, "at first")
    fill(workspace / "large", noise(5_000_000))
    fill(workspace / "source.py", b"twenty bytes or less")
    outcome = save(opened)
    assert left_out(outcome) == [b"large"]
    assert outcome.checkpoint.partial
    assert (
        "1 file (5.0 MB) does not fit into the disk budget and is not saved: large"
        in (outcome.warnings[-1])
    )
    assert "holdfast cleanup" in outcome.warnings[-1]
    fill(workspace / "source.py", b"3")
    again = save(opened)
    assert left_out(again) == [b"large"]
    assert not any("does not fit" in warning for warning in again.warnings), "said once"
    opened.restore(outcome.checkpoint.id)
    assert (workspace / "source.py").read_bytes() == b"twenty bytes or less"


@pytest.mark.requirement("RB-4")
def test_a_restore_never_touches_what_had_no_room(opened: Composed, workspace: Path) -> None:
    first = save(opened, "without it").checkpoint
    fill(workspace / "large", noise(5_000_000))
    second = save(opened, "too large").checkpoint
    fill(workspace / "large", noise(5_000_000, 7))
    fill(workspace / "source.py", b"3")
    state = describe(workspace)
    for target in (second, first):
        outcome = opened.restore(target.id)
        assert outcome.verified
        assert b"large" in {one.path for one in outcome.kept}
        assert describe(workspace)[b"large"] == state[b"large"]


def test_a_tree_larger_than_the_budget_is_saved_once_without_its_largest_files(
    workspace: Path, clock: SteppedClock
) -> None:
    for number in range(12):
        fill(workspace / f"data/{number:02}", noise(500_000 + number, number))
    with composed(workspace, clock=clock) as opened:
        outcome = save(opened, "at first")
        missing = left_out(outcome)
        assert missing[-1] == b"data/11"
        assert 4 <= len(missing) <= 7
        assert opened.store.space.size_bytes() <= BUDGET
        before = packs(opened)
        for number in range(3):
            fill(workspace / "source.py", b"%d" % number)
            assert left_out(save(opened)) == missing
        assert sum(packs(opened).values()) < sum(before.values()) + 100_000
        assert packs(opened).keys() == before.keys()
    # A process that remembers nothing decides alike, and writes nothing that it throws away.
    (opened.store.directory / "stat-cache.db").unlink()
    with composed(workspace, clock=clock) as opened:
        assert left_out(save(opened, "later")) == missing
        assert packs(opened).keys() == before.keys()


class Written:
    """Bytes of new objects that any writer of a store was given, kept or thrown away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        add = LocalObjectWriter.add

        def counted(writer: LocalObjectWriter, digest: Digest, data: bytes, **named: Any) -> bool:
            is_new = add(writer, digest, data, **named)
            self.bytes += len(data) if is_new else 0
            return is_new

        monkeypatch.setattr(LocalObjectWriter, "add", counted)


@pytest.mark.parametrize("budget", [4_000_000, 100_000_000], ids=["small", "large"])
def test_a_first_save_is_measured_before_anything_is_written(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, budget: int
) -> None:
    configure(workspace, budget=budget)
    size = budget // 8
    for number in range(12):
        with open(workspace / f"{number:02}.bin", "wb") as file:
            file.truncate(size + number)  # sparse, and equal in nothing but their holes
            file.write(b"%d" % number)
    written = Written(monkeypatch)
    with composed(workspace) as opened:
        outcome = save(opened, "at first")
        assert [path[:2] for path in left_out(outcome)] == [b"07", b"08", b"09", b"10", b"11"]
        assert written.bytes <= budget, "nothing was written and thrown away"
        written.bytes = 0
        for number in range(3):
            fill(workspace / "source.py", b"%d" % number)
            save(opened)
        assert written.bytes < 5 * size + 100_000, "later saves write what fits now, once"


def test_a_large_change_that_fits_is_written_once(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(workspace, budget=100_000_000)
    monkeypatch.setattr("holdfast.engine.save.workspace_tree.UNMEASURED_BYTES", 1_000_000)
    with composed(workspace) as opened:
        save(opened, "at first")
        written = Written(monkeypatch)
        for build in range(3):
            fill(workspace / "bundle.js", noise(4_000_000, build))
            assert not left_out(save(opened))
            assert written.bytes < (build + 1) * 4_100_000


def test_a_generated_file_does_not_use_up_the_room_of_edits(
    opened: Composed, workspace: Path
) -> None:
    states: list[tuple[Checkpoint, bytes]] = []
    for build in range(40):
        fill(workspace / "bundle.js", noise(300_000, build))
        fill(workspace / "source.py", b"edit %d" % build)
        states.append((save(opened, f"build {build}").checkpoint, b"edit %d" % build))
    assert opened.store.space.size_bytes() <= BUDGET + 1_000_000  # logs of its databases included
    for checkpoint, source in states:
        opened.restore(checkpoint.id, b"source.py")
        assert (workspace / "source.py").read_bytes() == source


def test_what_the_store_has_is_saved_however_large(opened: Composed, workspace: Path) -> None:
    content = noise(2_000_000)
    fill(workspace / "large", content)
    first = save(opened).checkpoint
    fill(workspace / "large", noise(2_500_000, 5))
    assert left_out(save(opened)) == [b"large"]
    fill(workspace / "large", content)
    fill(workspace / "copy", content)
    last = save(opened)
    assert left_out(last) == []
    assert not last.checkpoint.partial
    (workspace / "copy").unlink()
    opened.restore(last.checkpoint.id)
    assert (workspace / "copy").read_bytes() == content
    assert first.tree != last.checkpoint.tree


def test_a_database_is_left_out_with_its_log(opened: Composed, workspace: Path) -> None:
    save(opened)
    with closing(sqlite3.connect(workspace / "shop.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE goods (content BLOB)")
        database.execute("INSERT INTO goods VALUES (randomblob(5000000))")
        database.commit()
        outcome = save(opened)
        assert set(left_out(outcome)) == {b"shop.db", b"shop.db-wal"}


def test_what_fits_again_is_saved_again(opened: Composed, workspace: Path) -> None:
    save(opened)
    fill(workspace / "large", noise(3_000_000))
    fill(workspace / "other", noise(2_000_000, 1))
    assert left_out(save(opened)) == [b"large"]
    (workspace / "other").unlink()
    fill(workspace / "large", noise(1_000_000, 2))
    outcome = save(opened)
    assert left_out(outcome) == []
    fill(workspace / "large", b"")
    opened.restore(outcome.checkpoint.id)
    assert (workspace / "large").read_bytes() == noise(1_000_000, 2)


def test_expired_and_then_old_automatic_states_go_first(
    opened: Composed, workspace: Path, clock: SteppedClock
) -> None:
    save(opened, "initial of old", Kind.INITIAL, "old")
    for number in range(6):
        fill(workspace / "large", noise(400_000, number))
        save(opened, f"old {number}", session="old")
        clock.now += DAY_NS // 24
    clock.now += 3 * DAY_NS
    save(opened, "initial of new", Kind.INITIAL, "new")
    for number in range(6):
        fill(workspace / "large", noise(400_000, 100 + number))
        outcome = save(opened, f"new {number}", session="new")
        assert left_out(outcome) == []
        assert opened.store.space.size_bytes() <= BUDGET
    assert [one for one in kept_reasons(opened) if one.startswith("new")] == [
        f"new {number}" for number in range(6)
    ]
    assert "initial of old" in kept_reasons(opened)
    assert "old 5" in kept_reasons(opened), "HEAD of a session that may go on"
    assert "old 0" not in kept_reasons(opened)


def test_of_one_day_the_states_with_large_files_go_first(
    opened: Composed, workspace: Path, clock: SteppedClock
) -> None:
    save(opened, "initial", Kind.INITIAL, "old")
    for number in range(5):
        fill(workspace / "source.py", b"small %d" % number)
        save(opened, f"small {number}", session="old")
    for number in range(6):
        fill(workspace / "large", noise(500_000, number))
        save(opened, f"large {number}", session="old")
    (workspace / "large").unlink()
    save(opened, "HEAD of old", session="old")
    clock.now += 3 * DAY_NS
    fill(workspace / "new", noise(2_000_000, 50))
    outcome = save(opened, "new", session="new")
    assert left_out(outcome) == []
    assert any("old automatic checkpoint" in warning for warning in outcome.warnings)
    assert [one for one in kept_reasons(opened) if one.startswith("small")] == [
        f"small {number}" for number in range(5)
    ]
    assert len([one for one in kept_reasons(opened) if one.startswith("large")]) < 6


def test_what_only_ended_sessions_hold_goes_after_that_and_what_people_chose_never(
    opened: Composed, workspace: Path, clock: SteppedClock
) -> None:
    engine = opened.engine
    for number, how in enumerate(["nothing", "named", "annotated", "approved", "manual"]):
        session = SessionId(how)
        fill(workspace / "large", noise(400_000, number))
        name = "kept" if how == "named" else None
        kind = Kind.MANUAL if how == "manual" else Kind.INITIAL
        made = engine.save(session, make_intent(how, name=name), kind=kind).checkpoint
        if how == "annotated":
            engine.vault.story.annotate(
                session, made.id, "good", author=None, at_ns=clock.now, number=None
            )
        if how == "approved":
            fill(workspace / "source.py", b"approved")
            approve(engine, session, "approved by a person")
        clock.now += 9 * DAY_NS
    fill(workspace / "large", noise(3_500_000, 99))
    outcome = save(opened, "too much", session="new")
    assert left_out(outcome) == [b"large"]
    assert kept_reasons(opened) == [
        "named",
        "annotated",
        "approved by a person",
        "manual",
        "too much",
    ]
    session_row = engine.vault.catalog.session(SessionId("nothing"))
    assert session_row is not None
    assert session_row.head is None
    fill(workspace / "source.py", b"2")
    assert save(opened, "goes on", session="nothing").checkpoint.parent is None


def test_a_person_may_let_chosen_checkpoints_of_ended_sessions_go(
    opened: Composed, workspace: Path, clock: SteppedClock
) -> None:
    for number in range(3):
        fill(workspace / "large", noise(900_000, number))
        save(opened, f"manual {number}", Kind.MANUAL, session=f"{number}")
        clock.now += 9 * DAY_NS
    assert over_budget(opened.engine) == []
    set_setting(opened.engine, "budget", 2_000_000)
    with composed(workspace, clock=clock) as smaller:
        going = over_budget(smaller.engine)
        assert [one.intent.reasoning for one in going] == ["manual 0", "manual 1"]
        deleted, freed = evict(smaller.engine, going)
        assert deleted == 2
        assert freed > 1_700_000
        assert kept_reasons(smaller) == ["manual 2"]
        assert over_budget(smaller.engine) == []


def test_what_a_person_agreed_to_stays_if_its_session_went_on_meanwhile(
    opened: Composed, workspace: Path, clock: SteppedClock
) -> None:
    for number in range(3):
        fill(workspace / "large", noise(900_000, number))
        save(opened, f"manual {number}", Kind.MANUAL, session=f"{number}")
        clock.now += 9 * DAY_NS
    set_setting(opened.engine, "budget", 1_200_000)
    with composed(workspace, clock=clock) as smaller:
        going = over_budget(smaller.engine)
        fill(workspace / "source.py", b"while the question stood on the screen")
        save(smaller, "goes on", session="0")
        assert evict(smaller.engine, going)[0] == len(going) - 1
        assert kept_reasons(smaller)[0] == "manual 0"
        assert evict(smaller.engine, going)[0] == 0


def test_nothing_of_a_recent_session_goes_however_full_the_budget_is(
    opened: Composed, workspace: Path, clock: SteppedClock
) -> None:
    for number in range(12):
        fill(workspace / "large", noise(500_000, number))
        fill(workspace / "source.py", b"%d" % number)
        save(opened, f"{number}", session="a")
    clock.now += DAY_NS - 1
    for number in range(12, 15):
        fill(workspace / "source.py", b"%d" % number)
        save(opened, f"{number}", session="b")
    assert kept_reasons(opened) == [str(number) for number in range(15)]


def test_all_stores_together_have_a_budget(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    fill(tmp_path / "config/holdfast/config.toml", b'total_budget = "3 MB"\n')
    other = tmp_path / "other"
    fill(other / "large", noise(1_500_000))
    with composed(other) as opened:
        assert left_out(save(opened)) == []
        save(opened, "tells the others what it takes")
    fill(workspace / "large", noise(2_000_000, 1))
    fill(workspace / "source.py", b"2")
    with composed(workspace) as opened:
        outcome = save(opened)
        assert left_out(outcome) == [b"large"]
        assert "total_budget" in outcome.warnings[-1]
        opened.restore(outcome.checkpoint.id)
    assert outcome.checkpoint.session_id == SESSION


def test_the_budget_of_all_stores_is_20_gb_unless_the_user_sets_another(opened: Composed) -> None:
    assert opened.engine.vault.settings.total_budget == 20 * 10**9


def test_nearing_the_budget_of_all_stores_warns(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    fill(tmp_path / "config/holdfast/config.toml", b'total_budget = "4 MB"\n')
    other = tmp_path / "other"
    fill(other / "large", noise(3_100_000))
    with composed(other) as opened:
        assert left_out(save(opened)) == []
        assert "all stores together have used" in save(opened, "again").warnings[-1]
    with composed(workspace) as opened:
        (warning,) = save(opened).warnings
    assert warning.startswith("all stores together have used ")
    assert "total_budget" in warning


def test_where_all_stores_have_too_much_those_not_used_for_longest_give_room_back(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: SteppedClock
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    other = tmp_path / "other"
    fill(other / "source.py", b"1")
    clock.now -= 10 * DAY_NS
    with composed(other, clock=clock) as opened:
        save(opened, "initial", Kind.INITIAL)
        for number in range(5):
            fill(other / "large", noise(400_000, number))
            save(opened, f"{number}", Kind.RISKY)
        (other / "large").unlink()
        save(opened, "by hand", Kind.MANUAL)
        before = opened.store.space.size_bytes()
    fill(tmp_path / "config/holdfast/config.toml", b"total_budget = %d" % (before + 500_000))
    fill(workspace / "large", noise(1_000_000, 9))
    with open_workspace(workspace, create=False) as here:
        outcome = here.engine.save(SESSION, make_intent("now"), kind=Kind.TOOL)
        assert left_out(outcome) == []
    with open_workspace(other, create=False) as there:
        assert there.store.space.size_bytes() < before - 500_000
        reasons = [one.intent.reasoning for one in all_checkpoints(there.engine.vault.catalog)]
        assert reasons[0] == "initial"
        assert reasons[-1] == "by hand"
        assert not list(run_checks(there.engine.vault, data=True, progress=NoProgress()))


@pytest.mark.requirement("RL-8")
def test_a_checkpoint_that_another_process_deletes_between_the_steps_of_a_cleanup_is_no_damage(
    opened: Composed, workspace: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.retention.cleanup.STEP_BYTES", 1)
    monkeypatch.setattr("holdfast.engine.retention.cleanup.COLLECT_AT_BYTES", 1)
    for number in range(4):
        fill(workspace / "large", noise(300_000, number))
        save(opened, f"{number}")
    fill(workspace / "large", noise(300_000, 9))
    chosen = save(opened, "chosen", Kind.MANUAL).checkpoint
    fill(workspace / "large", noise(300_000, 10))
    save(opened, "last")
    clock.now += 40 * DAY_NS

    class Meanwhile(NoProgress):
        deleted = False

        def advance(self, phase: str, done: int, total: int | None) -> None:
            if not self.deleted:
                self.deleted = True
                with composed(workspace, clock=clock) as other:
                    assert delete(other.engine, chosen).freed_bytes > 0

    meanwhile = Meanwhile()
    outcome = cleanup(opened.engine, meanwhile)
    assert meanwhile.deleted
    assert outcome.warnings == ()
    assert kept_reasons(opened) == ["0", "last"]

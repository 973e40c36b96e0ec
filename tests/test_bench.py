"""A short slice of the benchmark: work is proven before it is compared, and not compared otherwise.

Nothing here looks at how long anything took.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import edits, growth, rows, table, trees, verify, watched_saves
from bench import operations as ops
from bench.__main__ import main
from bench.contest import Book
from bench.hook_process import HookProcess
from bench.measure import Measurement, Refusal, ratio
from bench.operations import Effort, Trial
from bench.peers import HOLDFAST, KINDS, REFERENCE, WATCHED
from bench.peers.contract import PeerKind, Ref
from bench.peers.holdfast_watched import HoldfastWatched
from bench.peers.shadow_git import ShadowGit
from bench.processes import Failed, plain_surroundings

pytestmark = pytest.mark.in_memory

FILES = 60
ONE_ROUND = Effort(rounds=0, first_saves=1, patience_s=0.0)
PRESENT = tuple(kind for kind in KINDS if kind.version() is not None)


@contextmanager
def tree_in(place: Path) -> Iterator[Path]:
    with plain_surroundings(place):
        trees.generate(place / "base", FILES)
        yield place / "base"


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    with tree_in(tmp_path) as base:
        yield base


def trial(base: Path, *kinds: PeerKind) -> Book:
    return Trial(base, base.with_name("trial"), kinds, ONE_ROUND).run()


def kind_of(peer: type[ShadowGit]) -> PeerKind:
    return PeerKind("odd", "odd", peer, REFERENCE.version)


@pytest.fixture(scope="session")
def place_of_trials(
    memory_of_the_run: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if memory_of_the_run is None:
        return tmp_path_factory.mktemp("trials")
    place = memory_of_the_run / "trials"
    place.mkdir()
    return place


@pytest.fixture(scope="session")
def book_of_all(place_of_trials: Path) -> Book:
    """Every tool that is present. Tests only read it, as they do the next one."""
    (place_of_trials / "all").mkdir()
    with tree_in(place_of_trials / "all") as base:
        return trial(base, *PRESENT)


@pytest.fixture(scope="session")
def book_of_one_save(place_of_trials: Path) -> Book:
    """The reference, and a tool that saves only once."""
    (place_of_trials / "once").mkdir()
    with tree_in(place_of_trials / "once") as base:
        return trial(base, REFERENCE, kind_of(SavesOnlyOnce))


def printed(book: Book) -> str:
    lines = list(rows.of_trial("60", FILES, book))
    return table.build(lines, ["odd"], []).plain()


class LeavesFilesBehind(ShadowGit):
    """Restores what was there and forgets to remove what was not."""

    def restore(self, ref: Ref) -> None:
        self._repository.git("read-tree", ref)
        self._repository.git("checkout-index", "-a", "-f")


class SavesOnlyOnce(ShadowGit):
    """Quick because it stores nothing after the first time."""

    def save(self) -> Ref:
        return Ref(self._parent) if self._parent else super().save()


class Breaks(ShadowGit):
    """Cannot restore at all."""

    def restore(self, ref: Ref) -> None:
        raise Failed("out of order")


@pytest.mark.requirement("PF-1", "PF-2", "PF-3", "PF-7")
def test_every_tool_that_is_present_does_every_operation_or_is_said_not_to(
    book_of_all: Book,
) -> None:
    for operation in ops.OPERATIONS:
        for kind in PRESENT:
            measured = book_of_all.pages[operation][kind.title]
            assert measured.samples or not measured.offered, (operation, kind.title)


@pytest.mark.requirement("PF-1", "PF-2", "PF-3", "PF-6")
def test_holdfast_and_the_reference_do_the_same_work_so_that_their_ratio_is_given(
    book_of_all: Book,
) -> None:
    for operation in ops.OPERATIONS:
        page = book_of_all.pages[operation]
        figure = ratio(page[HOLDFAST.title], page[REFERENCE.title])
        assert isinstance(figure, float), (operation, figure)
    assert "--[" not in printed(book_of_all)


@pytest.mark.requirement("PF-3")
def test_a_restore_that_leaves_a_file_behind_gets_no_ratio_but_a_footnote(base: Path) -> None:
    book = trial(base, REFERENCE, kind_of(LeavesFilesBehind))
    page = book.pages[ops.BACK_FIVE]
    assert isinstance(ratio(page["odd"], page[REFERENCE.title]), Refusal)
    assert isinstance(ratio(page[REFERENCE.title], page["odd"]), Refusal)
    text = printed(book)
    assert "--[" in next(line for line in text.splitlines() if f"  {ops.BACK_FIVE}  " in line)
    assert "odd: 2 left over (new_0_" in text


@pytest.mark.requirement("PF-1")
def test_a_save_that_stores_something_else_gets_no_ratio(book_of_one_save: Book) -> None:
    assert book_of_one_save.pages[ops.FIRST]["odd"].sound
    assert book_of_one_save.pages[ops.NOTHING]["odd"].sound
    for operation in (ops.FIVE, ops.SHARE):
        page = book_of_one_save.pages[operation]
        assert isinstance(ratio(page["odd"], page[REFERENCE.title]), Refusal)
        assert page["odd"].faults[0].startswith("saved wrongly: ")


def test_a_wrong_answer_to_a_diff_gets_no_ratio(book_of_one_save: Book) -> None:
    assert book_of_one_save.pages[ops.DIFF_FIVE]["odd"].faults == ["5 missed, 0 invented"]


def test_a_tool_that_fails_is_named_and_the_others_go_on(base: Path) -> None:
    book = trial(base, kind_of(Breaks), REFERENCE)
    assert book.pages[ops.BACK_FIVE]["odd"].faults == ["out of order"]
    assert book.pages[ops.SHARE]["odd"].faults == ["out of order"]
    assert all(book.pages[operation][REFERENCE.title].sound for operation in ops.OPERATIONS)


@pytest.mark.requirement("PF-4")
def test_store_sizes_are_compared_after_the_stored_states_are_proven(base: Path) -> None:
    book = growth.grow(base, base.with_name("growth"), [HOLDFAST, REFERENCE], 6, collect=True)
    page = book.pages[growth.named(6).disk]
    assert {HOLDFAST.title, REFERENCE.title, growth.COLLECTED} <= page.keys()
    assert all(measured.sound for measured in page.values())


def test_a_store_that_lost_a_state_gets_no_size_ratio(base: Path) -> None:
    kinds = [kind_of(SavesOnlyOnce), REFERENCE]
    book = growth.grow(base, base.with_name("growth"), kinds, 6)
    for name in (growth.named(6).disk, growth.named(6).apparent):
        page = book.pages[name]
        assert isinstance(ratio(page["odd"], page[REFERENCE.title]), Refusal)


def test_predicted_trees_are_what_the_edits_make(base: Path) -> None:
    before = verify.fingerprint(base)
    changes = edits.burst(base, before, 10, "prediction")
    edits.apply(base, changes)
    assert verify.difference(edits.after(before, changes), verify.fingerprint(base)) is None


def test_a_tree_repaired_by_copying_is_equal_again(base: Path, tmp_path: Path) -> None:
    before = verify.fingerprint(base)
    copy = tmp_path / "copy"
    trees.copy(base, copy)
    edits.apply(copy, edits.burst(base, before, 10, "mending"))
    (copy / "stray").mkdir()
    os.symlink("nowhere", copy / "stray" / "link")
    verify.mend(copy, base, before, verify.fingerprint(copy))
    assert verify.difference(before, verify.fingerprint(copy)) is None


@pytest.mark.parametrize("change", ["bytes", "mode", "name", "kind"])
def test_the_witness_sees_every_kind_of_difference(base: Path, change: str) -> None:
    before = verify.fingerprint(base)
    victim = base / os.fsdecode(trees.list_files(base)[0])
    if change == "bytes":
        content = victim.read_bytes()
        victim.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif change == "mode":
        victim.chmod(0o600)
    elif change == "name":
        victim.rename(victim.with_name("renamed"))
    else:
        victim.unlink()
        victim.symlink_to("elsewhere")
    assert verify.difference(before, verify.fingerprint(base)) is not None


def test_p95_is_the_sample_that_95_of_100_do_not_exceed() -> None:
    assert Measurement(samples=[float(n) for n in range(100, 0, -1)]).p95 == 95.0
    assert Measurement(samples=[3.0]).p95 == 3.0


def test_a_bound_on_the_95th_percentile_is_not_judged_on_few_samples() -> None:
    few = {HOLDFAST.title: Measurement(samples=[0.01] * 39)}
    many = {HOLDFAST.title: Measurement(samples=[0.01] * 40)}
    bound = rows.Bound("PF-5", 0.1, "p95")
    assert isinstance(rows.Row("1,000", "save", few, bound=bound).judge(), Refusal)
    assert rows.Row("1,000", "save", many, bound=bound).judge() is True


def test_generated_trees_are_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        trees.generate(tmp_path / name, FILES)
    one, two = (verify.fingerprint(tmp_path / name) for name in ("one", "two"))
    assert verify.difference(one, two) is None
    assert sum(entry.kind == "file" for entry in one.values()) == FILES


def test_the_command_prints_one_table_and_writes_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "benchmarks.md"
    given = ["--quick", "--sizes", "60", "--rounds", "1", "--peers", "git,cline", "--no-real"]
    assert main([*given, "--work", str(tmp_path), "--markdown", str(report)]) == 0
    text = capsys.readouterr().out
    assert "PF-2 <= 0.4x" in text
    assert "Cline 3" in text
    written = report.read_text(encoding="utf-8")
    assert "## How it is measured" in written
    assert ops.FIVE in written
    assert [path.name for path in tmp_path.iterdir()] == ["benchmarks.md"]


@pytest.mark.requirement("PF-1")
def test_a_watched_save_has_a_line_and_a_bound_of_its_own(book_of_all: Book) -> None:
    lines = {row.operation: row for row in rows.of_trial("10,000", 10_000, book_of_all)}
    watched = lines[f"{ops.FIVE}, watched"]
    assert watched.bound == rows.Bound("PF-1", 0.1)
    assert watched.own is book_of_all.pages[ops.FIVE][WATCHED.title]
    assert watched.own.sound
    assert isinstance(watched.judge(), bool)


@pytest.mark.requirement("HK-3")
def test_the_hook_is_timed_against_the_bare_interpreter_and_its_checkpoint_proven(
    base: Path,
) -> None:
    work = base.with_name("processes")
    work.mkdir()
    book = HookProcess(base, work).measure(rounds=2)
    whole, *others = rows.of_hook("60", 10_000, book)
    assert len(others) == 5
    for row in (whole, *others):
        assert row.own is not None
        assert row.own.faults == []
        assert len(row.own.samples) == 2
        assert row.judge() in (True, False)
    assert whole.floor is not None


@pytest.mark.requirement("PF-1")
def test_many_watched_saves_give_the_usual_and_the_slowest_figure_once_they_are_proven(
    base: Path, tmp_path: Path
) -> None:
    (tmp_path / "watched").mkdir()
    book = watched_saves.measure(base, tmp_path / "watched", 12)
    usual, slowest = (book.pages[o][WATCHED.title] for o in (watched_saves.P50, watched_saves.P99))
    assert usual.faults == slowest.faults == []
    assert usual.median <= slowest.median
    lines = table.build(list(rows.of_watched("60", book)), [WATCHED.title], []).plain()
    assert watched_saves.P50 in lines
    assert watched_saves.P99 in lines


@pytest.mark.requirement("PF-1")
def test_watched_saves_that_were_wrong_are_said_to_be(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HoldfastWatched, "contents", lambda *_: {})
    (tmp_path / "watched").mkdir()
    book = watched_saves.measure(base, tmp_path / "watched", 1)
    assert "saved wrongly" in book.pages[watched_saves.P99][WATCHED.title].faults[0]

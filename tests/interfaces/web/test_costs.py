"""What an answer costs follows the page that it holds, and not the length of the history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

from bench.finding import fill as fill_history
from holdfast import SessionCheckpointer
from holdfast.domain.ids import Digest
from holdfast.domain.trees.tree import Tree
from holdfast.engine.vault import Vault
from tests.behind_the_api import engine_of
from tests.interfaces.web.client import Client, running
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("PF-9")

SESSION = "session-0"
"""The one that has half of the history."""
PLACE = "/api/sessions"
_CHECKPOINTS = f"{PLACE}/{SESSION}/checkpoints"
_SHORT, _LONG = 400, 4_000
_STEPS = 100
"""How many instructions of SQLite's virtual machine are one step."""
_MOST_STEPS = 60
_INSTRUCTIONS_TO_COUNT_ONE = 4
PAGES = {
    "a page of the timeline": f"{_CHECKPOINTS}/timeline?limit=50",
    "a page of checkpoints": f"{_CHECKPOINTS}?limit=50",
    "a checkpoint": f"{_CHECKPOINTS}/HEAD?files=0",
    "a diff": f"{_CHECKPOINTS}/HEAD/diff?with=before",
}


class _Work:
    """Counts what every database that is opened from now on is asked to do."""

    steps = 0

    def watch(self, database: apsw.Connection) -> None:
        database.set_progress_handler(self._count, _STEPS)

    def _count(self) -> bool:
        self.steps += 1
        return False


@contextmanager
def _counted() -> Iterator[_Work]:
    work = _Work()
    apsw.connection_hooks.append(work.watch)
    try:
        yield work
    finally:
        apsw.connection_hooks.remove(work.watch)


class _Cost(NamedTuple):
    """Of an answer: the steps of the databases, and its size."""

    steps: int
    size_bytes: int


def _costs(workspace: Path, checkpoints: int) -> dict[str, _Cost]:
    fill(workspace / "notes.txt", b"one\n")
    with SessionCheckpointer(workspace, SESSION) as session:
        fill_history(engine_of(session), checkpoints, 0)
        fill(workspace / "notes.txt", b"two\n")
        session.checkpoint("the last one")
    with _counted() as work, running(workspace) as client:
        return {name: _cost(client, work, path) for name, path in PAGES.items()}


def _cost(client: Client, work: _Work, path: str) -> _Cost:
    client.get(path)  # so that everything is open
    before = work.steps
    size_bytes = len(client("GET", path).body)
    return _Cost(work.steps - before, size_bytes)


def test_a_page_of_a_long_history_costs_no_more_than_one_of_a_short_one(tmp_path: Path) -> None:
    """Apart from the length of the round, which is counted in an index without reading rows."""
    short, long = (_costs(tmp_path / str(number), number) for number in (_SHORT, _LONG))
    of_the_session = (_LONG - _SHORT) // 2
    counting = of_the_session * _INSTRUCTIONS_TO_COUNT_ONE // _STEPS
    for name in PAGES:
        assert short[name].steps <= _MOST_STEPS, name
        assert long[name].steps <= short[name].steps + counting, name
        assert long[name].size_bytes <= 1.1 * short[name].size_bytes, name


def test_a_checkpoint_of_many_files_is_answered_in_parts(
    client: Client, workspace: Path, session: SessionCheckpointer
) -> None:
    for number in range(1_500):
        fill(workspace / "many" / f"{number:04}", b"x")
    session.checkpoint("many files")
    place = f"{PLACE}/work/checkpoints/HEAD"
    assert len(client.get(f"{place}?files=0")["files"]) == 0
    assert len(client.get(place)["files"]) == 1_000
    page = client.get(f"{place}/diff?with=before")
    assert (len(page["files"]), page["total_files"]) == (50, 1_500)
    assert len(client("GET", f"{place}/diff?with=before").body) < 50_000


def test_a_checkpoint_reads_only_directories_that_differ_from_those_shown_before(
    client: Client,
    workspace: Path,
    session: SessionCheckpointer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(80):
        fill(workspace / f"directory-{number}" / "file", b"x")
    session.checkpoint("many directories")
    fill(workspace / "directory-7" / "file", b"y")
    session.checkpoint("one more change")
    place = f"{PLACE}/work/checkpoints"
    client.get(f"{place}/HEAD^?files=0")
    load, read = Vault.load_tree, list[Digest]()

    def load_tree(self: Vault, digest: Digest) -> Tree:
        read.append(digest)
        return load(self, digest)

    monkeypatch.setattr(Vault, "load_tree", load_tree)
    client.get(f"{place}/HEAD?files=0")
    assert len(read) <= 5

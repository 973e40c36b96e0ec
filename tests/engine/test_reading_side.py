"""Reading needs the reading side of a store only: no lock, no journal, and nothing that writes.

A place that just receives rows and content can then replace the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.story import Role
from holdfast.engine.conversation.conversation import add_message
from holdfast.engine.engine import Engine
from holdfast.engine.history.history import HistoryFilter, history
from holdfast.engine.history.timeline import timeline, workspace_timeline
from holdfast.engine.replay.replay import Replay
from holdfast.engine.restore.plan import read_report
from holdfast.engine.search.search import search
from holdfast.engine.stored_objects import read_content
from holdfast.engine.vault import Vault
from holdfast.engine.why.why import why
from holdfast.ports.catalog import CatalogReader
from holdfast.ports.objects import ObjectReader
from holdfast.ports.search import SearchReader
from holdfast.ports.store import StoreParts
from holdfast.ports.story import StoryReader
from holdfast.values.classes import replace
from tests.support.composition import SESSION, Composed, composed

pytestmark = pytest.mark.both_stores


class Only:
    """Something of which no more can be used than a port has; with none, nothing."""

    def __init__(self, thing: object, port: type | None = None) -> None:
        self._thing = thing
        self._names = {name for kind in port.__mro__ for name in vars(kind)} if port else set()

    def __getattr__(self, name: str) -> Any:
        assert name in self._names, f"reading needs {name}"
        return getattr(self._thing, name)


class ReadingParts(Only):
    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts, StoreParts)
        self.story = Only(parts.story, StoryReader)
        self.search = Only(parts.search, SearchReader)
        self.events = Only(None)


def reading_side(vault: Vault) -> Vault:
    sides: dict[str, Any] = {
        "objects": Only(vault.objects, ObjectReader),
        "catalog": Only(vault.catalog, CatalogReader),
        "parts": ReadingParts(vault.parts),
        "lock": Only(None),
        "journal": Only(None),
        "space": Only(None),
        "stat_cache": Only(None),
    }
    return replace(vault, **sides)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Composed]:
    """Two checkpoints of a file, a restore to the first, and a message."""
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "file.txt").write_text("one\n")
    with composed(workspace) as made:
        first = made.save("begin the login")
        add_message(made.engine.vault, SESSION, Role.USER, "make it two lines")
        (workspace / "file.txt").write_text("one\ntwo\n")
        (workspace / "more.txt").write_text("more\n")
        made.save("two lines for the login", name="two")
        made.restore(first.id)
        search(made.engine.vault, "login", session_id=SESSION)  # so that the index is current
        yield made


def test_history_and_references_are_read(made: Composed) -> None:
    vault = reading_side(made.engine.vault)
    found, more = history(vault, HistoryFilter(SESSION), None)
    assert [one.intent.reasoning for one in found] == ["two lines for the login", "begin the login"]
    assert more == 0
    narrow, _ = history(vault, HistoryFilter(SESSION, paths=[b"more.txt"]), None)
    assert [one.name for one in narrow] == ["two"]
    assert Engine(vault).resolve(SESSION, "two").id == found[0].id
    assert [one.path for one in read_report(vault, found[0])] == [b".holdfast"]


def test_two_checkpoints_are_compared_and_their_files_read(made: Composed) -> None:
    vault = reading_side(made.engine.vault)
    (second, first), _ = history(vault, HistoryFilter(SESSION), None)
    changes = Engine(vault).changes(first, second)
    assert [change.path for change in changes] == [b"file.txt", b"more.txt"]
    contents = {
        entry.name: b"".join(read_content(vault.objects, entry))
        for entry in vault.load_tree(second.tree).files
    }
    assert contents == {b"file.txt": b"one\ntwo\n", b"more.txt": b"more\n"}


def test_the_timeline_is_read(made: Composed) -> None:
    vault = reading_side(made.engine.vault)
    of_session = timeline(vault, SESSION, limit=20, before=None)
    assert len(of_session.events) >= 4
    assert len(workspace_timeline(vault, limit=20, before=None).events) == len(of_session.events)


def test_a_search_finds_what_the_index_has(made: Composed) -> None:
    vault = reading_side(made.engine.vault)
    found = search(vault, "login", session_id=SESSION)
    assert len(found.hits) == 2
    assert found.warnings == ()


def test_lines_are_explained(made: Composed) -> None:
    vault = reading_side(made.engine.vault)
    explained = why(vault, SESSION, b"file.txt", reference="two")
    assert [line.text for line in explained.lines] == [b"one", b"two"]


def test_a_session_is_replayed(made: Composed, tmp_path: Path) -> None:
    vault = reading_side(made.engine.vault)
    start = Engine(vault).resolve(SESSION, "two")
    replay = Replay(vault, SESSION, start, temporary=tmp_path)
    assert [change.path for change in replay.changes()] == [b"file.txt", b"more.txt"]
    replay.back()
    assert [change.path for change in replay.changes()] == [b"file.txt"]

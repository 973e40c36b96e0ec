"""After a purge, each component says in its own words what was not searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.purges import Purged
from holdfast.engine.purge.proof import find_holders
from tests.support.hostile_trees import fill

pytestmark = pytest.mark.requirement("ST-5")

CLUSTER = SimpleNamespace(name="cluster", not_searched="the cluster itself was not searched")


METHODS = "applies capture describe plan concerns restore verify release holders".split()
SEARCHING = SimpleNamespace(
    name="vcs",
    order=1,
    restored_by_default=False,
    modes=("exact",),
    also_searches=("linked",),
    **dict.fromkeys(METHODS, lambda *_, **__: ()),
)


def _told(place: Path, loaded: Sequence[Any], holding: Sequence[str]) -> dict[str, str]:
    with SessionCheckpointer(place, "s") as session:
        session.checkpoint("one")
    with open_workspace(place, create=False) as opened:
        parts: Any = SimpleNamespace(all=lambda: loaded)
        vault = replace(opened.engine.vault, components=parts)
        purged = Purged((), frozenset(), is_whole=True)
        found = find_holders(vault, purged, frozenset(), holding)
    return {holder.where: holder.what for holder in found}


def test_a_component_says_in_its_own_words_what_was_not_searched(tmp_path: Path) -> None:
    fill(tmp_path / "project" / "file", b"1")
    told = _told(tmp_path / "project", [CLUSTER], ["cluster", "unknown"])
    assert told == {
        "cluster": "the cluster itself was not searched",
        "unknown": "data that unknown keeps outside the store was not searched",
    }


def test_data_that_another_component_searched_is_not_reported(tmp_path: Path) -> None:
    fill(tmp_path / "project" / "file", b"1")
    assert _told(tmp_path / "project", [SEARCHING], ["vcs", "linked"]) == {}

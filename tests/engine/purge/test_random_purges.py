"""After any work, purging any path takes that path out of every checkpoint and leaves the rest."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.paths import is_within, to_text
from holdfast.domain.trees.entries import FileEntry, SymlinkEntry
from holdfast.engine.repair.check import run_checks
from holdfast.engine.stored_objects import list_entries, read_content
from holdfast.ports.catalog import all_checkpoints
from holdfast.ports.objects import all_digests
from holdfast.ports.progress import NoProgress
from tests.engine.test_random_work import Work
from tests.support.raw_search import unpacked
from tests.support.strides import UNTIMED
from tests.support.tree_model import State

pytestmark = pytest.mark.requirement("ST-5")


class PurgedWork(Work):
    """Random work that ends with a purge of the path that most checkpoints have."""

    def teardown(self) -> None:
        try:
            states = [self.model.moments[c].state for c in self.model.order]
            paths = sorted(path for state in states for path in state)
            if paths:
                self._purge(max(paths, key=paths.count))
        finally:
            super().teardown()

    def _purge(self, path: bytes) -> None:
        outcome = self.session.purge_paths(to_text(path), keep_shared=True)
        assert outcome.proof.traces == ()
        with open_workspace(self.workspace, create=False) as opened:
            vault = opened.engine.vault
            assert list(run_checks(vault, data=True, progress=NoProgress())) == []
            for row in all_checkpoints(vault.catalog):
                if row.id in self.model.moments:
                    state = self.model.moments[row.id].state
                    kept = {p: n for p, n in state.items() if not is_within(p, path)}
                    self._compare(opened, row.tree, kept)
                names = [p for p, _ in list_entries(vault.load_tree, row.tree)]
                assert not [name for name in names if is_within(name, path)]
            assert set(unpacked(opened.store.directory)) == set(all_digests(vault.objects))

    def _compare(self, opened: object, tree: object, kept: State) -> None:
        vault = opened.engine.vault  # type: ignore[attr-defined]
        found = dict(list_entries(vault.load_tree, tree))  # type: ignore[arg-type]
        assert found.keys() == kept.keys()
        for path, entry in found.items():
            if isinstance(entry, FileEntry):
                content = b"".join(read_content(vault.objects, entry))
                assert hashlib.sha256(content).hexdigest() == kept[path].content
                assert entry.mode == kept[path].mode
            elif isinstance(entry, SymlinkEntry):
                assert entry.target == kept[path].target


@pytest.mark.parametrize("histories", [8, pytest.param(25, marks=UNTIMED)])
def test_any_path_of_any_history_can_be_purged(histories: int) -> None:
    bounded = settings(max_examples=histories, phases=(Phase.explicit, Phase.generate))
    run_state_machine_as_test(PurgedWork, settings=bounded)

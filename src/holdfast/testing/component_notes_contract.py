"""The contracts of `holdfast.ports.component_notes`, as tests."""

from __future__ import annotations

from pathlib import Path

from holdfast.ports.component_notes import AgentStates, ExternalPaths, NestedRepositories


class AgentStatesContract:
    """Subclass it, and say how the states of a store are opened."""

    def open_states(self, directory: Path) -> AgentStates:
        raise NotImplementedError

    def test_states_are_there_until_they_are_replaced(self, tmp_path: Path) -> None:
        states = self.open_states(tmp_path)
        assert not states.exist()
        assert states.load() == {}
        states.replace({"s": {"agent": {"step": 1, "words": ["\u00e4", None]}}})
        states = self.open_states(tmp_path)
        assert states.exist()
        assert states.load() == {"s": {"agent": {"step": 1, "words": ["\u00e4", None]}}}
        states.replace({"t": {}})
        assert states.load() == {"t": {}}


class ExternalPathsContract:
    """Subclass it, and say how the external paths of a store are opened."""

    def open_paths(self, directory: Path) -> ExternalPaths:
        raise NotImplementedError

    def test_a_path_that_is_named_again_is_the_newest(self, tmp_path: Path) -> None:
        paths = self.open_paths(tmp_path)
        assert not paths.exist()
        assert paths.load() == []
        paths.add([b"/a", b"/b\xff", b"/a"])
        assert paths.load() == [b"/a", b"/b\xff"]
        paths.add([b"/a", b"/c"])
        paths = self.open_paths(tmp_path)
        assert paths.exist()
        assert paths.load() == [b"/b\xff", b"/a", b"/c"]

    def test_a_dropped_path_goes_with_all_below_it(self, tmp_path: Path) -> None:
        paths = self.open_paths(tmp_path)
        paths.add([b"/a", b"/a/b", b"/ab", b"/c"])
        paths.drop([b"/a", b"/never named"])
        assert paths.load() == [b"/ab", b"/c"]


class NestedRepositoriesContract:
    """Subclass it, and say how the nested repositories of a store are opened."""

    def open_repositories(self, directory: Path) -> NestedRepositories:
        raise NotImplementedError

    def test_each_repository_is_noted_once(self, tmp_path: Path) -> None:
        repositories = self.open_repositories(tmp_path)
        assert repositories.load() == []
        repositories.add([b"b/.git", b"a\xff/.git"])
        repositories.add([b"b/.git"])
        assert sorted(self.open_repositories(tmp_path).load()) == [b"a\xff/.git", b"b/.git"]

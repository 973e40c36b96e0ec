"""The contract of `holdfast.ports.agent_tools`, as tests: notes about agents' tool calls."""

from __future__ import annotations

from pathlib import Path

from holdfast.ports.agent_tools import (
    LONGEST_CALL_NS,
    RunningTools,
    ToolLog,
    id_digest,
    name_digest,
)


class RunningToolsContract:
    """Subclass it, and define how to open a store's notes. `stranger` is the identity of a live
    process unrelated to the tests; `own` of one that they are part of."""

    stranger: str
    own: str

    def open_tools(self, store: Path) -> RunningTools:
        raise NotImplementedError

    def begin(self, tools: RunningTools, key: str, *, owner: str | None = None) -> None:
        owner = self.stranger if owner is None else owner
        tools.begin(key, owner=owner, session="s", tool="Bash", now_ns=1_000)

    def test_a_tool_runs_from_its_begin_to_its_end(self, tmp_path: Path) -> None:
        tools = self.open_tools(tmp_path)
        assert tools.of_others(1_000) == []
        self.begin(tools, "a")
        (found,) = self.open_tools(tmp_path).of_others(2_000)
        assert found == ("a", 1_000, self.stranger, "s", "Bash", False)
        tools.end("a")
        assert tools.of_others(2_000) == []

    def test_tools_of_the_own_agent_are_not_those_of_others(self, tmp_path: Path) -> None:
        tools = self.open_tools(tmp_path)
        self.begin(tools, "a", owner=self.own)
        assert tools.of_others(2_000) == []

    def test_a_dead_owner_or_a_call_that_is_too_old_does_not_count(self, tmp_path: Path) -> None:
        tools = self.open_tools(tmp_path)
        self.begin(tools, "a", owner="0 never")
        assert tools.of_others(2_000) == []
        self.begin(tools, "b")
        assert len(tools.of_others(1_000 + LONGEST_CALL_NS - 1)) == 1
        assert tools.of_others(1_000 + LONGEST_CALL_NS) == []

    def test_a_tool_that_was_given_up_still_runs(self, tmp_path: Path) -> None:
        tools = self.open_tools(tmp_path)
        self.begin(tools, "a")
        tools.give_up("a")
        (found,) = tools.of_others(2_000)
        assert (found.key, found.waited) == ("a", True)
        tools.end("a")
        assert tools.of_others(2_000) == []

    def test_all_tools_of_a_session_end_at_once(self, tmp_path: Path) -> None:
        tools = self.open_tools(tmp_path)
        self.begin(tools, "a")
        tools.begin("b", owner=self.stranger, session="t", tool="Edit", now_ns=1_000)
        tools.end_all_of("s")
        assert [one.key for one in tools.of_others(2_000)] == ["b"]

    def test_nothing_is_raised_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        tools = self.open_tools(tmp_path / "missing" / "store")
        self.begin(tools, "a")
        tools.give_up("a")
        tools.end("a")
        tools.end_all_of("s")
        assert tools.of_others(2_000) == []


class ToolLogContract:
    """Subclass it, and define how to open a store's log."""

    def open_log(self, store: Path) -> ToolLog:
        raise NotImplementedError

    def begin(self, log: ToolLog, key: str, now_ns: int, session_key: str = "k") -> None:
        log.begin(key, session_key, now_ns=now_ns, session_id="s", tool="Bash", at="c", names=None)

    def test_a_call_is_known_with_its_end(self, tmp_path: Path) -> None:
        log = self.open_log(tmp_path)
        assert log.calls() == []
        log.begin(
            "a", "k", now_ns=1, session_id="s/1", tool="Edit", at="c", names=[b"d/name", b"other"]
        )
        names = (name_digest(b"name"), name_digest(b"other"))
        session = id_digest(b"s/1")
        assert session != id_digest(b"other/1")
        assert log.calls() == [(session, "Edit", "c", 1, None, names, False)]
        log.end("a", 5)
        assert self.open_log(tmp_path).calls() == [(session, "Edit", "c", 1, 5, names, True)]

    def test_calls_are_in_the_order_in_which_they_began(self, tmp_path: Path) -> None:
        log = self.open_log(tmp_path)
        for key, now_ns in (("b", 1), ("a", 2), ("c", 3)):
            self.begin(log, key, now_ns)
        log.end("a", 4)
        assert [(one.begun_ns, one.ended_ns) for one in log.calls()] == [
            (1, None),
            (2, 4),
            (3, None),
        ]

    def test_the_end_of_a_session_ends_its_calls_without_a_report(self, tmp_path: Path) -> None:
        log = self.open_log(tmp_path)
        self.begin(log, "a", 1)
        self.begin(log, "b", 2, "another")
        log.end_all_of("k", 9)
        ends = [(one.ended_ns, one.is_end_reported) for one in log.calls()]
        assert ends == [(9, False), (None, False)]

    def test_looks_that_found_nothing_changed_are_known(self, tmp_path: Path) -> None:
        log = self.open_log(tmp_path)
        self.begin(log, "a", 1)
        log.unchanged("c", 7)
        log.unchanged("d", 8)
        assert log.looks() == [(7, "c"), (8, "d")]

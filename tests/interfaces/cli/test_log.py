"""`holdfast log`: the history, newest first."""

from __future__ import annotations

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.checkpoints import Kind
from holdfast.domain.ids import SessionId
from holdfast.domain.intent import make_intent
from tests.behind_the_api import engine_of
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hostile_trees import fill, git


@pytest.mark.requirement("CL-1")
def test_the_log_is_a_list_newest_first(cli: CommandLine) -> None:
    ids = [cli.save(f"state {number}") for number in range(4)]
    listed = cli.json("log")
    assert [one["id"] for one in listed] == ids[::-1]
    assert [one["is_head"] for one in listed] == [True, False, False, False]
    assert listed[0]["reasoning"] == "state 3"
    assert [one["id"] for one in cli.json("log", "-n", "2")] == ids[:1:-1]
    assert len(cli.json("log", "-n0")) == 4


def test_records_of_restores_are_listed_when_asked_for(cli: CommandLine) -> None:
    cli.save("first", "--name", "first")
    (cli.workspace / "README.md").write_text("changed\n")
    cli.json("restore", "first")
    assert [one["kind"] for one in cli.json("log")] == ["manual"]
    assert [one["kind"] for one in cli.json("log", "--records")] == ["restore", "safety", "manual"]


@pytest.mark.requirement("CL-2")
def test_in_a_pipe_the_log_is_one_plain_line_each(cli: CommandLine) -> None:
    identifier = cli.save("why\nmore of it", "--name", "here", "--confidence", "0.9")
    made = cli.json("log")[0]
    line = f"{identifier} {made['created_at']} manual 0.90 6 +6 ~0 -0 (HEAD) [here] why\n"
    assert cli("log").out == line
    assert cli.process("log").out == line


def test_a_history_without_checkpoints_is_empty(cli: CommandLine) -> None:
    cli.save("only", "--name", "only")
    cli.json("delete", "only", "--yes")
    assert cli.json("log") == []
    answer = cli("log")
    assert (answer.status, answer.out) == (0, "")
    assert "has no checkpoint yet" in answer.err


@pytest.mark.requirement("CL-3")
def test_any_number_may_be_asked_for(cli: CommandLine) -> None:
    cli.save()
    for number in ("0", "1", "99", "9" * 40):
        assert len(cli.json("log", "-n", number)) == 1
    for wrong in ("-1", "many", "1.5"):
        assert cli("log", "-n", wrong).status == 2


@pytest.mark.requirement("CL-2")
def test_in_a_pipe_each_checkpoint_is_one_line_without_tabs_and_head_is_marked(
    cli: CommandLine,
) -> None:
    cli.save("tabs\there\nand lines", "--name", "first")
    cli.save("second")
    cli.json("restore", "first")
    lines = cli("log").out.splitlines()
    assert len(lines) == 2
    assert "\t" not in "".join(lines)
    assert ["(HEAD)" in line for line in lines] == [False, True]
    assert ["(HEAD)" in line for line in cli("log", "--records").out.splitlines()] == [
        *(False, False, False, True)
    ]


@pytest.mark.requirement("RB-7", "SE-9")
def test_the_paths_of_a_restore_of_some_paths_are_reported_by_log_show_and_timeline(
    cli: CommandLine,
) -> None:
    made = cli.save("began")
    (cli.workspace / "README.md").write_text("worse\n")
    cli.json("restore", made, "README.md", "--yes")
    newest = cli.json("log", "--records")[0]
    assert newest["selected"] == ["README.md"]
    assert cli.json("show", newest["id"])["selected"] == ["README.md"]
    assert f"Restored to {made[:10]} (1 selected path): README.md" in cli("log", "--records").out
    assert "selected    README.md" in cli("show", newest["id"]).out
    assert cli.json("log", "--graph")["events"][0]["paths"] == ["README.md"]
    assert "(1 selected path) README.md" in cli("log", "--graph").out
    cli.json("undo", "--yes")
    assert cli.json("log", "--records")[0]["selected"] is None
    assert "paths" not in cli.json("log", "--graph")["events"][0]


@pytest.mark.requirement("CL-7")
def test_the_log_of_a_path_has_the_checkpoints_that_changed_it(cli: CommandLine) -> None:
    first = cli.save("first")
    (cli.workspace / "src" / "app.py").write_text("2\n")
    second = cli.save("second")
    (cli.workspace / "README.md").write_text("2\n")
    third = cli.save("third", "--session", "another")
    (cli.workspace / "src" / "app.py").unlink()
    fourth = cli.save("fourth")

    def ids(*arguments: str) -> list[str]:
        return [one["id"] for one in cli.json("log", *arguments)]

    assert ids("src/app.py") == [fourth, second, first]
    assert ids("src") == [fourth, second, first]
    assert ids("README.md") == [third, first]
    assert ids("--", "README.md") == [third, first]
    assert ids("README.md", "src/app.py", "-n", "2") == [fourth, third]
    assert ids("README.md", "--session", "another") == [third]
    assert ids("nowhere") == []
    assert "no checkpoint matches" in cli("log", "nowhere").err
    assert cli("log", "/etc/passwd").status == 2
    assert cli("log", "src", "--graph").status == 2


@pytest.mark.requirement("CL-7")
def test_the_log_of_a_stretch_of_time(cli: CommandLine) -> None:
    made = cli.save("first")
    assert [one["id"] for one in cli.json("log", "--since", "1h")] == [made]
    assert cli.json("log", "--until", "2 hours ago") == []
    assert cli.json("log", "--since", "yesterday", "--until", "1h") == []
    assert cli("log", "--since", "today").status == cli("log", "--since", "09:30").status == 0
    answer = cli("log", "--since", "whenever", "--json")
    assert answer.status == 2
    assert "invalid time for --since: 'whenever'" in answer.error["message"]


@pytest.mark.requirement("CL-7", "CP-4")
def test_the_log_of_some_kinds_in_the_command_line_and_in_the_library(cli: CommandLine) -> None:
    own = cli.json("checkpoint", "by hand")["session_id"]
    made = {"manual": cli.json("log")[0]["id"]}
    with SessionCheckpointer(cli.workspace, own) as session:
        for kind in (Kind.TOOL, Kind.RISKY, Kind.MESSAGE):
            fill(cli.workspace / kind.value, b"new")
            saved = engine_of(session).save(SessionId(own), make_intent(kind.value), kind=kind)
            made[kind.value] = saved.checkpoint.id
    cli.json("restore", made["manual"], "--yes")

    def ids(*kinds: str) -> list[str]:
        return [made[kind] for kind in kinds]

    for named, wanted in (
        ("manual", ids("manual")),
        ("auto", ids("message", "risky", "tool")),
        ("manual,RISKY", ids("risky", "manual")),
    ):
        assert [one["id"] for one in cli.json("log", "--kind", named)] == wanted
        with SessionCheckpointer(cli.workspace, own) as session:
            assert [one.id for one in session.summaries(kind=named)] == wanted
            assert [one.id for one in session.history(kind=named)] == wanted
            assert [one.id for one in session.history(1, kind=named)] == wanted[:1]
    assert [one["kind"] for one in cli.json("log", "--kind", "safety")] == ["safety"]
    assert [one["id"] for one in cli.json("log", "tool", "--kind", "auto")] == ids("tool")
    wrong = cli("log", "--kind", "automated")
    assert wrong.status == 2
    assert "unknown kind 'automated'" in wrong.err
    assert cli("log", "--kind", "auto", "--graph").status == 2
    with (
        SessionCheckpointer(cli.workspace, own) as session,
        pytest.raises(ValueError, match="unknown kind"),
    ):
        session.summaries(kind="automated")


@pytest.mark.requirement("CL-7")
def test_the_log_says_when_there_is_more(cli: CommandLine) -> None:
    for number in range(5):
        cli.save(f"number {number}")
    answer = cli("log", "-n", "2")
    assert len(answer.out.splitlines()) == 2
    assert answer.err == "… 3 more of 5: holdfast log -n 0\n"
    # The whole log would be another answer than the rest of this one.
    assert cli("log", "-n", "2", "--since", "1h").err == "… 3 more of 5: the same with -n 0\n"
    assert "… 3 more of 5: holdfast log -n 0" in cli("log", "-n", "2", "--color", "always").out
    assert "… 4 more" in cli("log", "-n", "1", "--since", "1h").err
    for everything in (("-n", "0"), ("-n", "5"), ()):
        assert cli("log", *everything).err == ""


@pytest.mark.requirement("GT-1", "CL-2")
def test_people_see_where_git_was(cli: CommandLine) -> None:
    git(cli.workspace, "init", "-q", "-b", "trunk")
    git(cli.workspace, "add", "README.md")
    git(cli.workspace, "commit", "-qm", "x")
    commit = (cli.workspace / ".git" / "refs" / "heads" / "trunk").read_text()[:7]
    cli.save("first")
    wide = cli.process("log", environment={"FORCE_COLOR": "1", "COLUMNS": "120"}).out
    assert f"trunk@{commit}" in wide


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("5", "for the last 5: holdfast log -n 5"),
        ("-5", "for the last 5: holdfast log -n 5"),
        ("nosuch", "no checkpoint matches the path 'nosuch'; everything: holdfast log"),
    ],
)
def test_a_word_that_is_no_known_path_says_what_it_was_taken_for(
    cli: CommandLine, typed: str, said: str
) -> None:
    cli.save()
    assert said in cli("log", typed).err


@pytest.mark.requirement("GT-1")
def test_in_a_pipe_each_checkpoint_names_branch_commit_and_dirty_files(cli: CommandLine) -> None:
    git(cli.workspace, "init", "-q", "-b", "trunk")
    git(cli.workspace, "add", "README.md")
    git(cli.workspace, "commit", "-qm", "x")
    commit = (cli.workspace / ".git/refs/heads/trunk").read_text()[:7]
    cli.save("clean")
    (cli.workspace / "README.md").write_text("dirty\n")
    cli.save("dirty")
    newest, oldest = cli("log").out.splitlines()
    assert f"(HEAD) (trunk@{commit}, 1 dirty) dirty" in newest
    assert f" (trunk@{commit}) clean" in oldest

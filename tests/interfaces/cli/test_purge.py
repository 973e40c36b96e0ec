"""`holdfast purge`: asked for twice, done once, and proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer, start_session
from tests.interfaces.cli.command_line import CommandLine, run
from tests.support.hostile_trees import git
from tests.support.raw_search import places_of

SECRET = "sk-live-0123456789abcdef"
PLAIN = "TOPSECRETKEY123"


@pytest.fixture
def store(cli: CommandLine, project: Path) -> Path:
    """Two checkpoints with a secret in them."""
    cli.json("config", "set", "include", '[".env"]')
    (project / ".env").write_text(f"API_KEY={SECRET}\n")
    cli.save("with the secret", "--name", "first")
    (project / ".env").write_text(f"API_KEY={SECRET}\nMORE=1\n")
    cli.save("with more of it")
    return Path(cli.json("status")["store"])


@pytest.mark.requirement("ST-5", "CL-1")
def test_a_path_is_removed_and_the_answer_tells_the_proof(cli: CommandLine, store: Path) -> None:
    done = cli.json("purge", ".env", "--yes")
    assert len(done["changed"]) == 2
    assert done["paths"] == [".env"]
    assert done["still_in_workspace"] == [".env"]
    assert done["proof"]["traces"] == []
    assert done["proof"]["digests"] > 0
    assert done["proof"]["searched_bytes"] > 0
    assert places_of(store, [SECRET.encode()]) == []
    assert cli.json("check", "--data")["ok"]
    assert cli("purge", ".env", "--yes", "--json").status == 4


def held(answer: dict[str, Any]) -> str:
    return "\n".join(f"{one['where']}: {one['what']}" for one in answer["held_by"])


@pytest.mark.requirement("ST-5", "BX-7")
@pytest.mark.parametrize("way", ["commit", "stash", "index", "blob", "branch", "reflog"])
def test_what_git_still_holds_is_found_and_named(cli: CommandLine, project: Path, way: str) -> None:
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    secret = project / "secret.txt"
    secret.write_text(SECRET)
    cli.save("with the secret")
    git(project, "add", "-f", "secret.txt")
    if way == "stash":
        git(project, "stash", "push", "-q")
        git(project, "stash", "push", "-q", "--all")
    elif way == "blob":
        git(project, "reset", "-q")
    elif way != "index":
        git(project, "commit", "-qm", "with the secret")
    if way == "branch":
        git(project, "branch", "aside")
    if way in ("branch", "reflog"):
        git(project, "reset", "-q", "--hard", "HEAD~1")
    planned = cli.json("purge", "secret.txt", "--dry-run")
    answer = cli.json("purge", "secret.txt", "--yes")
    words = {"index": "the index has secret.txt", "blob": "the git repository has it as an object"}
    assert words.get(way, "stash entr") in held(answer)
    assert held(planned) == held(answer)
    assert "git" not in answer["not_searched"]


@pytest.mark.requirement("ST-5")
def test_git_that_never_had_it_is_not_named(cli: CommandLine, project: Path) -> None:
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "begin")
    (project / "secret.txt").write_text(SECRET)
    cli.save("with the secret")
    answer = cli.json("purge", "secret.txt", "--yes")
    assert (answer["held_by"], answer["not_searched"]) == ([], [])


@pytest.mark.requirement("ST-5")
def test_a_repository_that_cannot_be_searched_is_named_as_such(
    cli: CommandLine, project: Path, store: Path
) -> None:
    git(project, "init", "-q")
    (project / ".git" / "config").write_text("[broken\n")
    answer = cli("purge", ".env", "--yes")
    assert "not searched: git: it could not be searched" in answer.err


@pytest.mark.requirement("ST-5")
def test_other_stores_and_worktrees_that_have_it_are_named(
    cli: CommandLine, project: Path, store: Path, tmp_path: Path
) -> None:
    git(project, "init", "-q")
    git(project, "commit", "-q", "--allow-empty", "-m", "begin")
    beside = tmp_path / "beside"
    git(project, "worktree", "add", "-q", str(beside))
    (beside / ".env").write_bytes((project / ".env").read_bytes())
    CommandLine(beside).save("the same there")
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    CommandLine(sealed).json("init", "--encrypt", "--key-file", str(tmp_path / "key"))
    answer = cli.json("purge", ".env", "--yes")
    assert f"the store of {beside} has the same content" in held(answer)
    assert f"the worktree {beside} has .env" in held(answer)
    assert "store" in answer["not_searched"], "it is encrypted"


@pytest.mark.requirement("ST-5", "HK-7")
def test_transcripts_of_agents_are_named_as_not_searched(cli: CommandLine, project: Path) -> None:
    (project / "secret.txt").write_text(SECRET)
    start_session(project, "s", agent="claude-code").close()
    answer = cli("purge", "secret.txt", "--yes")
    assert "of claude-code were not searched" in answer.err


@pytest.mark.requirement("ST-5")
def test_compressed_content_that_stays_and_has_the_same_bytes_is_named(
    cli: CommandLine, project: Path
) -> None:
    (project / "secret.txt").write_text(f"API_KEY={SECRET}\n")
    quoted = "".join(f"line {number} of a long report\n" for number in range(400))
    (project / "report.txt").write_text(f"{quoted}API_KEY={SECRET}\n{quoted}")
    cli.save("with the secret")
    answer = cli.json("purge", "secret.txt", "--yes")
    assert answer["also_at"] == ["report.txt"]


@pytest.mark.requirement("ST-5", "RB-8")
def test_it_always_needs_a_yes_and_a_dry_run_changes_nothing(cli: CommandLine, store: Path) -> None:
    refused = cli("purge", ".env", "--json")
    assert (refused.status, refused.error["code"]) == (5, "needs_confirmation")
    plan = cli.json("purge", ".env", "--dry-run")
    assert (plan["dry_run"], plan["proof"], len(plan["changed"])) == (True, None, 2)
    assert "Nothing was changed" in cli("purge", ".env", "--dry-run").out
    assert places_of(store, [SECRET.encode()])


@pytest.mark.requirement("ST-5", "CL-3")
def test_a_checkpoint_is_removed_with_its_reason_when_it_is_insisted_on(
    cli: CommandLine, store: Path
) -> None:
    refused = cli("purge", "first", "--yes", "--json")
    assert (refused.status, refused.error["code"]) == (5, "refused")
    assert "--force" in refused.error["hint"]
    plan = cli.json("purge", "first", "--dry-run")
    assert "initial" in plan["refused"][0]
    done = cli("purge", "first", "--yes", "--force")
    assert "Purged: deleted 1 checkpoint, " in done.out
    assert places_of(store, [b"with the secret"]) == []
    assert len(cli.json("log")) == 1


@pytest.mark.requirement("ST-5", "CL-3")
def test_a_word_that_means_two_things_or_nothing_is_refused(
    cli: CommandLine, store: Path, project: Path
) -> None:
    (project / "both").write_text("a path that is also a name")
    cli.save("ambiguous", "--name", "both")
    assert cli("purge", "both", "--yes", "--json").error["code"] == "usage"
    assert cli("purge", "nothing", "--yes", "--json").status == 4
    assert cli("purge", "../outside", "--yes", "--json").status == 4
    assert cli("purge", "first", ".env", "--yes", "--json").status == 2
    assert cli("purge", "--json").status == 2
    assert cli.json("purge", "--yes", "--", "both")["paths"] == ["both"]
    assert run("purge", "--help").status == 0


@pytest.mark.requirement("ST-5")
def test_the_same_content_elsewhere_is_named_before_anything_happens(
    cli: CommandLine, store: Path, project: Path
) -> None:
    (project / "copy").write_text(f"API_KEY={SECRET}\n")
    cli.save("a copy")
    refused = cli("purge", ".env", "--yes", "--json")
    assert (refused.status, "copy" in refused.error["message"]) == (5, True)
    assert cli.json("purge", ".env", "--dry-run")["also_at"] == ["copy"]
    assert "also at     copy" in cli("purge", ".env", "--dry-run").out
    assert cli("purge", ".env", "--everywhere", "--keep-shared", "--yes").status == 2
    done = cli.json("purge", ".env", "--everywhere", "--yes")
    assert sorted(done["paths"]) == [".env", "copy"]
    assert places_of(store, [SECRET.encode()]) == []


@pytest.mark.requirement("ST-5", "CL-3")
def test_traces_that_are_left_are_listed_and_the_status_is_three(
    cli: CommandLine, store: Path
) -> None:
    (store / "notes.txt").write_text(f"API_KEY={SECRET}\n")
    answer = cli("purge", ".env", "--yes")
    assert answer.status == 3
    assert "left in notes.txt" in answer.out
    assert "something was found" in answer.out


@pytest.mark.requirement("ST-5", "CL-3")
def test_traces_in_what_was_set_aside_are_named_with_the_way_out(
    cli: CommandLine, store: Path
) -> None:
    (store / "set-aside" / "index").mkdir(parents=True)
    (store / "set-aside" / "index" / "index.db").write_text(f"API_KEY={SECRET}\n")
    answer = cli("purge", ".env", "--yes")
    assert answer.status == 3
    assert "left in set-aside/index/index.db" in answer.out
    assert "directory set-aside are not rewritten: delete that directory" in answer.err


@pytest.mark.requirement("ST-5")
def test_an_interrupted_purge_is_mentioned_by_every_command_and_finished_by_the_next(
    cli: CommandLine, store: Path
) -> None:
    from holdfast.bootstrap.workspace import open_workspace
    from holdfast.engine.purge import purge
    from holdfast.engine.purge.plan import PurgeRequest, plan_purge

    with open_workspace(cli.workspace, create=False) as opened:
        vault = opened.engine.vault
        with vault.lock.hold():
            plan = plan_purge(vault, PurgeRequest((b".env",)))
            purge._store(vault, plan)
            vault.parts.purge_note.write(purge._encode_note(plan.gone, token="this one"))
            purge._record(vault, plan, "this one")
    assert "a purge was interrupted" in cli("log").err
    assert places_of(store, [SECRET.encode()])
    done = cli.json("purge")
    assert (done["resumed"], done["proof"]["traces"]) == (True, [])
    assert places_of(store, [SECRET.encode()]) == []
    assert "interrupted" not in cli("log").err


@pytest.mark.requirement("CL-3")
def test_what_is_missing_and_what_is_too_much_are_distinguished(cli: CommandLine) -> None:
    cli.save("why", "--name", "good")
    assert cli("purge", "--json").error["message"] == "missing PATH or REF"
    both = cli("purge", "good", "README.md", "--json")
    assert (both.status, "cannot be combined" in both.error["message"]) == (2, True)


@pytest.fixture
def told(cli: CommandLine, project: Path) -> Path:
    """A secret that is in a file and in everything that was said about it."""
    (project / "secret.txt").write_text(f"API={PLAIN}\n")
    with SessionCheckpointer(project, "talk") as session:
        session.add_message("user", f"Use the key {PLAIN}")
        call = {"tool": "Bash", "command": f"echo 'API={PLAIN}' >> secret.txt"}
        session.add_message("assistant", "Done", tool_calls=[call])
        session.checkpoint(
            f"Before echo 'API={PLAIN}'", tool_calls=[call], name=f"with {PLAIN}", tags=[PLAIN]
        )
        session.annotate(f"with {PLAIN}", f"note: {PLAIN} is the old one")
    cli.json("sessions", "rename", "talk", f"Title with {PLAIN}")
    cli("search", PLAIN)
    return Path(cli.json("status")["store"])


@pytest.mark.requirement("ST-5")
def test_a_purged_file_that_was_quoted_is_named_with_the_command(
    cli: CommandLine, told: Path
) -> None:
    planned = cli.json("purge", "secret.txt", "--dry-run")
    answer = cli("purge", "secret.txt", "--yes")
    assert "also in recorded text: quoted in 2 messages, 1 annotation, 1 checkpoint" in answer.err
    assert "holdfast purge --text TEXT" in answer.err
    assert PLAIN not in answer.err
    assert "2 messages, 1 annotation, 1 checkpoint" in held(planned)


@pytest.mark.requirement("ST-5")
def test_a_purged_file_that_was_not_quoted_is_not_reported_as_quoted(
    cli: CommandLine, project: Path
) -> None:
    (project / "secret.txt").write_text(f"API={PLAIN}\ntype: container\n")
    with SessionCheckpointer(project, "talk") as session:
        session.add_message("user", "start the container with the API key")
        session.checkpoint("before the container")
    assert cli.json("purge", "secret.txt", "--yes")["held_by"] == []


@pytest.mark.requirement("ST-5")
def test_a_text_leaves_everything_that_was_said(cli: CommandLine, told: Path) -> None:
    refused = cli("purge", "--text", PLAIN, "--json")
    assert (refused.status, refused.error["code"]) == (5, "needs_confirmation")
    planned = cli.json("purge", "--text", PLAIN, "--dry-run")
    assert planned["said"] == {"messages": 2, "annotations": 1, "checkpoints": 1, "titles": 1}
    assert planned["also_at"] == ["secret.txt"]
    assert places_of(told, [PLAIN.encode()])

    answer = cli("purge", "--text", PLAIN, "--yes")
    assert answer.status == 3, "a file of a checkpoint has it still"
    assert "secret.txt contains it in checkpoints: holdfast purge secret.txt" in answer.err
    assert {place.split()[0] for place in places_of(told, [PLAIN.encode()])} <= {
        *(pack.name + ":" for pack in (told / "objects/packs").iterdir()),
        "object",
    }
    cli("purge", "secret.txt", "--yes")
    done = cli.json("purge", "--text", PLAIN, "--yes")
    assert (done["said"], done["proof"]["traces"], done["also_at"]) == ({}, [], [])
    assert places_of(told, [PLAIN.encode()]) == []
    assert cli.json("search", PLAIN, "--all-sessions")["hits"] == []
    with SessionCheckpointer(cli.workspace, "talk") as session:
        assert [m.content for m in session.messages()] == ["Use the key [purged]", "Done"]
        assert "echo 'API=[purged]'" in str(session.messages()[1].tool_calls[0])
        assert session.history()[-1].intent.reasoning == "Before echo 'API=[purged]'"
    assert cli.json("show", "with [purged]")["annotations"][0]["text"].startswith("note: [purged]")
    assert cli.json("check", "--data")["ok"]


@pytest.mark.requirement("ST-5")
def test_a_text_with_quotes_and_newlines_is_found_inside_of_tool_calls(
    cli: CommandLine, project: Path
) -> None:
    text = 'key "ä"\nnext'
    with SessionCheckpointer(project, "talk") as session:
        session.add_message("user", "Go", tool_calls=[{"input": json.dumps({"x": f"a {text} b"})}])
        session.checkpoint("before", tool_calls=[{"tool": "Bash", "command": f"echo {text}"}])
    assert cli("purge", "--text", "-", "--yes", stdin=text + "\n").status == 0
    with SessionCheckpointer(project, "talk") as session:
        assert session.messages()[0].tool_calls == ({"input": '{"x": "a [purged] b"}'},)
        assert "'echo [purged]'" in str(session.history()[0].intent.tool_calls[0])


@pytest.mark.requirement("ST-5")
def test_names_that_become_the_same_stay_apart(cli: CommandLine) -> None:
    first = cli.save("one", "--name", PLAIN)
    second = cli.save("two", "--name", "[purged]")
    cli.json("purge", "--text", PLAIN, "--yes")
    names = [cli.json("show", one)["name"] for one in (first, second)]
    assert names == ["[purged] 2", "[purged]"]
    assert cli.json("check", "--data")["ok"]


@pytest.mark.requirement("ST-5", "CL-3")
def test_a_text_to_purge_is_long_enough_and_is_the_only_argument(
    cli: CommandLine, told: Path
) -> None:
    assert cli("purge", "--text", "key", "--yes").status == 2
    assert cli("purge", "--text", "   ", "--yes").status == 2
    assert cli("purge", "secret.txt", "--text", PLAIN, "--yes").status == 2


@pytest.mark.requirement("ST-5")
def test_a_checkpoint_whose_reason_a_message_repeats_has_a_next_step(
    cli: CommandLine, project: Path
) -> None:
    with SessionCheckpointer(project, "talk") as session:
        session.add_message("user", f"Use the key {PLAIN}")
        session.checkpoint(f"Use the key {PLAIN}", name="gone")
    answer = cli("purge", "gone", "--force", "--yes")
    assert answer.status == 3
    assert "left in story.db" in answer.out
    assert "holdfast purge --text TEXT" in answer.err


@pytest.mark.requirement("ST-5")
def test_a_text_leaves_the_diffs_of_edits(cli: CommandLine, project: Path) -> None:
    """They are stored compressed, where no search of raw bytes finds it."""
    with SessionCheckpointer(project, "talk") as session:
        session.checkpoint("before")
        with session.editing(["README.md"], "an edit"):
            (project / "README.md").write_text(f"key {PLAIN}\n" * 5)
    assert cli.json("purge", "--text", PLAIN, "--dry-run")["said"] == {"edits": 1}
    assert cli.json("purge", "--text", PLAIN, "--yes")["said"] == {"edits": 1}
    assert cli.json("purge", "--text", PLAIN, "--dry-run")["said"] == {}


@pytest.mark.requirement("ST-5")
def test_a_text_in_the_name_of_a_saved_file_is_reported(cli: CommandLine, project: Path) -> None:
    (project / f"{PLAIN}.txt").write_text("x\n")
    cli.save("with a telling name")
    answer = cli("purge", "--text", PLAIN, "--yes")
    assert answer.status == 3
    assert "a file name" in answer.out

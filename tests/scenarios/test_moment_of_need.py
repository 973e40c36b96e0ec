"""The moment of need: an agent has wrecked the project, and a person wants it back.

Default settings, hook events as an agent sends them, the command line as a person types it, and an
independent copy of every promised moment.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.interfaces.daemon.client import ask
from tests.interfaces.cli.command_line import CommandLine
from tests.support import hook_process
from tests.support.daemons import kill_daemon, runtime_directory
from tests.support.scripted_agent import ScriptedAgent
from tests.support.strides import UNTIMED
from tests.support.tree_hash import describe, differences


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with committed, changed, untracked and ignored files."""
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    for name in ("app.py", "cart.py", "prices.py"):
        (root / "src" / name).write_text(f"# {name}\n")
    (root / ".gitignore").write_text(".env\n")
    (root / ".env").write_text("KEY=secret\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "src" / "app.py").write_text("# app.py, edited by hand\n")
    (root / "notes.txt").write_text("untracked\n")
    return root


@pytest.fixture
def cli(project: Path) -> CommandLine:
    return CommandLine(project)


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hooks start a daemon, as they do by default."""
    monkeypatch.setenv("HOLDFAST_DAEMON", "on")
    with runtime_directory():
        yield


@pytest.mark.requirement("RB-11", "RB-12")
def test_the_agent_deletes_src_and_undo_brings_it_back(project: Path, cli: CommandLine) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.ask("tidy up the sources")
    agent.run("rm -rf src")
    assert not (project / "src").exists()

    answer = cli("undo", "--yes")

    assert answer.status == 0, answer
    assert differences(describe(project), agent.moments[-1]) == []
    assert "rm -rf src" in answer.out
    assert "warning" not in answer.out + answer.err


@pytest.mark.requirement("RB-11", "RB-8")
def test_undo_says_what_it_will_do_and_asks_once(project: Path, cli: CommandLine) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.run("rm -rf src")
    wrecked = describe(project)

    shown = cli("undo")  # there is no one to answer

    assert shown.status == 5
    assert "rm -rf src" in shown.out + shown.err
    assert differences(describe(project), wrecked) == []


@pytest.mark.requirement("RB-12")
@pytest.mark.parametrize("reference", ["HEAD", "safe"])
def test_a_project_wrecked_in_another_session_comes_back_by_any_name(
    project: Path, cli: CommandLine, reference: str
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    cli.save("before the risky part", "--name", "safe", "--session", "s1")
    good = describe(project)
    subprocess.run(["rm", "-rf", "src"], cwd=project, check=True)  # no hook saw it

    answer = cli("restore", reference, "--yes")

    assert answer.status == 0, answer
    assert differences(describe(project), good) == []


@pytest.mark.requirement("RB-11")
def test_undo_goes_back_call_by_call_and_redo_forward_again(
    project: Path, cli: CommandLine
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.ask("rewrite everything")
    agent.write("src/app.py", "# rewritten\n")
    agent.run("rm src/cart.py")
    agent.run("echo broken > src/prices.py")
    end = describe(project)

    for moment in reversed(agent.moments):
        assert cli("undo", "--yes").status == 0
        assert differences(describe(project), moment) == []
    for moment in [*agent.moments[1:], end]:
        assert cli("redo", "--yes").status == 0
        assert differences(describe(project), moment) == []

    assert cli("undo", "--turn", "--yes").status == 0
    assert differences(describe(project), agent.moments[0]) == []


@pytest.mark.requirement("RB-11")
def test_undo_takes_a_persons_own_unsaved_edits_first(project: Path, cli: CommandLine) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.run("echo agent > src/agent.py")
    by_the_agent = describe(project)
    (project / "notes.txt").write_text("edited by hand\n")

    assert cli("undo", "--yes").status == 0
    assert differences(describe(project), by_the_agent) == []
    assert cli("undo", "--yes").status == 0
    assert differences(describe(project), agent.moments[0]) == []


@pytest.mark.requirement("RB-11", "CP-13")
def test_undo_goes_on_past_the_moment_from_which_an_ignored_file_is_captured(
    project: Path, cli: CommandLine
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.run("echo 2 > src/app.py")
    agent.write(".env", "KEY=changed\n")

    for moment in reversed(agent.moments):
        assert cli("undo", "--yes").status == 0
        assert differences(describe(project), moment) == []

    assert cli("undo", "--yes").status == 4


@pytest.mark.requirement("RB-11", "RB-14")
def test_undo_goes_on_after_a_redo_whatever_the_rules_left_out(
    project: Path, cli: CommandLine
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.run("echo first > notes.txt")
    agent.run("echo dist/ >> .gitignore; mkdir dist; echo built > dist/app.js")
    end = describe(project)

    for _ in range(2):
        assert cli("undo", "--yes").status == 0
        assert differences(describe(project), agent.moments[1]) == []
        assert cli("redo", "--yes").status == 0
        assert differences(describe(project), end) == []
    for moment in reversed(agent.moments):
        assert cli("undo", "--yes").status == 0
        assert differences(describe(project), moment) == []


@pytest.mark.requirement("RB-11", "RB-14")
def test_undo_returns_from_a_restore_that_kept_what_an_older_equal_state_did_not_know(
    tmp_path: Path,
) -> None:
    """Two checkpoints hold the same files and left out different ones."""
    place = tmp_path / "empty"
    place.mkdir()
    cli = CommandLine(place)
    cli.save("nothing is here yet")
    (place / "notes.txt").write_text("for a while\n")
    cli.save("one file")
    (place / "notes.txt").unlink()
    (place / ".gitignore").write_text("*\n")
    (place / "dist").mkdir()
    (place / "dist" / "app.js").write_text("built\n")
    wanted = cli.save("everything is ignored")
    (place / ".gitignore").write_text("nothing\n")
    (place / "new.txt").write_text("not saved anywhere else\n")
    before = describe(place)

    answer = cli("restore", wanted, "--yes")

    assert answer.status == 0, answer
    assert "kept: dist" in answer.out
    assert not (place / "new.txt").exists()
    assert cli("undo", "--yes").status == 0
    assert differences(describe(place), before) == []


@pytest.mark.requirement("RB-12", "CL-8")
def test_status_and_log_agree_about_head_after_undo_and_redo(
    project: Path, cli: CommandLine
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.run("rm src/cart.py")
    ScriptedAgent(project, "s2").run("rm src/app.py")
    for verb in ("undo", "undo", "redo", "redo", "undo"):
        assert cli(verb, "--yes").status == 0
        shown = cli.json("show", "HEAD")["id"]
        assert cli.json("status")["head"]["id"] == shown
        marked = [one["id"] for one in cli.json("log") if one["is_head"]]
        assert marked == [shown]


@pytest.mark.requirement("SE-11", "AU-1")
@pytest.mark.usefixtures("daemon")
@pytest.mark.parametrize("calls", [99, pytest.param(300, marks=UNTIMED)])
def test_hundreds_of_tool_calls_and_then_the_seventeenth(
    project: Path, cli: CommandLine, calls: int
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    for number in range(1, calls + 1):
        if number % 50 == 1:
            agent.ask(f"message {number}")
        if number % 3 == 2:
            agent.run(f"echo {number} >> src/log{number % 5}.txt")
        else:
            agent.write(f"src/module{number % 7}.py", f"# written by call {number}\n")
    agent.run("rm -rf src")

    saved = {m["reasoning"]: m["id"] for m in cli.json("log", "-n", "1000", "--session", "s1")}
    for number in (17, 2, calls // 6 * 3 + 2, calls - 1, calls + 1):
        command = "rm -rf src" if number > calls else f"echo {number} >> src/log{number % 5}.txt"
        (wanted,) = {saved[reason] for reason in saved if f"Before Bash: {command}" in reason}
        assert cli("restore", wanted, "--yes").status == 0
        assert differences(describe(project), agent.moments[number - 1]) == []


@pytest.mark.requirement("CP-13")
def test_my_env_file_comes_back_after_the_agent_wrote_it(project: Path, cli: CommandLine) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.write(".env", "KEY=overwritten\n")
    assert (project / ".env").read_text() == "KEY=overwritten\n"

    assert cli("undo", "--yes").status == 0
    assert differences(describe(project), agent.moments[0]) == []
    assert (project / ".env").read_text() == "KEY=secret\n"

    agent.run("rm .env")
    assert cli("undo", "--yes").status == 0
    assert (project / ".env").read_text() == "KEY=secret\n"


@pytest.mark.requirement("SE-11", "HK-2")
@pytest.mark.usefixtures("daemon")
def test_the_laptop_slept_and_the_daemon_did_not_survive_it(
    project: Path, cli: CommandLine
) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.write("src/app.py", "# before the night\n")
    kill_daemon(ask("status", start=True, start_s=120)["pid"])

    agent.write("src/app.py", "# after the night\n")
    agent.run("rm -rf src")
    assert cli("undo", "--yes").status == 0
    assert differences(describe(project), agent.moments[2]) == []
    assert cli("undo", "--yes").status == 0
    assert differences(describe(project), agent.moments[1]) == []
    assert cli("undo", "--yes").status == 0
    assert differences(describe(project), agent.moments[0]) == []


@pytest.mark.requirement("HK-7")
def test_the_agent_is_notified_once_that_protection_is_off(
    project: Path, holdfast_home: Path, ordinary_permissions: None
) -> None:
    agent = ScriptedAgent(project, hook=hook_process.call_hook)
    agent.start()
    modes = {path: path.stat().st_mode for path in [holdfast_home, *holdfast_home.rglob("*")]}
    for path in modes:
        path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        agent.run("echo unprotected > notes.txt")
        agent.run("echo again > notes.txt")
    finally:
        for path, mode in modes.items():
            path.chmod(mode)

    said = [answer.json.get("systemMessage", "") for answer in agent.answers[1:]]
    assert [bool(words) for words in said].count(True) == 1
    assert "not protected" in "".join(said).lower()


@pytest.mark.requirement("RB-11")
def test_a_step_keeps_its_name_after_undo_and_redo(project: Path, cli: CommandLine) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.ask("tidy up")
    agent.run("rm src/cart.py")
    agent.run("rm src/prices.py")
    for _ in range(2):
        named = cli.json("undo", "--dry-run")["undone"]["what"]
        assert 'the Bash call "rm src/prices.py"' in named
        assert cli("undo", "--yes").status == 0
        assert 'the Bash call "rm src/cart.py"' in cli.json("undo", "--dry-run")["undone"]["what"]
        assert cli("redo", "--yes").status == 0
    assert cli("undo", "--yes").status == 0
    assert cli("undo", "--yes").status == 0
    assert cli("redo", "--yes").status == 0
    assert 'the Bash call "rm src/cart.py"' in cli.json("undo", "--dry-run")["undone"]["what"]


@pytest.mark.requirement("RB-11")
def test_hand_edits_are_named_as_edits(project: Path, cli: CommandLine) -> None:
    agent = ScriptedAgent(project)
    agent.start()
    agent.ask("begin")
    agent.run("touch made")
    (project / "notes.txt").write_text("by hand\n")
    agent.ask("now tidy up")
    named = cli.json("undo", "--dry-run")["undone"]["what"]
    assert named == 'your edits before the message "now tidy up"'
    (project / "notes.txt").write_text("by hand again\n")
    agent.run("ls")
    named = cli.json("undo", "--dry-run")["undone"]["what"]
    assert named == 'your edits before the Bash call "ls"'


@pytest.mark.requirement("RB-11", "RB-8")
def test_undo_names_redo_as_the_way_back_and_asks_for_more_than_one_file(
    project: Path, cli: CommandLine
) -> None:
    cli.save("all of it")
    for name in ("cart.py", "prices.py"):
        (project / "src" / name).unlink()
    assert "saved first, so redo restores them" in cli("undo", "--dry-run").out
    assert cli("undo").status == 5
    (project / "src" / "cart.py").write_text("# cart.py\n")
    (project / "src" / "prices.py").write_text("# prices.py\n")
    cli.save("back again")
    (project / "src" / "cart.py").unlink()
    assert cli("undo").status == 0
    assert "it needs --yes to change more than one file" in " ".join(
        cli("undo", "--help").out.split()
    )

"""`holdfast watch` saves automatically, and ends cleanly."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.components.git.repositories import commit, git
from tests.interfaces.cli.command_line import CommandLine, command

pytestmark = pytest.mark.requirement("AU-4", "CL-1")


@contextmanager
def watching(project: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        command("watch", *arguments), cwd=project, stdout=subprocess.PIPE, text=True
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def end(child: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> str:
    child.send_signal(number)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    return out


def test_it_saves_what_there_is_then_each_burst_then_what_is_left(
    cli: CommandLine, project: Path
) -> None:
    with watching(project, "--files", "2", "--every", "0") as child:
        assert "initial" in line(child)
        assert line(child).startswith("Watching 3 directories")
        (project / "src/one.py").write_text("1\n")
        (project / "src/two.py").write_text("2\n")
        assert "threshold" in line(child)
        assert end(child) == "Stopped: 2 checkpoints saved.\n"
    kinds = [checkpoint["kind"] for checkpoint in cli.json("log")]
    assert kinds == ["threshold", "initial"]


def test_it_saves_after_a_merge_into_the_main_branch(cli: CommandLine, project: Path) -> None:
    git(project, "init", "-q", "-b", "main")
    commit(project, "base.txt", "base\n")
    git(project, "checkout", "-qb", "feature")
    commit(project, "feature.txt", "new\n")
    git(project, "checkout", "-q", "main")
    with watching(project, "--files", "0", "--every", "0") as child:
        assert "initial" in line(child)
        assert line(child).startswith("Watching 3 directories")
        git(project, "merge", "-q", "feature")
        assert "merge: 1 added" in line(child)
        end(child)
    newest, first = cli.json("log")
    assert (newest["kind"], newest["reasoning"]) == ("merge", "Merged feature into main")
    assert first["kind"] == "initial"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_changes_too_few_for_a_checkpoint_are_saved_when_it_ends(
    cli: CommandLine, project: Path, number: signal.Signals
) -> None:
    cli.save()
    with watching(project) as child:
        assert line(child).startswith("Watching")
        (project / "src/one.py").write_text("1\n")
        assert "interval" in end(child, number)
    assert cli.json("status")["changes"] == []


def _has_checkpoints(cli: CommandLine, session: str) -> bool:
    known: list[str] = cli.json("status")["sessions"]
    return session in known and cli.json("log", "--session", session) != []


def test_json_is_one_value_at_the_end(cli: CommandLine, project: Path) -> None:
    cli.save()
    with watching(project, "--files", "1", "--json", "--session", "aider") as child:
        # From the first checkpoint on: it counts although the command is still busy with it.
        while not _has_checkpoints(cli, "aider"):
            assert child.poll() is None
        answer = json.loads(end(child))
    assert answer["session_id"] == "aider"
    assert [made["kind"] for made in answer["checkpoints"]] == ["initial"]


def test_being_asked_to_end_while_it_saves_loses_no_word_of_what_was_saved(
    cli: CommandLine, project: Path
) -> None:
    """At whatever moment it comes: exactly the saved checkpoints are listed."""
    cli.save()
    for number in range(6):
        (project / "src/one.py").write_text(f"{number}\n")
        session = f"aider{number}"
        with watching(project, "--files", "1", "--json", "--session", session) as child:
            while session not in cli.json("status")["sessions"]:
                assert child.poll() is None
            (project / "src/two.py").write_text(f"{number}\n")
            answer = json.loads(end(child))
        made = cli.json("log", "--session", session)
        assert [one["id"] for one in answer["checkpoints"]] == [one["id"] for one in made[::-1]]


def test_one_directory_is_one(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "a").write_text("a")
    with watching(alone) as child:
        assert "initial" in line(child)
        assert line(child).startswith("Watching 1 directory of")
        end(child)


@pytest.mark.parametrize("option", ["--files", "--every"])
@pytest.mark.parametrize("value", ["many", "-1", ""])
def test_a_number_that_is_none_is_refused(cli: CommandLine, option: str, value: str) -> None:
    answer = cli("watch", f"{option}={value}", "--json")
    assert answer.status == 2
    assert option in answer.error["message"]

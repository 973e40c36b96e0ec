"""`holdfast restore REF PATH --hunk N`: some changes of a file, by the numbers that diff shows."""

from __future__ import annotations

import re

import pytest

from tests.interfaces.cli.command_line import CommandLine

pytestmark = pytest.mark.requirement("RB-7")

OLD = "".join(f"line {number}\n" for number in range(40))
NEW = OLD.replace("line 3\n", "LINE 3\n").replace("line 20\n", "LINE 20\n")


@pytest.fixture
def edited(cli: CommandLine) -> CommandLine:
    """A file with two hunks since the checkpoint."""
    (cli.workspace / "file").write_text(OLD)
    cli.save()
    (cli.workspace / "file").write_text(NEW)
    return cli


def _content(cli: CommandLine) -> str:
    return (cli.workspace / "file").read_text()


def test_the_numbers_are_those_that_diff_shows(edited: CommandLine) -> None:
    shown = edited("diff", "HEAD", "--", "file").out
    numbers = re.findall(r"^hunk (\d): @@ -(\d+),", shown, re.MULTILINE)
    assert numbers == [("1", "1"), ("2", "18")]
    assert "hunk 2: @@" in edited("diff", "--side-by-side", "--", "file").out
    answer = edited("restore", "HEAD", "file", "--hunk", "2")
    assert answer.status == 0
    assert "1 file rewritten in 1 hunk, verified 1 file" in answer.out
    assert _content(edited) == NEW.replace("LINE 20", "line 20")
    assert edited("undo").status == 0
    assert _content(edited) == NEW


def test_a_patch_and_a_comparison_of_checkpoints_have_no_numbers(edited: CommandLine) -> None:
    assert "hunk" not in edited("diff", "--patch").out
    edited.save()
    assert "hunk" not in edited("diff", "initial", "HEAD").out


def test_json_has_numbers_and_ids_and_both_are_taken(edited: CommandLine) -> None:
    [change] = edited.json("diff", "HEAD", "--patch", "--", "file")["changes"]
    assert [hunk["number"] for hunk in change["hunks"]] == [1, 2]
    names = [hunk["id"] for hunk in change["hunks"]]
    told = edited.json("restore", "HEAD", "file", "--hunk", names[1])
    assert [(hunk["number"], hunk["id"]) for hunk in told["hunks"]] == [(2, names[1])]
    assert told["operations"] == [{"type": "restore", "path": "file"}]
    assert _content(edited) == NEW.replace("LINE 20", "line 20")
    gone = edited("--json", "restore", "HEAD", "file", "--hunk", names[1])
    assert gone.status == 4
    assert gone.error["code"] == "not_found"


def test_a_dry_run_shows_the_hunks_and_changes_nothing(edited: CommandLine) -> None:
    answer = edited("restore", "HEAD", "file", "--hunk", "2", "--dry-run")
    assert answer.status == 0
    assert "-line 20\n+LINE 20\n" in answer.out
    assert "LINE 3" not in answer.out
    assert _content(edited) == NEW
    told = edited.json("restore", "HEAD", "file", "--hunk", "2", "--dry-run")
    assert told["dry_run"] is True
    assert "-line 20" in told["hunks"][0]["lines"]


@pytest.mark.parametrize("form", [["--hunk", "1,2"], ["--hunk", "2", "--hunk", "1"]])
def test_several_hunks_can_be_named(edited: CommandLine, form: list[str]) -> None:
    assert edited("restore", "HEAD", "file", *form).status == 0
    assert _content(edited) == OLD


def test_another_context_makes_other_hunks(cli: CommandLine) -> None:
    (cli.workspace / "file").write_text("a\nb\nc\n")
    cli.save()
    (cli.workspace / "file").write_text("A\nb\nC\n")
    shown = cli("diff", "-U0", "--", "file").out
    assert "hunk 1 of -U0: @@" in shown
    assert "hunk 2 of -U0: @@" in shown
    assert cli("restore", "HEAD", "file", "--hunk", "2", "-U0").status == 0
    assert _content(cli) == "A\nb\nc\n"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["HEAD", "file", "--hunk", "3"], 4, "no hunk 3: file has 2 hunks"),
        (["HEAD", "file", "--hunk", "0"], 2, "'0' is not a hunk"),
        (["HEAD", "file", "--hunk", "one"], 2, "'one' is not a hunk"),
        (["HEAD", "file", "--hunk", "1,"], 2, "'' is not a hunk"),
        (["HEAD", "--hunk", "1"], 2, "--hunk needs exactly one file"),
        (["HEAD", "file", "run.sh", "--hunk", "1"], 2, "--hunk needs exactly one file"),
        (["HEAD", "src", "--hunk", "1"], 2, "src is a directory"),
        (["HEAD", "data.bin", "--hunk", "1"], 5, "is binary"),
        (["HEAD", "README.md", "--hunk", "1"], 5, "was removed since"),
        (["HEAD", "later", "--hunk", "1"], 5, "was added since"),
        (["HEAD", "link", "--hunk", "1"], 5, "symbolic link"),
        (["HEAD", "file", "-U", "1"], 2, "-U requires --patch or --hunk"),
        (["HEAD", "file", "--hunk", "1", "-U", "x"], 2, "-U must be a number"),
    ],
)
def test_mistakes_change_nothing_and_name_the_way_out(
    edited: CommandLine, arguments: list[str], status: int, words: str
) -> None:
    (edited.workspace / "data.bin").write_bytes(b"\0other")
    (edited.workspace / "README.md").unlink()
    (edited.workspace / "later").write_text("new\n")
    answer = edited("restore", *arguments)
    assert (answer.status, answer.out) == (status, "")
    assert words in answer.err
    assert _content(edited) == NEW


def test_a_notebook_has_the_hunks_of_its_text(cli: CommandLine) -> None:
    """As `diff --patch` numbers them: by cell there is nothing that could be put back exactly."""
    book = cli.workspace / "book.ipynb"
    cell = '{"cell_type": "code", "metadata": {}, "outputs": [], "source": "x = %d"}'
    text = '{"nbformat": 4, "cells": [\n%s]}\n'
    book.write_text(text % cell % 1)
    cli.save()
    book.write_text(text % cell % 2)
    [change] = cli.json("diff", "--patch")["changes"]
    assert [hunk["number"] for hunk in change["hunks"]] == [1]
    assert cli("restore", "HEAD", "book.ipynb", "--hunk", "1").status == 0
    assert book.read_text() == text % cell % 1

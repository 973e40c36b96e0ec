"""`holdfast diff` when damage, a deletion or a closed output ends it early."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine, command


@pytest.fixture
def half_lost(cli: CommandLine) -> CommandLine:
    """Two checkpoints with two files that differ; the content of the second of them is damaged."""
    for text, content in (("one\n", os.urandom(200_000)), ("two\n", os.urandom(200_000))):
        (cli.workspace / "a.txt").write_text(text)
        (cli.workspace / "z.txt").write_text(content.hex())
        cli.save(text)
    pack = next((Path(cli.json("init")["store"]) / "objects" / "packs").iterdir())
    data = bytearray(pack.read_bytes())
    data[len(data) // 4] ^= 0xFF
    pack.write_bytes(data)
    return cli


@pytest.mark.requirement("CL-3", "RL-4")
@pytest.mark.parametrize("form", [["--patch", "--json"], ["--patch"], ["--stat"]])
def test_damage_leaves_no_half_an_answer_to_a_program(
    half_lost: CommandLine, form: list[str]
) -> None:
    answer = half_lost("diff", "HEAD~1", "HEAD", *form)
    assert (answer.status, answer.out) == (6, "")
    said = answer.error["message"] if "--json" in form else answer.err
    assert "cannot read z.txt: object " in said
    rest = half_lost("diff", "HEAD~1", "HEAD", *form, "--", "a.txt")
    assert (rest.status, rest.err) == (0, "")
    assert "z.txt" not in rest.out


@pytest.mark.requirement("CL-3", "RL-4")
@pytest.mark.parametrize("form", [[], ["--side-by-side"]])
def test_people_see_what_could_be_compared_and_where_damage_ended_it(
    half_lost: CommandLine, form: list[str]
) -> None:
    answer = half_lost("diff", "HEAD~1", "HEAD", *form)
    assert answer.status == 6
    whole = half_lost("diff", "HEAD~1", "HEAD", *form, "--", "a.txt").out
    assert answer.out == whole + "modified z.txt\n"
    assert answer.err.startswith("error: cannot read z.txt: object ")
    assert answer.err.endswith("hint: run: holdfast check --data\n")


@pytest.mark.requirement("CL-3", "RL-4")
def test_what_needs_no_content_is_reported_whatever_is_damaged(half_lost: CommandLine) -> None:
    changes = half_lost.json("diff", "HEAD~1", "HEAD")["changes"]
    assert [(one["path"], one["change"]) for one in changes] == [
        ("a.txt", "modified"),
        ("z.txt", "modified"),
    ]


@pytest.mark.requirement("CL-3")
def test_a_large_answer_is_as_whole_as_a_small_one(cli: CommandLine) -> None:
    cli.save()
    wide = "".join(f"{number:09}\n" for number in range(600_000))
    (cli.workspace / "wide.txt").write_text(wide)
    [change] = cli.json("diff", "--patch")["changes"]
    lines = [line for hunk in change["hunks"] for line in hunk["lines"]]
    assert lines == [f"+{line}" for line in wide.splitlines()]


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("form", ["--patch --json", "--patch", "--stat"])
def test_without_anywhere_to_write_nothing_breaks(cli: CommandLine, form: str) -> None:
    cli.save()
    (cli.workspace / "README.md").unlink()
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command("diff", *form.split())],
        cwd=cli.workspace,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.requirement("CL-3", "RL-4")
@pytest.mark.parametrize("how", ["deleted", "purged"])
def test_a_checkpoint_that_goes_while_its_difference_is_read_is_no_damage(
    cli: CommandLine, how: str
) -> None:
    """The difference is far larger than a pipe: the writer waits for the reader."""
    _fill_with_noise(cli.workspace)
    old = cli.save("old")
    _fill_with_noise(cli.workspace)
    cli.save("new")
    arguments = command("diff", old, "HEAD")
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, cwd=cli.workspace, stdout=pipe, stderr=pipe) as reading:
        assert reading.stdout is not None
        assert reading.stdout.read(1)
        cli.save("so that HEAD is another")
        if how == "deleted":
            cli.json("delete", old, "--yes")
            cli.json("cleanup")
        else:
            cli("purge", "noise", "--yes", "--json", "--force")
        _, error = reading.communicate()
    assert reading.returncode == 5
    assert f"was {how} while it was being compared" in error.decode()
    assert "hint: " in error.decode()


def _fill_with_noise(workspace: Path) -> None:
    (workspace / "noise").mkdir(exist_ok=True)
    for number in range(60):
        text = "\n".join(os.urandom(30).hex() for _ in range(200))
        (workspace / f"noise/{number}").write_text(text)

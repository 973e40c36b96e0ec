"""Lists beside a result stay short in a pipe as well; --json has every path."""

from __future__ import annotations

import random

import pytest

from tests.interfaces.cli.command_line import CommandLine

FILES = 30


@pytest.mark.requirement("CL-5", "RB-13")
def test_kept_files_are_counted_after_the_first_few(cli: CommandLine) -> None:
    saved = cli.save("before")
    cli.json("config", "set", "max_file_size", "1kB")
    for number in range(FILES):
        (cli.workspace / f"large-{number:02}.bin").write_bytes(bytes(2_000))
    (cli.workspace / "README.md").write_text("changed\n")
    for mode in ("--dry-run", "--yes"):
        shown = cli("restore", saved, mode).out
        assert shown.count("kept: large-") == 5
        assert "  … and 25 more kept (--json lists all)\n" in shown
    (cli.workspace / "README.md").write_text("changed again\n")
    assert len(cli.json("restore", saved, "--yes")["kept"]) == FILES


@pytest.mark.requirement("CP-12", "CL-5")
def test_files_that_a_checkpoint_is_without_are_counted_after_a_screenful(
    cli: CommandLine,
) -> None:
    cli.save("before")
    cli.json("config", "set", "budget", "200kB")
    for number in range(FILES):
        content = random.Random(number).randbytes(250_000)
        (cli.workspace / f"large-{number:02}.bin").write_bytes(content)
    shown = cli("checkpoint", "more than fits").out
    assert "30 paths did not fit:" in shown
    assert shown.count("  large-") == 20
    assert "  … and 10 more (list: holdfast status --skipped)\n" in shown
    assert cli("status", "--skipped").out.count("  large-") == FILES

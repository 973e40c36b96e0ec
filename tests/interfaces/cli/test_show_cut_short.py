"""`holdfast show` of a checkpoint that goes while it is being read."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.interfaces.cli.command_line import CommandLine, command


@pytest.mark.requirement("CL-3", "RL-4")
def test_a_checkpoint_that_goes_while_its_files_are_listed_is_no_damage(cli: CommandLine) -> None:
    """The list is far larger than a pipe: the writer waits for the reader."""
    for number in range(300):
        directory = cli.workspace / f"{number:03}{'x' * 240}"
        directory.mkdir()
        for file in range(10):  # so many that not all lists are read at once
            (directory / f"{file}{'y' * 240}").write_text(f"{number} {file}")
    gone = cli.save("gone")
    for directory in cli.workspace.glob("???xxx*"):
        shutil.rmtree(directory)  # lists that are only changed may need the old ones as a base
    cli.save("so that HEAD is another")
    pipe = subprocess.PIPE
    arguments = command("show", gone, "--files")
    with subprocess.Popen(arguments, cwd=cli.workspace, stdout=pipe, stderr=pipe) as reading:
        assert reading.stdout is not None
        assert reading.stdout.read(1)
        cli.json("delete", gone, "--yes")
        cli.json("cleanup")
        _, error = reading.communicate()
    assert reading.returncode == 5
    assert "was deleted while it was being shown" in error.decode()
    assert "hint: list checkpoints: holdfast log" in error.decode()

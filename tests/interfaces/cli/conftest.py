"""A small project, and the command line standing in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Text, a binary file, an executable, a link, an ignored file, an empty directory."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "README.md").write_text("hello\n")
    (root / "src" / "app.py").write_text("def main():\n    return 1\n")
    (root / "data.bin").write_bytes(bytes(range(256)))
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("README.md")
    (root / ".gitignore").write_text(".env\n")
    (root / ".env").write_text("KEY=1\n")
    return root


@pytest.fixture
def cli(project: Path) -> CommandLine:
    return CommandLine(project)


@pytest.fixture
def told(cli: CommandLine) -> CommandLine:
    """Three checkpoints and a restore."""
    cli.save("the first one", "--name", "first")
    app = cli.workspace / "src" / "app.py"
    app.write_text("def main():\n    return 2\n")
    cli.save("the second one", "--name", "second", "--confidence", "0.95", "--goal", "speed")
    for number in range(60):
        (cli.workspace / f"made-{number:02}").write_text(f"{number}\n")
    cli.save("the third one", "--name", "third")
    assert cli("restore", "first", "--yes").status == 0
    return cli

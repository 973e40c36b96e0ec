"""A project that an agent works on, with everything an agent is able to lose."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.interfaces.daemon import hook_client
from tests.interfaces.cli.command_line import CommandLine
from tests.support.daemons import runtime_directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with committed, changed, untracked and ignored files, a link, an empty
    directory and a script."""
    root = tmp_path / "shop"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "app.py").write_text("price = 1\n")
    (root / "src" / "deep" / "data.bin").write_bytes(bytes(range(256)) * 40)
    (root / "src" / "run.sh").write_text("#!/bin/sh\n")
    (root / "src" / "run.sh").chmod(0o755)
    (root / "src" / "link").symlink_to("app.py")
    (root / ".gitignore").write_text(".env\n")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "begin"], cwd=root, check=True)
    (root / "src" / "app.py").write_text("price = 2\n")
    (root / "notes.txt").write_text("price ideas, untracked\n")
    (root / ".env").write_text("KEY=price\n")
    (root / "empty").mkdir()
    os.chmod(root / ".env", 0o600)
    return root


@pytest.fixture
def cli(project: Path) -> CommandLine:
    return CommandLine(project)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for a daemon, and hooks that use it."""
    monkeypatch.setenv("HOLDFAST_DAEMON", "on")
    with runtime_directory() as directory:
        yield directory


@pytest.fixture
def patience(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks that wait for the daemon however long it takes, in this process and in others: for
    tests that are about what it answers, on machines that are busy with something else."""
    names = ("SIGN_OF_LIFE_S", "ANSWER_S")
    place = tmp_path_factory.mktemp("patience")
    lines = [f"hook_client.{name} = 600.0" for name in names]
    (place / "sitecustomize.py").write_text(
        "\n".join(["from holdfast.interfaces.daemon import hook_client", *lines, ""])
    )
    path = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    for name in names:
        monkeypatch.setattr(hook_client, name, 600.0)

"""`holdfast serve` as a process of its own, as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """Where it listens, and the token that opens it."""

    url: str
    token: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def new_link(self) -> str:
        """A link that signs a browser in, once."""
        request = urllib.request.Request(
            f"{self.url}/api/login-links",
            b"{}",
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            link: str = json.load(answer)["link"]
            return link


@contextmanager
def serving(
    workspace: Path, environment: Mapping[str, str], *, port: int = 0
) -> Iterator[ServerProcess]:
    command = [sys.executable, "-P", "-m", "holdfast", "serve", "--port", str(port), "--json"]
    with subprocess.Popen(
        command,
        cwd=workspace,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        told = json.loads(line)
        try:
            yield ServerProcess(told["url"], told["token"], process)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

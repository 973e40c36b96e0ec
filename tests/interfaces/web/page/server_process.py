"""`holdfast serve` as a process of its own, as a person runs it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.forked_commands import running_command

PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """Where it listens, and the token that opens it."""

    url: str
    token: str

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
    command = ("serve", "--port", str(port), "--json")
    with running_command(command, workspace, environment) as out:
        line = out.readline()
        assert line, "the server ended before it was ready"
        told = json.loads(line)
        yield ServerProcess(told["url"], told["token"])

"""Running the command line as a script does: arguments in; exit status, output and errors out."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.interfaces.cli.main import main


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said. Text that is not UTF-8 has surrogate escapes."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The JSON error; there may be nothing on standard output besides."""
        assert self.out == ""
        parsed = json.loads(self.err)
        assert parsed.keys() == {"error"}
        error: dict[str, Any] = parsed["error"]
        assert error.keys() == {"code", "message", "hint"}
        return error


class CommandLine:
    """The commands, on one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def __call__(self, *arguments: str, stdin: str = "") -> Answer:
        """Run `main` in this process."""
        return run("-C", str(self.workspace), *arguments, stdin=stdin)

    def json(self, *arguments: str) -> Any:
        """The answer of a command that has to succeed, as data."""
        answer = self("--json", *arguments)
        assert answer.status == 0, answer
        assert answer.err == ""
        return answer.json

    def save(self, reason: str = "a state worth keeping", *arguments: str) -> str:
        """Make a checkpoint; its id."""
        return str(self.json("checkpoint", reason, *arguments)["id"])

    def process(
        self, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None
    ) -> Answer:
        """Run the command as a process of its own, standing in the workspace."""
        done = subprocess.run(
            command(*arguments),
            cwd=self.workspace,
            input=stdin.encode(),
            capture_output=True,
            env={**os.environ, **(environment or {})},
            check=False,
        )
        return Answer(done.returncode, _text(done.stdout), _text(done.stderr))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", *arguments]


def run(*arguments: str, stdin: str = "") -> Answer:
    """Run `main` in this process, without a workspace of its own."""
    out, err = _stream(), _stream()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _stdin(stdin):
        status = main(arguments)
    return Answer(status, _written(out), _written(err))


@contextmanager
def _stdin(text: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return _text(stream.buffer.getvalue())


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")

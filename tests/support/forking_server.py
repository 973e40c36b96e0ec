"""A process that forks for each request: the child does what is asked, and may die of it.

    python -m MODULE     a JSON request per line in, a JSON answer per line out

The server has one thread, so a thousand deaths cost seconds. What a child said before it died is in
the answer: fields by name, and `died`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar

ROOT = Path(__file__).resolve().parents[2]

Said: TypeAlias = dict[str, Any]
Say: TypeAlias = Callable[[str, object], None]
Answer = TypeVar("Answer")


class ForkingServer(Generic[Answer]):
    """The test's side: ask, get an answer."""

    def __init__(self, module: str, answer: Callable[..., Answer]) -> None:
        self._answer = answer
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def asked(self, fields: Said) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(fields), file=self._process.stdin, flush=True)
        return self._answer(**json.loads(self._process.stdout.readline()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(run: Callable[[Said, Say], None]) -> None:
    """The server's side; `run` is called in the child."""
    for line in sys.stdin:
        print(json.dumps(_forked(run, json.loads(line))), flush=True)


def _forked(run: Callable[[Said, Say], None], fields: Said) -> Said:
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_fd)
        status = 1
        try:
            run(fields, lambda key, value: _tell(write_fd, key, value))
            status = 0
        finally:
            os._exit(status)
    os.close(write_fd)
    with os.fdopen(read_fd, "rb") as pipe:
        said = dict(json.loads(line) for line in pipe.read().splitlines())
    _, status = os.waitpid(child, 0)
    return {"died": os.WIFSIGNALED(status), **said}


def _tell(pipe: int, key: str, value: object) -> None:
    os.write(pipe, json.dumps([key, value]).encode() + b"\n")

"""One connection to a server, through one `psql` that gets commands line by line.

Results come in the text format of COPY, in which a backslash is always doubled. So a line of `\\.`
is never data, and marks the end of every answer. Commands are built here, and everything else is
sent as data: `psql` never reads anything from outside as a command of its own.

Memory stays flat: data passes through in blocks, both ways.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.components.files import write_all
from holdfast.components.postgres.address import Address, failure, too_slow
from holdfast.components.postgres.tools import StandardError, TimeLimit
from holdfast.ports.component import ComponentProblem

_ARGUMENTS = (
    *("--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--no-password"),
    *("--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose", "--set=SHOW_CONTEXT=never"),
)
_END = b"\\.\n"
_MARK = b"SELECT pg_catalog.chr(92)||'.';\n"
_BLOCK_BYTES = 1 << 20
_ESCAPES = {"\\": "\\", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}


class PsqlConnection:
    """Use as a context: leaving it ends the connection, and rolls back uncommitted work."""

    def __init__(
        self, program: str, address: Address, environment: dict[str, str], limit: TimeLimit
    ) -> None:
        self.address = address
        self._limit = limit
        self._doing = "connecting"
        try:
            self._process = limit.start((program, *_ARGUMENTS), environment, subprocess.PIPE)
        except OSError as error:
            raise ComponentProblem(f"{program} cannot be run: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._input = self._process.stdin.fileno()
        self._output = self._process.stdout.fileno()
        self._errors = StandardError(self._process.stderr)

    def __enter__(self) -> PsqlConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.all()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue
        self._limit.finished(self._process)

    def execute(self, doing: str, *statements: str) -> None:
        """Statements without a relevant answer."""
        self._run(doing, *(_encoded(f"{statement};\n") for statement in statements))

    def execute_script(self, doing: str, script: bytes) -> None:
        """Run statements from elsewhere, sent as one literal, so that only the server reads
        them."""
        if b"\0" in script:
            raise ComponentProblem(f"{self.address.shown}: {doing}: the script is damaged")
        inner, outer = _tags(script)
        block = b"DO LANGUAGE plpgsql " + outer + b" BEGIN EXECUTE " + inner
        block += script + inner + b"; END " + outer + b";\n"
        self._run(doing, block)

    def rows(self, doing: str, query: str) -> list[Any]:
        """The answer to a query with one JSON column."""
        data = b"".join(self.copy_out(doing, f"({query})"))
        lines = data.decode("utf-8", "surrogateescape").split("\n")[:-1]
        return [json.loads(_unescaped(line)) for line in lines]

    def copy_out(self, doing: str, what: str) -> Iterator[bytes]:
        """The data of a table or a query in whole lines, in the text format of COPY."""
        return self._answer(doing, _encoded(f"COPY {what} TO STDOUT;\n"))

    def copy_in(self, doing: str, table: str, pieces: Iterable[bytes]) -> None:
        """The reverse; a piece may end anywhere."""
        lines = _only_data(pieces, self.address, doing)
        self._run(doing, _encoded(f"COPY {table} FROM STDIN;\n"), lines, _END)

    def _run(self, doing: str, *parts: bytes | Iterable[bytes]) -> None:
        for _ in self._answer(doing, *parts):
            continue

    def _answer(self, doing: str, *parts: bytes | Iterable[bytes]) -> Iterator[bytes]:
        self._doing = doing
        for part in (*parts, _MARK):
            for piece in (part,) if isinstance(part, bytes) else part:
                self._send(piece)
        return self._until_end()

    def _send(self, data: bytes) -> None:
        try:
            write_all(self._input, data)
        except BrokenPipeError:
            raise self._failure() from None

    def _until_end(self) -> Iterator[bytes]:
        held = b"\n"  # so that an end marker in the first line looks like any other
        first = 1
        while True:
            block = os.read(self._output, _BLOCK_BYTES)
            if not block:
                raise self._failure()
            held += block
            end = held.find(b"\n" + _END)
            if end >= 0:
                if end + 1 > first:
                    yield held[first : end + 1]
                return
            last = held.rfind(b"\n")
            if last > 0:
                if last > first:
                    yield held[first:last]
                held, first = held[last:], 0

    def _failure(self) -> ComponentProblem:
        self._process.kill()
        said = self._errors.all()
        if self._limit.is_over:
            return too_slow(self.address, self._doing, self._limit.timeout_s)
        return failure(self.address, self._doing, said)


def _only_data(pieces: Iterable[bytes], address: Address, doing: str) -> Iterator[bytes]:
    """The pieces, after checking that no line would end the data early."""
    before = b"\n"
    for piece in pieces:
        if b"\n" + _END in before + piece:
            raise ComponentProblem(f"{address.shown}: {doing}: the stored rows are damaged")
        before = (before + piece)[-len(_END) :]
        yield piece
    if before != b"\n" and not before.endswith(b"\n"):
        raise ComponentProblem(f"{address.shown}: {doing}: the stored rows are truncated")


def _tags(script: bytes) -> tuple[bytes, bytes]:
    """Two dollar-quote tags that the script does not contain."""
    number = 0
    while b"$hf%d" % number in script:
        number += 1
    return b"$hf%di$" % number, b"$hf%do$" % number


def _encoded(text: str) -> bytes:
    """Names may come from a server without an encoding."""
    return text.encode("utf-8", "surrogateescape")


def _unescaped(line: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), line)


def quoted(name: str) -> str:
    """An SQL identifier, with any characters."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string; standard strings have no other escape."""
    return "'" + text.replace("'", "''") + "'"

"""A command at a real (pseudo) terminal: what it shows can be read, and answers can be typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.interfaces.cli.command_line import command

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LIMIT_S = 60


class Screen:
    """Starts a command whose input, output and errors are one terminal."""

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        program: str | None = None,
        columns: int = 120,
        lines: int = 40,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        self.modes_before = termios.tcgetattr(slave)
        self.resize(columns, lines)
        self._process = subprocess.Popen(
            command(*arguments) if program is None else [sys.executable, "-c", program],
            cwd=directory,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", **(environment or {})},
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self._seen = ""
        self.status: int | None = None

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def read_until(self, text: str) -> str:
        """Everything shown up to and with this text."""
        while text not in self._seen:
            more = self._read()
            assert more, f"ended without {text!r}: {self._seen!r}"
            self._seen += more
        end = self._seen.index(text) + len(text)
        shown, self._seen = self._seen[:end], self._seen[end:]
        return shown

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Users of the terminal get a signal."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def modes(self) -> list[object]:
        """How the terminal treats keys now."""
        return list(termios.tcgetattr(self._master))

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def hang_up(self) -> None:
        """The terminal is gone."""
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDONLY)
        self.status = self._process.wait(_LIMIT_S)

    def finish(self) -> str:
        """The rest, until the command has ended; its exit status is then known."""
        shown = self._seen
        while more := self._read():
            shown += more
        self.status = self._process.wait(_LIMIT_S)
        self._seen = ""
        return shown

    @staticmethod
    def plain(shown: str) -> list[str]:
        """The lines without colours and trailing space."""
        return [line.rstrip() for line in _ESCAPES.sub("", shown).split("\n") if line.strip()]

    def _read(self) -> str:
        ready, _, _ = select.select([self._master], [], [], _LIMIT_S)
        assert ready, "the command shows nothing any more and does not end"
        try:
            return os.read(self._master, 65536).decode("utf-8", "replace")
        except OSError:  # Linux: no process has the terminal open now
            return ""


def _take_terminal() -> None:
    """In the child: a session of its own, so that Ctrl-C reaches no other process."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

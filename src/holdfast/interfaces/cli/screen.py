"""Full-screen terminal mode: single key presses, and lines at fixed positions.

Guarantees: however it ends (an error, Ctrl-C, SIGTERM, a hangup), the terminal gets back its modes,
cursor and content. Every line is cut to the width, so nothing wraps or scrolls. Not guaranteed:
anything after SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from holdfast.interfaces.cli.diff_view import COLOURS, display_lines
from holdfast.interfaces.cli.terminal import Terminal, visible_line
from holdfast.interfaces.cli.text_layout import cut
from holdfast.values.classes import NamedTuple

if TYPE_CHECKING:
    from holdfast.api.diffs import Difference

ESCAPE = "escape"
_NAMES = {
    b"[A": "up",
    b"[B": "down",
    b"[C": "right",
    b"[D": "left",
    b"[H": "home",
    b"[F": "end",
    b"[1~": "home",
    b"[4~": "end",
    b"[5~": "page up",
    b"[6~": "page down",
}
_NAMES |= {b"O" + name[1:]: word for name, word in _NAMES.items() if len(name) == 2}
_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
# Terminals that support these draw the frame at once; others ignore them.
_BEGIN_PICTURE, _END_PICTURE = "\x1b[?2026h", "\x1b[?2026l"
_LONGEST_ESCAPE_S = 0.05
_READ_BYTES = 1024
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TAB = 4
MOST_LINES = 20_000
"""More than users scroll."""
RESIZED = "resized"
GONE = "gone"


class KeyReader:
    """Assembles keys that may arrive in parts; unknown sequences are skipped."""

    def __init__(self) -> None:
        self._pending = b""

    @property
    def is_within_key(self) -> bool:
        """Whether more bytes may follow; if none come, it was the escape key itself."""
        return bool(self._pending)

    def feed(self, data: bytes) -> Iterator[str]:
        """The keys in the data; empty data means that the pending bytes are complete."""
        pending = self._pending + data
        self._pending = b""
        while pending:
            if pending[:1] != b"\x1b":
                length = _character_bytes(pending)
                if length > len(pending) and data:
                    self._pending = pending
                    return
                if character := pending[:length].decode("utf-8", "ignore"):
                    yield character
                pending = pending[length:]
                continue
            end = _end_of_sequence(pending)
            if end is None:
                if data:
                    self._pending = pending
                    return
                end = 1
            sequence, pending = pending[1:end], pending[end:]
            name = _NAMES.get(sequence, "") if sequence else ESCAPE
            if name:
                yield name


def _character_bytes(data: bytes) -> int:
    """The length in bytes of the first character, even if some are still to come; 1 if it is not
    UTF-8."""
    lead = data[0]
    length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    return length if all(byte & 0xC0 == 0x80 for byte in data[1:length]) else 1


def _end_of_sequence(data: bytes) -> int | None:
    """The end of the sequence at the start of the data; None if it is not complete yet."""
    if len(data) < 2:
        return None
    if data[1:2] == b"O":
        return 3 if len(data) > 2 else None
    if data[1:2] != b"[":
        return 1
    for position in range(2, len(data)):
        if 0x40 <= data[position] <= 0x7E:
            return position + 1
    return None


class ScreenLine(NamedTuple):
    """A line of text in one colour."""

    text: str
    codes: tuple[str, ...] = ()


class Screen:
    """Reads from one handle and writes to another, both of the same terminal."""

    def __init__(self, keyboard: int, display: int, *, colour: bool) -> None:
        self._keyboard = keyboard
        self._display = display
        self._colour = colour
        self._keys = KeyReader()
        self._waiting: list[str] = []
        self._wake_read, self._wake_write = -1, -1

    @contextmanager
    def full_screen(self) -> Iterator[None]:
        before = termios.tcgetattr(self._keyboard)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        # Otherwise a signal just before the wait would be noticed only after the next key.
        woken_before = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        handlers = {
            number: signal.signal(number, _ignore) for number in (signal.SIGWINCH, signal.SIGCONT)
        }
        try:
            self._set_modes()
            self._write(_ENTER)
            yield
        finally:
            # An impatient user presses Ctrl-C twice; the second one waits until this is done.
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
            with contextlib.suppress(OSError):
                self._write(_LEAVE)
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keyboard, termios.TCSADRAIN, before)
            for number, handler in handlers.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(woken_before)
            os.close(self._wake_read)
            os.close(self._wake_write)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _set_modes(self) -> None:
        """Read keys immediately, without echo. Ctrl-Z and Ctrl-\\ are disabled, because they would
        leave the terminal in this mode."""
        modes = termios.tcgetattr(self._keyboard)
        modes[3] &= ~(termios.ICANON | termios.ECHO)
        modes[6] = list(modes[6])
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        modes[6][termios.VSUSP] = modes[6][termios.VQUIT] = b"\0"
        termios.tcsetattr(self._keyboard, termios.TCSADRAIN, modes)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines; a default if the terminal does not report them."""
        try:
            columns, lines = os.get_terminal_size(self._display)
        except OSError:
            return 80, 24
        return columns or 80, lines or 24

    def has_key(self) -> bool:
        """Whether `next_key` would return immediately."""
        if self._waiting or self._keys.is_within_key:
            return True
        return bool(select.select([self._keyboard, self._wake_read], [], [], 0)[0])

    def next_key(self) -> str:
        """Waits for a key; `RESIZED`, or `GONE` if the keyboard is gone."""
        while not self._waiting:
            timeout = _LONGEST_ESCAPE_S if self._keys.is_within_key else None
            ready, _, _ = select.select([self._keyboard, self._wake_read], [], [], timeout)
            if self._wake_read in ready:
                return self._handle_wakeup()
            data = b""
            if ready:
                try:
                    data = os.read(self._keyboard, _READ_BYTES)
                except OSError:
                    return GONE
                if not data:
                    return GONE
            self._waiting += self._keys.feed(data)
        return self._waiting.pop(0)

    def _handle_wakeup(self) -> str:
        if signal.SIGCONT in os.read(self._wake_read, _READ_BYTES):
            # After a stop and continue, the shell has used the terminal.
            self._set_modes()
            self._write(_ENTER)
        return RESIZED

    def draw(self, lines: Sequence[ScreenLine]) -> None:
        """Draw from the top, and clear everything below the last line."""
        columns, rows = self.size
        # Clear before writing: after a full line, clearing would erase its last character.
        shown = "\r\n".join(f"\x1b[K{self._painted(line, columns)}" for line in lines[:rows])
        below = "\r\n\x1b[J" if len(lines) < rows else ""
        self._write(f"{_BEGIN_PICTURE}\x1b[H{shown}{below}{_END_PICTURE}")

    def _painted(self, line: ScreenLine, columns: int) -> str:
        text = cut(line.text, columns)
        if not line.codes or not self._colour:
            return text
        return f"\x1b[{';'.join(line.codes)}m{text}\x1b[0m"

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._display, data) :]


def _ignore(number: int, frame: FrameType | None) -> None:
    """The wake-up handle reports the signal, but only if there is a handler."""


def difference_lines(terminal: Terminal, difference: Difference) -> Iterator[ScreenLine]:
    """The difference as `diff` shows it."""
    for line in display_lines(terminal, difference):
        yield ScreenLine(visible_line(line.data).expandtabs(_TAB), COLOURS[line.style])

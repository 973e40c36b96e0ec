"""The terminal: colours if supported, and text without control characters.

`NO_COLOR` turns colours off, `FORCE_COLOR` turns them on in a pipe, and `TERM=dumb` has none.
`--color` overrides all of them. The layout for people (tables, relative times) is used on a
terminal or if colours are forced. A pipe gets plain lines in a stable format.

Guarantee: `visible` leaves no control character, and none that would reorder a line. Its result
cannot be converted back; programs read `--json`.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

BOLD = "1"
DIM = "2"
RED = "31"
GREEN = "32"
YELLOW = "33"
BLUE = "34"
MAGENTA = "35"
CYAN = "36"
ORANGE = "38;5;208"

_NARROWEST = 40
_WITHOUT_TERMINAL = 100
_RESET = "\x1b[0m"
# Control characters, line and paragraph separators, text direction marks, and bytes that are not
# UTF-8 (as lone surrogates).
_UNSAFE = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
_COLOUR = "\x1b\\[[0-9;]*m"
_QUOTED_BYTE = r"\\udc([89a-f][0-9a-f])"
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def visible(text: str) -> str:
    """The text with terminal control characters written out, as in `\\x1b`."""
    if text.isascii() and text.isprintable():
        return text  # almost always; compiling a pattern takes longer than many a command
    return re.sub(_UNSAFE, _written_out, text)


def unpainted(text: str) -> str:
    """The text without the colours from `paint`."""
    return re.sub(_COLOUR, "", text) if "\x1b" in text else text


def visible_bytes(data: bytes) -> str:
    """Like `visible`, for bytes that need not be UTF-8, such as a path."""
    return visible(data.decode("utf-8", "surrogateescape"))


def visible_line(data: bytes) -> str:
    """A line of a file: like `visible`, but tabs are kept."""
    return "\t".join(visible(part) for part in data.decode("utf-8", "surrogateescape").split("\t"))


def _with_visible_bytes(message: str) -> str:
    """A message may quote user input; a byte that is not UTF-8 is shown as that byte."""
    return re.sub(_QUOTED_BYTE, r"\\x\1", visible(message))


def _written_out(match: re.Match[str]) -> str:
    character = match[0]
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class OutputFailed(OSError):
    """Standard output could not be written: the answer is lost, but not the work."""


class _output_errors:  # noqa: N801 - used like a function
    """Turns an output error into one that is not mistaken for a failure of the work. A class,
    because it surrounds every line."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise OutputFailed(error.errno, error.strerror) from error


class Terminal:
    """Standard output and standard error, with the capabilities of each."""

    def __init__(
        self,
        out: TextIO | None = None,
        err: TextIO | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.out = out or _or_null_stream(sys.stdout)
        self.err = err or _or_null_stream(sys.stderr)
        self._environment = os.environ if environment is None else environment
        for stream in (self.out, self.err):
            if hasattr(stream, "reconfigure"):
                # An old locale must not turn a tick mark into a crash.
                stream.reconfigure(errors="backslashreplace")
        self.out_colour = self._has_colour(self.out)
        self.err_colour = self._has_colour(self.err)
        self.for_people = self._is_terminal(self.out) or self._forced()
        self.subdirectory = b""
        self._hushed = False
        self._sized_by = self.out
        self.out_is_live = self._is_terminal(self.out) and not self._is_dumb()
        self.err_is_live = self._is_terminal(self.err) and not self._is_dumb()

    def colour(self, when: str) -> None:
        """Apply `--color`; `always` also uses the layout for people, even in a pipe."""
        if when == "always":
            self.out_colour = self.err_colour = self.for_people = True
        elif when == "never":
            self.out_colour = self.err_colour = False

    def quieten(self, *, answers: bool) -> None:
        """`--quiet`: no notes; with `answers`, nothing on standard output either."""
        self._hushed = True
        self.err_is_live = False
        if answers:
            self.out = _or_null_stream(None)

    @contextmanager
    def redirected(self, stream: TextIO) -> Iterator[None]:
        """Standard output goes to this stream, with the same layout."""
        before, self.out = self.out, stream
        try:
            yield
            self.flush()
        finally:
            self.out = before

    @property
    def width(self) -> int:
        """`COLUMNS`, or the terminal's width, or a default page width."""
        asked = self._environment.get("COLUMNS", "")
        if asked.isascii() and asked.isdigit():
            return max(int(asked), _NARROWEST)
        try:
            return max(os.get_terminal_size(self._sized_by.fileno()).columns, _NARROWEST)
        except (OSError, ValueError):
            return _WITHOUT_TERMINAL

    @property
    def has_light_background(self) -> bool:
        """As far as the terminal reports it; most report nothing and are dark."""
        return self._environment.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")

    def stderr_copy(self) -> Terminal:
        """A copy that writes to standard error, for output that is not the answer itself."""
        same = Terminal(self.err, self.err, self._environment)
        same.subdirectory = self.subdirectory
        same.err_colour = same.out_colour = self.err_colour
        return same

    def path(self, path: bytes) -> str:
        """A workspace path as users type it in the current directory."""
        return visible_bytes(self._relative(path))

    def typed(self, path: bytes) -> str:
        """Like `path`, quoted as one word of a command line."""
        from holdfast.domain.paths import typed

        return typed(self._relative(path))

    def _relative(self, path: bytes) -> bytes:
        if not self.subdirectory:
            return path
        return os.path.relpath(b"/" + path, b"/" + self.subdirectory)

    @property
    def yes_flag(self) -> str:
        """Added to a suggested command that asks first, if there is no terminal to ask on."""
        return "" if self.for_people else " --yes"

    def paint(self, text: str, *codes: str) -> str:
        """The text in these colours, if standard output supports them."""
        return _painted(text, codes) if self.out_colour and text and codes else text

    @property
    def tick(self) -> str:
        return self.paint("✓", GREEN)

    @property
    def cross(self) -> str:
        return self.paint("✗", RED)

    def line(self, text: str = "", *codes: str) -> None:
        self.write(self.paint(text, *codes) + "\n")

    def sentence(self, text: str, *codes: str, hang: int | None = None) -> None:
        """A line that may be longer than a row. On a terminal it is wrapped between words and
        continues in column `hang`, by default slightly indented."""
        text = self.paint(text, *codes)
        self.line(self._wrapped(text, hang) if self.for_people else text)

    def write(self, text: str) -> None:
        """Write to standard output; raises `OutputFailed` if it no longer accepts writes."""
        with _output_errors():
            self.out.write(text)

    def write_bytes(self, data: bytes) -> None:
        """Write exactly these bytes; text must be flushed before."""
        with _output_errors():
            self.out.buffer.write(data)

    def note(self, text: str, *codes: str) -> None:
        """A line on standard error, hidden by `--quiet`."""
        if self._hushed:
            return
        self._say(_painted(text, codes) if self.err_colour and codes else text)

    def warn(self, *texts: str) -> None:
        label = _painted("warning:", (BOLD, YELLOW)) if self.err_colour else "warning:"
        for text in texts:
            self._say(f"{label} {visible(text)}")

    def warn_or_note(self, warning: str, *, answering: bool = False) -> None:
        """Print a warning or a remark. With `answering`, a remark is part of the answer."""
        from holdfast.domain.wording import Remark

        if isinstance(warning, Remark) and answering:
            self.sentence(f"  {visible(warning)}", DIM)
        elif isinstance(warning, Remark):
            self.note(f"  {visible(warning)}", DIM)
        else:
            self.warn(warning)

    def fail(self, message: str, hint: str | None) -> None:
        """Print a problem and its hint."""
        label = _painted("error:", (BOLD, RED)) if self.err_colour else "error:"
        self._say(f"{label} {_with_visible_bytes(message)}")
        if hint:
            label = _painted("hint:", (BOLD, CYAN)) if self.err_colour else "hint:"
            self._say(f"{label} {_with_visible_bytes(hint)}")

    def _say(self, text: str) -> None:
        """Write to standard error, wrapped between words if that is a terminal."""
        is_terminal = self._is_terminal(self.err)
        self.err.write((self._wrapped(text) if is_terminal else text) + "\n")

    def _wrapped(self, text: str, hang: int | None = None) -> str:
        if len(text) <= self.width and text.isascii():
            return text  # almost always
        from holdfast.interfaces.cli.text_layout import wrap_sentence

        return wrap_sentence(text, self.width, hang)

    def flush(self) -> None:
        with _output_errors():
            self.out.flush()
        self.err.flush()

    @staticmethod
    def _is_terminal(stream: TextIO) -> bool:
        try:
            return stream.isatty()
        except ValueError:  # closed
            return False

    def _is_dumb(self) -> bool:
        return self._environment.get("TERM") == "dumb"

    def _forced(self) -> bool:
        return self._environment.get("FORCE_COLOR", "") not in ("", "0")

    def _has_colour(self, stream: TextIO) -> bool:
        if self._environment.get("NO_COLOR"):
            return False
        return self._forced() or (self._is_terminal(stream) and not self._is_dumb())


def _or_null_stream(stream: TextIO | None) -> TextIO:
    """The stream, or a null stream if the process was started without it."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8") if stream is None else stream


def _painted(text: str, codes: tuple[str, ...]) -> str:
    return f"\x1b[{';'.join(codes)}m{text}{_RESET}"

"""Reads a transcript from where the last reading ended, message by message.

    verify the position → read pieces up to the size at opening → lines → objects → messages in the
    agent's format → without repeated ones

Lines. A program may still be writing the file. A last line without its end is held back unless it
parses. Bytes appended meanwhile belong to the next reading, so every reading ends. Memory is
bounded by the longest accepted line. A longer one is skipped and counted, and the position
remembers being inside it. Only regular files are opened: a FIFO or a device, even behind a symlink,
is refused without waiting for it.

A position holds an offset at the end of a line, and fingerprints of two parts of the file: its
beginning, and the bytes right before the offset. If the file was replaced, truncated or rewritten,
one of them differs or the file is too short. It is then read from its beginning (`restarted`).
Not guaranteed: that changes are noticed if they are only between the two parts.

Messages. Lines that are half written, not JSON, too long or of an unknown kind are skipped and
counted. After each message `position` is exact, so a caller may stop anywhere and continue later,
even in another process. Each `source_key` is returned once: a reading remembers those of the last
65,536 messages, and `known` says which ones the caller already has. The same key with different
content in one reading is another message, and gets its own key.
Not guaranteed: that two equal messages without id and time are distinguished.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from blake3 import blake3

from holdfast.domain.errors import NotFound, Refused
from holdfast.domain.transcript_messages import MessageOf, TranscriptMessage, content_key

HEAD_BYTES = 4096
TAIL_BYTES = 1024
_DIGEST_BYTES = 16
LONGEST_LINE_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_REMEMBERED = 65_536
_HINT = "use the transcript file that the agent writes"

ReadAt = Callable[[int, int], bytes]
"""Reads bytes of a file: how many, from which offset."""


@dataclass(frozen=True, slots=True)
class TranscriptPosition:
    """Where to continue. `in_long_line`: skip the rest of the line there."""

    offset: int
    head: str
    tail: str
    in_long_line: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TranscriptPosition:
        return cls(data["offset"], data["head"], data["tail"], data["in_long_line"])

    def fits(self, size: int, read_at: ReadAt) -> bool:
        """Whether the file still begins with the bytes that were read."""
        if not 0 <= self.offset <= size:
            return False
        tail_bytes = min(self.offset, TAIL_BYTES)
        return (
            fingerprint(read_at(min(self.offset, HEAD_BYTES), 0)) == self.head
            and fingerprint(read_at(tail_bytes, self.offset - tail_bytes)) == self.tail
        )


def fingerprint(data: bytes) -> str:
    return blake3(data).digest(length=_DIGEST_BYTES).hex()


class TranscriptLines:
    """An iterator of complete lines, without line ends. Close it, or use it as a context."""

    def __init__(
        self,
        path: Path,
        since: TranscriptPosition | None = None,
        *,
        is_whole: Callable[[bytes], bool] = lambda line: False,
    ) -> None:
        self._path = path
        self._is_whole = is_whole
        self._fd = _open_regular(path)
        try:
            self._size = os.fstat(self._fd).st_size
            self.restarted = since is not None and not since.fits(self._size, self._read_at)
            begin = since if since is not None and not self.restarted else None
            self._offset = begin.offset if begin else 0
            self._in_long_line = begin.in_long_line if begin else False
            self._head = self._read_at(min(self._offset, HEAD_BYTES), 0)
            tail_bytes = min(self._offset, TAIL_BYTES)
            self._tail = self._read_at(tail_bytes, self._offset - tail_bytes)
        except BaseException:
            self.close()
            raise
        self.too_long = 0

    @property
    def position(self) -> TranscriptPosition:
        """After the last returned line."""
        return TranscriptPosition(
            self._offset, fingerprint(self._head), fingerprint(self._tail), self._in_long_line
        )

    def __iter__(self) -> Iterator[bytes]:
        pending = bytearray()
        searched = 0
        ahead = self._offset
        while ahead < self._size:
            piece = self._read_at(min(_PIECE_BYTES, self._size - ahead), ahead)
            if not piece:
                break  # truncated meanwhile
            ahead += len(piece)
            pending += piece
            while (end := pending.find(b"\n", searched)) >= 0:
                line = bytes(memoryview(pending)[: end + 1])
                del pending[: end + 1]
                searched = 0
                self._pass(line)
                if self._in_long_line:
                    self._in_long_line = False
                elif len(line) > LONGEST_LINE_BYTES:
                    self.too_long += 1
                else:
                    yield line[:-1]
            searched = len(pending)
            if self._in_long_line or searched > LONGEST_LINE_BYTES:
                self.too_long += not self._in_long_line
                self._in_long_line = True
                self._pass(bytes(pending))
                pending.clear()
                searched = 0
        if pending and self._is_whole(bytes(pending)):
            self._pass(bytes(pending))
            yield bytes(pending)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _pass(self, data: bytes) -> None:
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        self._offset += len(data)

    def _read_at(self, count: int, offset: int) -> bytes:
        try:
            return os.pread(self._fd, count, offset)
        except OSError as error:
            raise _trouble(self._path, error) from error


def _open_regular(path: Path) -> int:
    """The file, after checking its type: opening a device can have side effects."""
    try:
        _require_regular(path, os.stat(path))
        # Non-blocking, because the file may have been replaced by a FIFO.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _trouble(path, error) from error
    try:
        _require_regular(path, os.fstat(fd))
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise
    return fd


def _require_regular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{path} is not a regular file", hint=_HINT)


def _trouble(path: Path, error: OSError | ValueError) -> NotFound | Refused:
    if isinstance(error, FileNotFoundError | NotADirectoryError | ValueError):
        return NotFound(f"no such transcript: {str(path)!r}", hint=_HINT)
    return Refused(f"cannot read the transcript {path}: {error.strerror}", hint=_HINT)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Lines without a message: not JSON objects, too long, repeated, or of another kind."""

    malformed: int = 0
    too_long: int = 0
    repeated: int = 0
    other: int = 0


class TranscriptReading:
    """One pass over a transcript. Close it, or use it as a context.

    >>> with TranscriptReading(path, agent.transcript_message, since=None) as reading:
    ...     for message in reading:
    ...         print(message.role, message.content)
    ...     end = reading.position
    """

    def __init__(
        self,
        path: Path,
        message_of: MessageOf,
        since: TranscriptPosition | None = None,
        *,
        known: Callable[[str], bool] = lambda source_key: False,
    ) -> None:
        self._message_of = message_of
        self._known = known
        self._given: OrderedDict[str, str] = OrderedDict()
        self._malformed = self._repeated = self._other = 0
        self._lines = TranscriptLines(path, since, is_whole=lambda line: _parse(line) is not None)

    @property
    def restarted(self) -> bool:
        """The file is not the one that was read before, so it is read from its beginning."""
        return self._lines.restarted

    @property
    def position(self) -> TranscriptPosition:
        """After the last returned message; at the end, after everything."""
        return self._lines.position

    @property
    def passed_over(self) -> PassedOver:
        return PassedOver(self._malformed, self._lines.too_long, self._repeated, self._other)

    def __iter__(self) -> Iterator[TranscriptMessage]:
        for line in self._lines:
            if not line.strip():
                continue
            try:
                message = self._new_message(line)
            except RecursionError:
                self._malformed += 1  # nested too deeply to be intended
                continue
            if message is not None and not self._known(message.source_key):
                yield message

    def close(self) -> None:
        self._lines.close()

    def __enter__(self) -> TranscriptReading:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_message(self, line: bytes) -> TranscriptMessage | None:
        parsed = _parse(line)
        if parsed is None:
            self._malformed += 1
            return None
        message = self._message_of(parsed)
        if message is None:
            self._other += 1
            return None
        return self._once(message)

    def _once(self, message: TranscriptMessage) -> TranscriptMessage | None:
        """The message with a new key; None if it was returned before."""
        said = content_key(message.role, message.content, message.tool_calls, message.tool_use_ids)
        before = self._given.get(message.source_key)
        if before is not None and before != said:
            message = replace(message, source_key=f"{message.source_key}#{said}")
            before = self._given.get(message.source_key)
        if before is not None:
            self._repeated += 1
            return None
        self._given[message.source_key] = said
        if len(self._given) > _REMEMBERED:
            self._given.popitem(last=False)
        return message


def _parse(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line, or None. Bytes that are not UTF-8 become replacement
    characters."""
    try:
        parsed = json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None

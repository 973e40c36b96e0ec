"""A transcript read from where the last reading ended, message by message.

    lines → objects → messages of the agent's format → without those that were given out before

Whatever a file holds, reading it goes on: lines that are half written, not JSON, too long or of an
unknown kind are passed over and counted. After each message `position` is exact, so a caller may
stop anywhere and go on later, also in another process. A file that does not begin with what was
read before is read again from its beginning (`restarted`).

Messages are given out once for each `source_key`: within a reading those of the last 65,536
messages are remembered, and `known` tells which ones the caller has from earlier. The same key
with another content in one reading is another message and gets a key of its own.
Not guaranteed: telling two messages apart that have neither id nor time and say the same.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.domain.transcript_messages import MessageOf, TranscriptMessage, content_key
from holdfast.engine.conversation.transcripts.lines import TranscriptLines, TranscriptPosition

_REMEMBERED = 65_536


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Lines that gave no message: not JSON objects, too long, repeated, or about something else."""

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
        """The file is not the one that was read before: it is read from its beginning."""
        return self._lines.restarted

    @property
    def position(self) -> TranscriptPosition:
        """Behind the last message given out; at the end, behind all there was."""
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
                self._malformed += 1  # nested too deeply for anybody to have meant it
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
        """The message under a key that was not given out yet; None when it was."""
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
    """The object on a line. Bytes that are not UTF-8 stand as replacement characters in its texts;
    where they make it anything but an object, there is none."""
    try:
        parsed = json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None

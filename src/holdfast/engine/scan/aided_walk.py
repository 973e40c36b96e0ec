"""The first walk of a large workspace, with somebody who walks it from its end.

    read on until it is clear that there is much to read → let the other one begin
    a directory of which the other one has spoken        → walk it as one that is remembered
    the first of those                                   → the other one may stop: all behind it
                                                           is done

Guarantee: the result is that of a walk alone; every directory and file of which the other one
spoke is looked at again here, by the rules for what an earlier scan remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.ids import Digest
from holdfast.engine.scan.directory_state import DirectoryState, decode_state
from holdfast.engine.scan.file_capture import CapturedContent, FileCapture
from holdfast.engine.scan.stable_read import StableRead
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectWriter
from holdfast.ports.reading_aid import ReadingAid

if TYPE_CHECKING:
    from holdfast.engine.scan.scan_meter import ScanMeter

_WORTH_AID_FILES = 1_200
"""By then the other one's start, a tenth of a second, is less than what it saves."""

_RECEIVE_EVERY_FILES = 16


class AidedCapture(FileCapture):
    """Reads files as ever, and looks after the aid now and then."""

    def __init__(
        self,
        fs: Filesystem,
        writer: ObjectWriter,
        started_ns: int,
        meter: ScanMeter | None,
        aid: ReadingAid,
        root_fd: int,
    ) -> None:
        super().__init__(fs, writer, started_ns, meter)
        self._aid = aid
        self._root_fd = root_fd
        self._read_files = 0

    def capture(
        self, dir_fd: int, name: bytes, size: int, previous: Digest | None
    ) -> StableRead[CapturedContent]:
        self._read_files += 1
        if self._read_files == _WORTH_AID_FILES:
            self._aid.begin(self._root_fd, self._started_ns)
        if self._read_files % _RECEIVE_EVERY_FILES == 0:
            self._aid.receive()
        return super().capture(dir_fd, name, size, previous)

    def remembered(self, path: bytes) -> DirectoryState | None:
        """A directory as the aid found it, its tree not built yet. An aid that was started from
        the files of another version may speak in another layout: it is not listened to then."""
        told = self._aid.directory(path)
        if told is None:
            return None
        self._aid.stop()
        try:
            state = decode_state(told)
        except ValueError:
            return None
        state.digest = None
        return state

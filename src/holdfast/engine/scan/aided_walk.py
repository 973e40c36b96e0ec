"""The first walk of a large workspace, helped by a second process that walks it backwards.

    enough files to be worth it         → start the second process
    a directory that it has reported    → walk it like a remembered one
    the first of those                  → stop it: everything behind is done

The backward walk visits the subdirectories of a directory first, last one first, then its files. It
reports each finished directory and forgets it. Some files are left to the main walk: those of the
top directory, databases, files stored in pieces, and names that change their type. A directory with
such a file is reported as one to be surveyed again.

Guarantee: the result equals that of a single walk. Every reported directory and file is checked
again, by the rules for remembered scans.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.domain.checkpoints import Skipped
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.engine.scan.databases import TypeChanged, has_base_name, is_part
from holdfast.engine.scan.directory_state import (
    DirectoryState,
    KnownChild,
    decode_state,
    encode_state,
)
from holdfast.engine.scan.file_capture import CHUNK_ABOVE_BYTES, CapturedContent, FileCapture
from holdfast.engine.scan.policy import CapturePolicy, DirectoryRules
from holdfast.engine.scan.stable_read import StableRead
from holdfast.engine.scan.survey import Place, Survey
from holdfast.engine.scan.walker import Walker, nothing_known
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.objects import ObjectWriter
from holdfast.ports.scan_hints import ReadingAid

if TYPE_CHECKING:
    from holdfast.engine.scan.scan_meter import ScanMeter

_WORTH_AID_FILES = 1_200
"""From here on, the second process saves more than the 0.1 s that its start takes."""

_RECEIVE_EVERY_FILES = 16
_NOT_BUILT = Digest(bytes(DIGEST_BYTES))


class AidedCapture(FileCapture):
    """Reads files as usual, and regularly receives the second process's reports."""

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
        """A directory as the second process found it, without its tree. A report in an unknown
        layout, from a process started from another version's files, is ignored."""
        reported = self._aid.directory(path)
        if reported is None:
            return None
        self._aid.stop()
        try:
            state = decode_state(reported)
        except ValueError:
            return None
        state.digest = None
        return state


class WalksMet(Exception):
    """The other walk has reached directories that this one has finished."""


class BackwardSurvey(Survey):
    """Names are judged in order, but visited afterwards, the last directory first."""

    walker: BackwardWalker

    def __init__(self, walker: Walker, place: Place) -> None:
        super().__init__(walker, place)
        self._below: list[tuple[bytes, DirectoryRules, str]] = []
        self._own: list[tuple[bytes, bytes, os.stat_result]] = []

    def _enter(self, name: bytes, rules: DirectoryRules, ignored_by: str) -> None:
        self._below.append((name, rules, ignored_by))

    def _take_file(self, name: bytes, path: bytes, status: os.stat_result) -> None:
        if status.st_size > CHUNK_ABOVE_BYTES or is_part(self, name):
            self._cannot_settle = True
        else:
            self._own.append((name, path, status))

    def _is_companion(self, name: bytes, status: os.stat_result) -> bool:
        """Only the file beside it can tell, so such files are left to the main walk."""
        if has_base_name(self, name):
            self._cannot_settle = True
        return False

    def _take_deferred(self) -> None:
        try:
            for directory in reversed(self._below):
                super()._enter(*directory)
            for waiting in self._own if self.path else ():
                self.walker.stop_if_met()
                super()._take_file(*waiting)
        except TypeChanged:
            self._cannot_settle = True


class BackwardWalker(Walker):
    """`report` gets each finished directory; `is_met` says whether the main walk has arrived."""

    surveys = BackwardSurvey

    def __init__(
        self,
        fs: Filesystem,
        capture: FileCapture,
        policy: CapturePolicy,
        started_ns: int,
        report: Callable[[bytes, bytes], None],
        is_met: Callable[[], bool],
    ) -> None:
        super().__init__(fs, capture, policy, nothing_known, started_ns)
        self._report = report
        self._is_met = is_met

    def visit(self, place: Place, parent: DirectoryRules) -> DirectoryState | Skipped:
        self.stop_if_met()
        state = super().visit(place, parent)
        if isinstance(state, DirectoryState) and place.path:
            # The subtrees have been reported; keep only their names, to save memory.
            state.children = {
                name: KnownChild(child.key.mode, _NOT_BUILT)
                for name, child in state.children.items()
                if isinstance(child, DirectoryState)
            }
            self._report(place.path, encode_state(state))
        return state

    def stop_if_met(self) -> None:
        """`WalksMet` if nothing is left to do; the main walk is then waiting for this one."""
        if self._is_met():
            raise WalksMet

"""Walking a workspace from its end, for somebody who walks it from the beginning.

    of each directory: the subdirectories first, the last one first; then its own files
    a directory that is done is told, and forgotten

Left to the other walk: the files of the uppermost directory, files that are stored in pieces,
databases, and whatever turns into something else meanwhile. A directory in which something is left
is told as one that has to be surveyed again. Nothing that is told is believed unseen.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from holdfast.domain.checkpoints import Skipped
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.engine.scan.databases import Swapped, has_base_name, is_part
from holdfast.engine.scan.directory_state import DirectoryState, KnownChild, encode_state
from holdfast.engine.scan.file_capture import CHUNK_ABOVE_BYTES, FileCapture
from holdfast.engine.scan.policy import CapturePolicy, DirectoryRules
from holdfast.engine.scan.required_trees import RequiredTree
from holdfast.engine.scan.survey import Survey
from holdfast.engine.scan.walker import Walker
from holdfast.ports.filesystem import Filesystem

_NOT_BUILT = Digest(bytes(DIGEST_BYTES))


class WalksMet(Exception):
    """The other walk has come to what this one has done."""


class BackwardSurvey(Survey):
    """The names are seen in their order; what stands for them is taken afterwards."""

    walker: BackwardWalker

    def __init__(
        self,
        walker: Walker,
        fd: int,
        path: bytes,
        previous: DirectoryState | None,
        wanted: RequiredTree | None,
        depth: int,
    ) -> None:
        super().__init__(walker, fd, path, previous, wanted, depth)
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
        """Only a look at the file beside it tells, and such files are left to the other walk."""
        if has_base_name(self, name):
            self._cannot_settle = True
        return False

    def _take_waiting(self) -> None:
        try:
            for directory in reversed(self._below):
                super()._enter(*directory)
            for waiting in self._own if self.path else ():
                self.walker.go_on()
                super()._take_file(*waiting)
        except Swapped:
            self._cannot_settle = True


class BackwardWalker(Walker):
    """`tell` gets each directory that is done; `is_met` says that the other walk has come there."""

    surveys = BackwardSurvey

    def __init__(
        self,
        fs: Filesystem,
        capture: FileCapture,
        policy: CapturePolicy,
        started_ns: int,
        tell: Callable[[bytes, bytes], None],
        is_met: Callable[[], bool],
    ) -> None:
        super().__init__(fs, capture, policy, _nothing_known, started_ns)
        self._tell = tell
        self._is_met = is_met

    def visit(
        self,
        fd: int,
        path: bytes,
        previous: DirectoryState | None,
        parent: DirectoryRules,
        wanted: RequiredTree | None,
        depth: int,
    ) -> DirectoryState | Skipped:
        self.go_on()
        state = super().visit(fd, path, previous, parent, wanted, depth)
        if isinstance(state, DirectoryState) and path:
            # What is below has been told, and takes no more room than its name from here on.
            state.children = {
                name: KnownChild(child.key.mode, _NOT_BUILT)
                for name, child in state.children.items()
                if isinstance(child, DirectoryState)
            }
            self._tell(path, encode_state(state))
        return state

    def go_on(self) -> None:
        """`WalksMet` when there is nothing left to do: the other walk is waiting for us then."""
        if self._is_met():
            raise WalksMet


def _nothing_known(path: bytes) -> DirectoryState | None:
    return None

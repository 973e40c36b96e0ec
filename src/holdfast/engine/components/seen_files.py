"""What a scan was told of files, for components that would otherwise ask again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.domain.paths import join
from holdfast.engine.scan.directory_state import (
    BEING_WRITTEN,
    NUMBERS,
    UNSETTLED,
    DirectoryState,
)
from holdfast.ports.component import SeenDirectory, SeenFile


def seen_directories(root: DirectoryState) -> Iterator[SeenDirectory]:
    waiting = [(b"", root)]
    while waiting:
        path, state = waiting.pop()
        if state.names:
            yield SeenDirectory(path, (state.names, state.rows), partial(_seen_files, state))
        for name, child in state.children.items():
            if isinstance(child, DirectoryState):  # else nothing of it was looked at
                waiting.append((join(path, name), child))


def _seen_files(state: DirectoryState) -> dict[bytes, SeenFile]:
    rows = NUMBERS.iter_unpack(state.rows)
    return {
        name: SeenFile(*row[1:5])
        for name, row in zip(state.file_names(), rows, strict=True)
        if not row[5] & (UNSETTLED | BEING_WRITTEN)
    }

"""Captures external files: unchanged according to the file system, or read again.

A file is read until two reads agree. Unreadable and too large files are left out and listed with
the reason. The first checkpoint that lacks such a file is partial, because it may be the last one
before the file is gone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from blake3 import blake3

from holdfast.components.external.named_paths import (
    BUILT_IN,
    LARGEST_FILE_BYTES,
    MOST_BYTES,
    Entry,
    LeftOut,
    WalkResult,
    display_path,
    opened_directory,
)
from holdfast.components.external.states import INDEX, MOST_LISTED, content_name, encode_index
from holdfast.components.files import READ_FLAGS, blocks_of, change_stamp
from holdfast.domain.component_states import ComponentState
from holdfast.domain.ids import Digest
from holdfast.domain.wording import count_words
from holdfast.ports.component import Captured, CaptureRequest, ContentSink

_TRIES = 3
_MOST_PROBLEMS = 20
_RACY_NS = 2_000_000_000
"""A change within one tick of a coarse file system clock may not change the times."""


def capture(request: CaptureRequest, sink: ContentSink, look: WalkResult) -> Captured | None:
    signature = _signature(look, request.now_ns)
    previous = request.previous
    # A checkpoint that is otherwise the same does not repeat the list of missing files.
    known = None if previous is None or previous.problems else previous.notes.get("signature")
    if signature is not None and known == signature:
        return None
    taken: list[Entry] = []
    total_bytes = 0
    for entry in sorted(look.entries.values(), key=lambda entry: entry.path):
        try:
            data = _content(entry, MOST_BYTES - total_bytes)
        except LeftOut as reason:
            look.left_out[entry.path] = str(reason)
            continue
        if data is not None:
            sink.add(content_name(entry.path), [data])
            total_bytes += len(data)
        taken.append(entry)
    if taken:
        sink.add(INDEX, [encode_index(taken, look)])
    left_out = [f"{display_path(path)}: {reason}" for path, reason in look.left_out.items()]
    facts: dict[str, Any] = {
        "paths": [display_path(entry.path) for entry in taken[:MOST_LISTED]],
        "more": max(0, len(taken) - MOST_LISTED),
        "bytes": total_bytes,
        "left_out": left_out[:MOST_LISTED],
    }
    return Captured(facts, tuple(_problems(look, previous)), {"signature": signature})


def _problems(look: WalkResult, previous: ComponentState | None) -> Iterator[str]:
    """Files that cannot be restored, reported by the first checkpoint without them."""
    known = () if previous is None else previous.facts.get("left_out", ())
    lost = [
        f"{display_path(path)}: {reason}"
        for path, reason in look.left_out.items()
        if not reason.startswith(BUILT_IN)
    ]
    new = [text for text in lost if text not in known]
    yield from (f"not captured: {text}" for text in new[:_MOST_PROBLEMS])
    if len(new) > _MOST_PROBLEMS:
        more = count_words(len(new) - _MOST_PROBLEMS, "path")
        yield f"not captured: {more} more outside the workspace"


def _signature(look: WalkResult, now_ns: int) -> str | None:
    """Equal only if nothing has changed; None if that is unknown."""
    digest = blake3()
    digest.update(repr(look.left_out).encode())
    for path in sorted(look.entries):
        entry = look.entries[path]
        s = entry.status
        if s is not None and max(s.st_mtime_ns, s.st_ctime_ns) > now_ns - _RACY_NS:
            return None
        fields = (path, entry.identity, entry.target, entry.directory_owner)
        digest.update(repr(fields).encode())
    return digest.hexdigest()


def _content(entry: Entry, room_bytes: int) -> bytes | None:
    """An entry's content to store; None if there is none besides its name."""
    if entry.target is not None:
        return entry.target
    if entry.status is None or entry.is_directory:
        return None
    if entry.status.st_size > room_bytes:
        raise LeftOut("the files together are too large")
    data = read_file(entry.path)
    if data is None:
        raise LeftOut("it cannot be read, or a program is writing it")
    return data


def read_file(path: bytes) -> bytes | None:
    """The bytes of a regular file that is stable and not too large; else None."""
    try:
        with opened_directory(path.rpartition(b"/")[0]) as dir_fd:
            fd = os.open(path.rpartition(b"/")[2], READ_FLAGS, dir_fd=dir_fd)
    except OSError:
        return None
    try:
        for _ in range(_TRIES):
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode) or before.st_size > LARGEST_FILE_BYTES:
                return None
            data = b"".join(blocks_of(fd, before.st_size + 1))
            if change_stamp(os.fstat(fd)) == change_stamp(before) and len(data) == before.st_size:
                return data
        return None
    except OSError:
        return None
    finally:
        os.close(fd)


def digest_at(entry: Entry) -> Digest | None:
    """The digest of the current content; None if unknown."""
    data = entry.target if entry.target is not None else read_file(entry.path)
    return None if data is None else Digest(blake3(data).digest())

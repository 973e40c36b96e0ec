"""Captures agent state: unchanged according to the file system, or read again.

    walk → everything as in the previous checkpoint, and old enough for its times to be reliable
    → unchanged → else every entry, and an index of them

A file is read until two reads agree. A file that is written continuously is saved as last read, and
reported.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from blake3 import blake3

from holdfast.components.agents.pattern_walk import Entry, Roots, Walk, display_path, walk
from holdfast.components.agents.states import (
    GIVEN,
    INDEX,
    Given,
    Kind,
    content_name,
    directory_content,
    encode_given,
    encode_index,
    kept_of,
    kind_of,
)
from holdfast.components.files import READ_FLAGS, blocks_of, change_stamp
from holdfast.domain.agent_patterns import Pattern
from holdfast.ports.component import Captured, CaptureRequest, ContentSink

_IN_MEMORY_BYTES = 8 << 20
_TRIES = 3
_MOST_LEFT_OUT = 100
_RACY_NS = 2_000_000_000
"""A change within one tick of a coarse file system clock may not change the times."""


def capture(
    request: CaptureRequest,
    sink: ContentSink,
    roots: Roots,
    patterns: Sequence[Pattern],
    given: Given,
) -> Captured | None:
    found = walk(roots, patterns)
    encoded = encode_given(given) if given else b""
    signature = _signature(found, encoded, request.now_ns)
    previous = request.previous
    if previous is not None and signature and previous.notes.get("signature") == signature:
        return None
    problems = list(found.problems)
    captured: list[Entry] = []
    total_bytes = 0
    for entry in found.entries:
        size = _capture_entry(entry, roots, sink, problems)
        if size is not None:
            captured.append(entry)
            total_bytes += size
    if captured:
        sink.add(INDEX, [encode_index(map(kept_of, captured))])
    if encoded:
        sink.add(GIVEN, [encoded])
    facts = {
        "files": sum(kind_of(entry) is not Kind.DIRECTORY for entry in captured),
        "bytes": total_bytes,
        "left_out": found.left_out[:_MOST_LEFT_OUT],
        "given": [
            [session, agent] for session in sorted(given) for agent in sorted(given[session])
        ],
    }
    return Captured(facts, tuple(problems), {"signature": signature})


def _signature(found: Walk, given: bytes, now_ns: int) -> str | None:
    """Equal only if nothing has changed; None if that is unknown."""
    digest = blake3(given)
    for text in (*found.left_out, *found.problems):
        digest.update(b"\0" + text.encode("utf-8", "surrogateescape"))
    for entry in found.entries:
        if max(entry.status.st_mtime_ns, entry.status.st_ctime_ns) > now_ns - _RACY_NS:
            return None
        fields = (entry.root.value, entry.path, entry.identity, entry.target)
        digest.update(repr(fields).encode())
    return digest.hexdigest()


def _capture_entry(
    entry: Entry, roots: Roots, sink: ContentSink, problems: list[str]
) -> int | None:
    """The number of bytes stored; None if the entry is missing or unreadable."""
    name = content_name(entry.place)
    if entry.target is not None:
        sink.add(name, [entry.target])
        return len(entry.target)
    if entry.is_directory:
        sink.add(name, [directory_content(entry.mode)])
        return 0
    try:
        return _capture_file(entry, roots, sink, name, problems)
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(f"{display_path(*entry.place)}: {error.strerror or 'cannot be read'}")
        return None


def _capture_file(
    entry: Entry, roots: Roots, sink: ContentSink, name: str, problems: list[str]
) -> int | None:
    with roots.directory(entry.root, entry.path[:-1]) as dir_fd:
        fd = os.open(entry.path[-1], READ_FLAGS, dir_fd=dir_fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "it is no longer a file")
        if os.fstat(fd).st_size <= _IN_MEMORY_BYTES:
            data, settled = _read_stable(fd)
            sink.add(name, [data])
            size = len(data)
        else:
            before = os.fstat(fd)
            sink.add(name, blocks_of(fd, before.st_size))
            size, settled = before.st_size, change_stamp(os.fstat(fd)) == change_stamp(before)
    finally:
        os.close(fd)
    if not settled:
        problems.append(
            f"{display_path(*entry.place)} was being written; "
            "the last version that was read is saved"
        )
    return size


def _read_stable(fd: int) -> tuple[bytes, bool]:
    data = b""
    for _ in range(_TRIES):
        before = os.fstat(fd)
        data = b"".join(blocks_of(fd))
        if change_stamp(os.fstat(fd)) == change_stamp(before) and len(data) == before.st_size:
            return data, True
    return data, False

"""The outer format of a bundle: a header, a sequence of frames, and a digest of everything.

    "HFBUNDLE" | u16 version | u16 zero | frame | frame | … | frame DONE
    frame = 4 B tag | u32 length | that many bytes

The order is fixed: one BNDL, then SESS, CKPT, OBJT and story frames, one DONE, end of file. A tag
that begins with a lower-case letter is optional: readers skip it if they do not know it, and refuse
all other unknown tags. DONE holds the BLAKE3-256 digest of every byte before it.

Guarantees of the reader: it allocates no memory for a length that is not allowed or not present,
and refuses a flipped, missing or additional byte. Not guaranteed: that content fits together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from blake3 import blake3

from holdfast.domain.errors import BundleRefused
from holdfast.ports.filesystem import Filesystem, write_all
from holdfast.values.classes import NamedTuple

MAGIC = b"HFBUNDLE"
VERSION = 1
ORIGIN, SESSION, CHECKPOINT, OBJECT, DONE = b"BNDL", b"SESS", b"CKPT", b"OBJT", b"DONE"
STORY = b"told"
"""The conversation around the checkpoints; older readers skip it."""

LARGEST_OBJECT_BYTES = 64 << 20
"""Enough for a directory of about 900,000 names, or the piece list of a 100 GB file."""

LARGEST_ROW_BYTES = 8 << 20
LARGEST_MANIFEST_BYTES = 128 << 20
"""All frames before the objects together; they stay in memory while a bundle is read."""

_ORDER = (ORIGIN, SESSION, CHECKPOINT, OBJECT, STORY, DONE)
_OBJECT_OVERHEAD_BYTES = 1 << 10
_LARGEST = {
    ORIGIN: 1 << 20,
    SESSION: LARGEST_ROW_BYTES,
    CHECKPOINT: LARGEST_ROW_BYTES,
    OBJECT: LARGEST_OBJECT_BYTES + _OBJECT_OVERHEAD_BYTES,
    STORY: 32 << 20,
    DONE: 32,
}
_HEADER = struct.Struct("<8sHH")
_GIT_BUNDLES = (b"# v2 git bun", b"# v3 git bun")
"""The first bytes of a git bundle, as many as a header has."""
_FRAME = struct.Struct("<4sI")
_BUFFER_BYTES = 1 << 20


class Frame(NamedTuple):
    """A frame's body, and the position of the body in the file."""

    tag: bytes
    body: bytes
    offset: int


class FrameWriter:
    """Writes a bundle front to back, in blocks; `finish` adds the digest."""

    def __init__(self, fs: Filesystem, fd: int) -> None:
        self._fs = fs
        self._fd = fd
        self._buffer = bytearray()
        self._digest = blake3()
        self.written_bytes = 0
        self._put(_HEADER.pack(MAGIC, VERSION, 0))

    def frame(self, tag: bytes, *parts: bytes) -> None:
        self._put(_FRAME.pack(tag, sum(map(len, parts))))
        for part in parts:
            self._put(part)

    def finish(self) -> None:
        self._flush()
        self.frame(DONE, self._digest.digest())
        self._flush()

    def _put(self, data: bytes) -> None:
        self._buffer += data
        self.written_bytes += len(data)
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        block = bytes(self._buffer)
        self._buffer.clear()
        self._digest.update(block)
        write_all(self._fs, self._fd, block)


class FrameReader:
    """Reads a bundle from an open regular file, any number of times."""

    def __init__(self, fs: Filesystem, fd: int) -> None:
        self._fs = fs
        self._fd = fd
        self.size_bytes = fs.fstat(fd).st_size
        self._window = b""
        self._window_at = 0

    def frames(self) -> Iterator[Frame]:
        """Every known frame in order; ends after a DONE frame whose digest matches."""
        digest = blake3()
        position, phase, manifest_bytes = self._header(digest), 0, 0
        while True:
            head = self.read(position, _FRAME.size)
            tag, length = _FRAME.unpack(head)
            position += _FRAME.size
            if length > self.size_bytes - position:
                raise refused("it is incomplete")
            if tag not in _LARGEST:
                if phase == 0:
                    raise refused("its parts are in the wrong order")
                self._pass_over(tag, head, position, length, digest)
                position += length
                continue
            if length > _LARGEST[tag]:
                raise refused(f"a {tag.decode()} frame claims {length} bytes")
            phase = _next_phase(phase, tag)
            body = self.read(position, length)
            if tag == DONE:
                self._end(body, digest, position + length)
                return
            manifest_bytes += 0 if tag in (OBJECT, STORY) else length
            if manifest_bytes > LARGEST_MANIFEST_BYTES:
                raise refused("it lists too many checkpoints")
            digest.update(head)
            digest.update(body)
            yield Frame(tag, body, position)
            position += length

    def read(self, offset: int, length: int) -> bytes:
        """That many bytes; the caller has checked that the size is allowed."""
        start = offset - self._window_at
        if start >= 0 and start + length <= len(self._window):
            return self._window[start : start + length]
        if length >= _BUFFER_BYTES:
            return self._pread(offset, length)
        self._window_at = offset
        self._window = self._pread(offset, min(_BUFFER_BYTES, self.size_bytes - offset))
        if len(self._window) < length:
            raise refused("it is incomplete")
        return self._window[:length]

    def _pread(self, offset: int, length: int) -> bytes:
        parts: list[bytes] = []
        while length > 0:
            part = self._fs.pread(self._fd, length, offset)
            if not part:
                raise refused("it is incomplete")
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _header(self, digest: blake3) -> int:
        if self.size_bytes == 0:
            raise refused("it is empty")
        data = self.read(0, min(_HEADER.size, self.size_bytes))
        if data.startswith(_GIT_BUNDLES):
            raise BundleRefused(
                "this is a git bundle (export --git-bundle), which Holdfast cannot import",
                hint="read it with git: git clone FILE; or export again: holdfast export FILE",
            )
        if data[: len(MAGIC)] != MAGIC:
            raise refused("not a Holdfast export")
        if len(data) < _HEADER.size:
            raise refused("it is incomplete")
        _, version, zero = _HEADER.unpack(data)
        if version != VERSION or zero != 0:
            raise BundleRefused(
                f"the file has format {version}; this Holdfast reads format {VERSION}",
                hint="upgrade Holdfast, or export the file again; nothing was imported",
            )
        digest.update(data)
        return _HEADER.size

    def _pass_over(
        self, tag: bytes, head: bytes, position: int, length: int, digest: blake3
    ) -> None:
        if not tag[:1].islower():
            raise refused(f"it has a part that this version does not know ({tag!r})")
        digest.update(head)
        while length > 0:
            block = self.read(position, min(length, _BUFFER_BYTES))
            digest.update(block)
            position += len(block)
            length -= len(block)

    def _end(self, body: bytes, digest: blake3, end: int) -> None:
        if body != digest.digest():
            raise refused("its checksum does not match; it was changed or damaged")
        if end != self.size_bytes:
            raise refused("there is data after its end")


def refused(reason: str) -> BundleRefused:
    return BundleRefused(
        f"cannot import the file: {reason}",
        hint="export the file again; nothing was imported",
    )


def _next_phase(phase: int, tag: bytes) -> int:
    """BNDL comes first and once. After it, the phases only move forward."""
    found = _ORDER.index(tag)
    if (phase == 0) != (tag == ORIGIN) or found < phase:
        raise refused("its parts are in the wrong order")
    return max(found, 1)

"""Contents that are no text, in the form in which `git apply` takes them.

Each side whole, deflated, in lines of base 85, so that the patch can be applied in reverse, too;
above them the git names of both, which `git apply` compares before and after.

Guarantee: bounded memory, whatever the sizes: a content is read twice, in pieces.
Not guaranteed: a content that gives other bytes the second time ends as `ContentChanged`.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b85encode
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.domain.errors import ContentChanged

if TYPE_CHECKING:
    from holdfast.api.diffs import Content


_LINE_BYTES, _LINE_CHARACTERS = 52, 65
_ABSENT = "0" * 40


def binary_patch_lines(old: Content | None, new: Content | None) -> Iterator[bytes]:
    names = f"{_git_name(old)}..{_git_name(new)}"
    yield f"index {names}".encode()
    yield b"GIT binary patch"
    yield from _literal(new)
    yield b""
    yield from _literal(old)
    yield b""


def _git_name(content: Content | None) -> str:
    """What git calls such a blob; not used to protect anything."""
    if content is None:
        return _ABSENT
    hashed = hashlib.sha1(b"blob %d\0" % content.size_bytes, usedforsecurity=False)
    for piece in _whole(content):
        hashed.update(piece)
    return hashed.hexdigest()


def _literal(content: Content | None) -> Iterator[bytes]:
    yield b"literal %d" % (0 if content is None else content.size_bytes)
    packed = bytearray()
    for piece in _deflated(content):
        packed += piece
        whole = len(packed) - len(packed) % _LINE_BYTES
        yield from _lines(packed[:whole])
        del packed[:whole]
    yield from _lines(packed)


def _deflated(content: Content | None) -> Iterator[bytes]:
    packer = zlib.compressobj()
    for piece in _whole(content) if content is not None else ():
        yield packer.compress(piece)
    yield packer.flush()


def _lines(data: bytearray) -> Iterator[bytes]:
    """Each line begins with its length: A is 1, Z is 26, a is 27, z is 52."""
    encoded = b85encode(data, pad=True)  # 52 bytes are whole groups: lines can be cut afterwards
    left = len(data)
    for begin in range(0, len(encoded), _LINE_CHARACTERS):
        size = min(left, _LINE_BYTES)
        first = ord("A") - 1 if size <= 26 else ord("a") - 27
        yield b"%c%b" % (first + size, encoded[begin : begin + _LINE_CHARACTERS])
        left -= size


def _whole(content: Content) -> Iterator[bytes]:
    """Every byte, and not one more or less than the size says."""
    left = content.size_bytes
    for piece in content.chunks():
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left:
        raise ContentChanged(
            "a file changed its size while it was compared", hint="run the command again"
        )

"""Output that a program takes in: all of it, or none.

    piece by piece into a temporary file, the first of them in memory → whole → onto the output

Half of a JSON document cannot be read, and half of a patch can be applied. What people read is
shown while it is made, and an error that ends it stands below.

Guarantee: nothing is on the output when making it fails, and memory does not grow with it.
Not guaranteed: that whoever reads gets the end of it, should the writing itself be cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.interfaces.cli.terminal import Terminal

_IN_MEMORY_BYTES = 4 << 20
_AT_ONCE_BYTES = 256 << 10


@contextmanager
def whole_output(terminal: Terminal) -> Iterator[Callable[[bytes], object]]:
    """Takes the pieces; writes them at the end of the block, exactly as they are."""
    from tempfile import SpooledTemporaryFile  # late: only large answers are made this way

    with SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
        yield kept.write
        kept.seek(0)
        terminal.flush()
        while piece := kept.read(_AT_ONCE_BYTES):
            terminal.write_bytes(piece)

"""What a component says of how far it is, for as long as somebody waits for it.

A component is somebody else's code: what it says is made fit for one line of a terminal, what makes
no sense is passed over, and nothing is heard any more of one that was given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.engine.vault import Vault
from holdfast.ports.progress import TransferProgress

_LONGEST_PHASE = 60


class Telling:
    """Implements `holdfast.ports.progress.TransferProgress` for one call of one component."""

    __slots__ = ("_listener", "_name")

    def __init__(self, name: str, listener: TransferProgress) -> None:
        self._name = name
        self._listener: TransferProgress | None = listener

    def advance(self, phase: str, done: int, total: int | None) -> None:
        listener = self._listener
        counted = _is_count(done) and (total is None or _is_count(total))
        if listener is not None and isinstance(phase, str) and counted:
            line = "".join(c for c in phase[:_LONGEST_PHASE] if c.isprintable())
            listener.advance(f"{self._name}: {line}", done, total)

    def transferred(self, size_bytes: int) -> None:
        listener = self._listener
        if listener is not None and _is_count(size_bytes):
            listener.transferred(size_bytes)

    def end(self) -> None:
        self._listener = None


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


@contextmanager
def telling(vault: Vault, name: str, phase: str) -> Iterator[Telling]:
    """For the block, in which the component is called and begins with this phase."""
    told = Telling(name, vault.progress)
    told.advance(phase, 0, None)
    try:
        yield told
    finally:
        told.end()

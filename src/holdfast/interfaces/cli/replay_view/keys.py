"""What a terminal sends when keys are pressed, turned into names."""

from __future__ import annotations

from collections.abc import Iterator

ESCAPE = "escape"
_NAMES = {
    b"[A": "up",
    b"[B": "down",
    b"[C": "right",
    b"[D": "left",
    b"[H": "home",
    b"[F": "end",
    b"[1~": "home",
    b"[4~": "end",
    b"[5~": "page up",
    b"[6~": "page down",
}
_NAMES |= {b"O" + name[1:]: word for name, word in _NAMES.items() if len(name) == 2}


class KeyReader:
    """Puts together what may arrive in parts; what stands for no key here is left out."""

    def __init__(self) -> None:
        self._pending = b""

    @property
    def is_within_key(self) -> bool:
        """Whether more belongs to what came so far, or it was the escape key itself."""
        return bool(self._pending)

    def feed(self, data: bytes) -> Iterator[str]:
        """The keys in what was read; nothing read means that nothing more comes."""
        pending = self._pending + data
        self._pending = b""
        while pending:
            if pending[:1] != b"\x1b":
                length = _character_bytes(pending)
                if length > len(pending) and data:
                    self._pending = pending
                    return
                if character := pending[:length].decode("utf-8", "ignore"):
                    yield character
                pending = pending[length:]
                continue
            end = _end_of_sequence(pending)
            if end is None:
                if data:
                    self._pending = pending
                    return
                end = 1
            sequence, pending = pending[1:end], pending[end:]
            name = _NAMES.get(sequence, "") if sequence else ESCAPE
            if name:
                yield name


def _character_bytes(data: bytes) -> int:
    """How many bytes the character at the start takes, also if some of them are still to come; one
    where they are not UTF-8."""
    lead = data[0]
    length = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    return length if all(byte & 0xC0 == 0x80 for byte in data[1:length]) else 1


def _end_of_sequence(data: bytes) -> int | None:
    """Where the sequence at the start of these bytes ends; None when that is not to be seen yet."""
    if len(data) < 2:
        return None
    if data[1:2] == b"O":
        return 3 if len(data) > 2 else None
    if data[1:2] != b"[":
        return 1
    for position in range(2, len(data)):
        if 0x40 <= data[position] <= 0x7E:
            return position + 1
    return None

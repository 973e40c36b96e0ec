"""Sizes in bytes and numbers of things as people say them."""

from __future__ import annotations

_UNITS = ("kB", "MB", "GB", "TB", "PB")


def size_words(size_bytes: int) -> str:
    """Powers of ten, three digits: `999 B`, `1.5 kB`, `12 MB`."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    value = float(size_bytes)
    for unit in _UNITS:
        value /= 1000
        if value < 999.5 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit}" if value < 9.95 else f"{value:,.0f} {unit}"
    raise AssertionError("the last unit takes everything")


def count_words(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `1,200 files`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"

"""What a disk may hold after the power went: some of what was asked of it, not all, not in order.

    every change so far → those made durable by a later sync stay
                        → of the others any subset stays, and a write may stay in part

A file's bytes, length and mode are durable after a sync of that file; a name after a sync of its
directory. A file's sync says nothing about its name, nor a name's about the bytes behind it. A
rename or an exchange stays or goes as a whole, as on every journaling file system. A write that
stays in part does so in whole sectors of its own range; lost sectors in a file that has grown are
zeros. Not modelled: sectors that are neither old nor new, and a disk that lies about a sync.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

SECTORS = (512, 4096)
_CHANCES = (0.0, 0.1, 0.5, 0.9, 1.0)


@dataclass(frozen=True, slots=True)
class File:
    content: bytes = b""
    mode: int = 0o600


@dataclass(frozen=True, slots=True)
class Link:
    target: bytes


@dataclass(frozen=True, slots=True)
class Directory:
    entries: dict[bytes, int] = field(default_factory=dict)
    mode: int = 0o700


Inode: TypeAlias = File | Link | Directory


@dataclass(frozen=True, slots=True)
class Names:
    """Names that change together: (directory, name, inode or None for gone)."""

    changes: tuple[tuple[int, bytes, int | None], ...]


@dataclass(frozen=True, slots=True)
class Born:
    """An inode that did not exist before; without a name it is nothing."""

    number: int
    inode: Inode


@dataclass(frozen=True, slots=True)
class Written:
    number: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    number: int
    size: int


@dataclass(frozen=True, slots=True)
class Moded:
    number: int
    mode: int


@dataclass(frozen=True, slots=True)
class Synced:
    """One inode, or with `below` a directory and everything that has ever been below it."""

    number: int
    below: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Replaced:
    """A whole directory became something else, durably: what a person did between two commands."""

    number: int
    inodes: dict[int, Inode]


Change: TypeAlias = Names | Born | Written | Resized | Moded | Synced | Replaced


class Disk:
    """The inodes of a disk, and what was done to them since."""

    def __init__(self) -> None:
        self.base: dict[int, Inode] = {}
        self.changes: list[Change] = []

    def state(self, until: int, rng: random.Random) -> dict[int, Inode]:
        """One of the states that a power cut before change number `until` may leave."""
        inodes = dict(self.base)
        done = self.changes[:until]
        durable = _durable(done)
        names_stay, data_stays = rng.choice(_CHANCES), rng.choice(_CHANCES)
        sector = rng.choice(SECTORS)
        for position, change in enumerate(done):
            if isinstance(change, (Born, Synced)):
                if isinstance(change, Born):
                    inodes[change.number] = change.inode
            elif isinstance(change, Replaced):
                inodes.update(change.inodes)
            elif position in durable:
                _apply(inodes, change)
            elif isinstance(change, Names):
                if rng.random() < names_stay:
                    _apply(inodes, change)
            elif rng.random() < data_stays:
                _apply(inodes, change)
            elif isinstance(change, Written) and rng.random() < 0.5:
                _apply_in_part(inodes, change, sector, rng)
        return inodes


def _durable(changes: list[Change]) -> set[int]:
    """Positions of the changes that a later sync made durable, seen from the end."""
    synced: set[int] = set()
    found: set[int] = set()
    for position in range(len(changes) - 1, -1, -1):
        change = changes[position]
        if isinstance(change, Synced):
            synced.add(change.number)
            synced |= change.below
        elif isinstance(change, Names):
            if any(directory in synced for directory, _, _ in change.changes):
                found.add(position)
        elif isinstance(change, (Written, Resized, Moded)) and change.number in synced:
            found.add(position)
    return found


def _apply(inodes: dict[int, Inode], change: Change) -> None:
    if isinstance(change, Names):
        for directory, name, number in change.changes:
            _set_name(inodes, directory, name, number)
    elif isinstance(change, Written):
        _write(inodes, change.number, change.offset, change.data)
    elif isinstance(change, Resized):
        file = inodes[change.number]
        assert isinstance(file, File)
        content = file.content[: change.size].ljust(change.size, b"\0")
        inodes[change.number] = replace(file, content=content)
    elif isinstance(change, Moded):
        inode = inodes[change.number]
        assert not isinstance(inode, Link)
        inodes[change.number] = replace(inode, mode=change.mode)


def _set_name(inodes: dict[int, Inode], directory: int, name: bytes, number: int | None) -> None:
    above = inodes[directory]
    assert isinstance(above, Directory)
    entries = dict(above.entries)
    entries.pop(name, None)
    if number is not None:
        entries[name] = number
    inodes[directory] = replace(above, entries=entries)


def _write(inodes: dict[int, Inode], number: int, offset: int, data: bytes) -> None:
    file = inodes[number]
    assert isinstance(file, File)
    old = file.content.ljust(offset, b"\0")
    inodes[number] = replace(file, content=old[:offset] + data + old[offset + len(data) :])


def _apply_in_part(
    inodes: dict[int, Inode], change: Written, sector: int, rng: random.Random
) -> None:
    """Some sectors of a write; a length that grew may have come through without its bytes."""
    if rng.random() < 0.5:
        file = inodes[change.number]
        assert isinstance(file, File)
        end = change.offset + len(change.data)
        inodes[change.number] = replace(file, content=file.content.ljust(end, b"\0"))
    for start, piece in _pieces(change, sector):
        if rng.random() < 0.5:
            _write(inodes, change.number, start, piece)


def _pieces(change: Written, sector: int) -> Iterable[tuple[int, bytes]]:
    start, end = change.offset, change.offset + len(change.data)
    while start < end:
        stop = min(end, (start // sector + 1) * sector)
        yield start, change.data[start - change.offset : stop - change.offset]
        start = stop


def materialise(inodes: dict[int, Inode], number: int, path: Path) -> None:
    """Write the directory `number`, and everything below, to the real disk at `path`."""
    _make(inodes, number, os.fsencode(path), {})


def _make(inodes: dict[int, Inode], number: int, path: bytes, made: dict[int, bytes]) -> None:
    inode = inodes[number]
    if isinstance(inode, Directory):
        os.mkdir(path)
        for name, below in inode.entries.items():
            _make(inodes, below, path + b"/" + name, made)
        os.chmod(path, inode.mode)
    elif number in made:
        os.link(made[number], path, follow_symlinks=False)
    elif isinstance(inode, Link):
        os.symlink(inode.target, path)
    else:
        with open(path, "wb") as file:
            file.write(inode.content)
        os.chmod(path, inode.mode)
        made[number] = path

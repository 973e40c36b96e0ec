"""Changes made to a tree between two saves, the same for every tool.

A burst changes a given number of files at once: most are edited by line, some deleted, some
created in a new directory. A history is a long run of small steps by an author who stays with a
few files and drifts.

Guarantees: edits are computed once, as data, and written to every copy alike; `after` predicts
the tree they make without reading it. A burst never empties a directory, because git could not
show that.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.verify import Entry, Fingerprint, directory_entry, file_entry

FOCUS_FILES = 8
TEXT_SUFFIXES = (b".py", b".ts", b".go", b".md", b".json", b".txt", b".rst", b".pyi")
_IDENTIFIER = re.compile(rb"[A-Za-z_]{4,}")


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file as it is to become; content None removes it."""

    path: bytes
    content: bytes | None
    mode: int = 0o644


def apply(root: Path, edits: Iterable[FileEdit]) -> None:
    """Write the edits to one copy of the tree, in place, as an editor that does not rename does."""
    top = os.fsencode(root)
    for edit in edits:
        target = os.path.join(top, edit.path)
        if edit.content is None:
            os.unlink(target)
            continue
        os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
        with open(target, "wb") as file:
            file.write(edit.content)
        os.chmod(target, edit.mode)


def after(tree: Mapping[bytes, Entry], edits: Iterable[FileEdit]) -> Fingerprint:
    """The fingerprint that `tree` has once the edits are applied."""
    made = dict(tree)
    for edit in edits:
        if edit.content is None:
            del made[edit.path]
            continue
        made[edit.path] = file_entry(edit.content, edit.mode)
        parent = os.path.dirname(edit.path)
        while parent and parent not in made:
            made[parent] = directory_entry()
            parent = os.path.dirname(parent)
    return made


def burst(root: Path, tree: Mapping[bytes, Entry], count: int, seed: str) -> list[FileEdit]:
    """Change `count` files of `root`, now in state `tree`: most edited, some made or removed."""
    rng = random.Random(seed)
    files = sorted(path for path, entry in tree.items() if entry.kind == "file")
    room = Counter(os.path.dirname(path) for path in files)
    created = deleted = max(1, count // 10)
    chosen = rng.sample(files, min(len(files), count - created))
    edits: list[FileEdit] = []
    for path in chosen:
        content = (root / os.fsdecode(path)).read_bytes()
        mode = tree[path].mode
        if deleted and room[os.path.dirname(path)] > 1:
            room[os.path.dirname(path)] -= 1
            deleted -= 1
            edits.append(FileEdit(path, None))
        elif not any(edit.mode != 0o644 for edit in edits) and mode == 0o644:
            edits.append(FileEdit(path, edit_lines(content, rng), 0o755))
        else:
            edits.append(FileEdit(path, edit_lines(content, rng), mode))
    for number in range(created):
        directory = os.path.dirname(rng.choice(files))
        name = b"new_%d_%08x/file_%d.py" % (number, rng.getrandbits(32), number)
        edits.append(FileEdit(os.path.join(directory, name), rng.randbytes(40).hex().encode()))
    return edits


def edit_lines(content: bytes, rng: random.Random) -> bytes:
    """A small edit as a programmer makes it; the result always differs from `content`."""
    lines = content.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        kind = rng.random()
        if kind < 0.45:
            lines[at] = _rename(lines[at], rng)
        elif kind < 0.8:
            block = lines[at : at + rng.randint(1, 8)]
            lines[at:at] = [_rename(line, rng) for line in block]
        else:
            del lines[at : at + rng.randint(1, 5)]
            lines = lines or [b""]
    edited = b"\n".join(lines)
    return edited if edited != content else edited + b"# %08x\n" % rng.getrandbits(32)


def _rename(line: bytes, rng: random.Random) -> bytes:
    """The line with one identifier replaced, or with a comment if it has none."""
    names = _IDENTIFIER.findall(line)
    if not names:
        return line + b"  # %06x" % rng.getrandbits(24)
    name: bytes = rng.choice(names)
    fresh = name[:3] + b"_%04x" % rng.getrandbits(16)
    return line.replace(name, fresh, 1)


class Author:
    """Someone at work on one tree: each step edits one to five files near the last ones."""

    def __init__(self, root: Path, files: Sequence[bytes], seed: str) -> None:
        self._root = root
        self._rng = random.Random(seed)
        self._files = [path for path in files if path.endswith(TEXT_SUFFIXES)]
        self._focus = [self._rng.choice(self._files) for _ in range(FOCUS_FILES)]
        self._created = 0

    def step(self) -> list[FileEdit]:
        """The next edits, computed from the tree as it now is."""
        rng = self._rng
        if rng.random() < 0.15:
            self._focus[rng.randrange(FOCUS_FILES)] = rng.choice(self._files)
        paths = set(rng.choices(self._focus, k=rng.choice((1, 1, 2, 2, 3, 5))))
        edits = [self._edit(path) for path in sorted(paths)]
        if rng.random() < 0.04:
            edits.append(self._new_file())
        return edits

    def _edit(self, path: bytes) -> FileEdit:
        target = self._root / os.fsdecode(path)
        mode = target.stat().st_mode & 0o777
        return FileEdit(path, edit_lines(target.read_bytes(), self._rng), mode)

    def _new_file(self) -> FileEdit:
        """A new module that begins as a part of an old one, as new modules do."""
        self._created += 1
        model = self._rng.choice(self._focus)
        lines = (self._root / os.fsdecode(model)).read_bytes().split(b"\n")[:60]
        path = os.path.join(os.path.dirname(model), b"made_%d.py" % self._created)
        self._files.append(path)
        return FileEdit(path, edit_lines(b"\n".join(lines), self._rng))

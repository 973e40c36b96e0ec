"""An independent witness of a directory tree: what is there, compared with what should be there.

Every entry is read anew: kind, permission bits, and the digest of its bytes (or a link's target).
Shares no code with any tool under test. Names at the top that belong to a tool itself are left
out.

Guarantees: two equal fingerprints are trees with the same names, kinds, modes and bytes. Says
nothing about times, owners, extended attributes, hard links.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

NAMED_IN_A_MESSAGE = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a tree."""

    kind: str
    mode: int
    digest: bytes


Fingerprint = dict[bytes, Entry]


def directory_entry(mode: int = 0o755) -> Entry:
    return Entry("directory", mode, b"")


def link_entry(target: bytes) -> Entry:
    return Entry("link", 0, blob_name(target))


def file_entry(content: bytes, mode: int) -> Entry:
    return Entry("file", mode, blob_name(content))


def blob_name(content: bytes) -> bytes:
    """The digest of a file, as git names blobs, so that git's listings can be compared."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest()


def fingerprint(root: Path, own: frozenset[bytes] = frozenset()) -> Fingerprint:
    """Read the whole tree under `root`, except the names `own` at its top."""
    found: Fingerprint = {}
    _read_directory(os.fsencode(root), b"", own, found)
    return found


def _read_directory(
    directory: bytes, prefix: bytes, left_out: frozenset[bytes], found: Fingerprint
) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name in left_out:
                continue
            path = prefix + entry.name
            status = entry.stat(follow_symlinks=False)
            mode = stat.S_IMODE(status.st_mode)
            if entry.is_symlink():
                target = os.readlink(entry.path)
                found[path] = link_entry(target)
            elif entry.is_dir(follow_symlinks=False):
                found[path] = directory_entry(mode)
                _read_directory(entry.path, path + b"/", frozenset(), found)
            elif entry.is_file(follow_symlinks=False):
                with open(entry.path, "rb", buffering=0) as file:
                    found[path] = file_entry(file.readall(), mode)
            else:
                found[path] = Entry("special", mode, b"")


def difference(expected: Mapping[bytes, Entry], actual: Mapping[bytes, Entry]) -> str | None:
    """What is wrong with `actual`, in words, or None when nothing is."""
    groups = {
        "missing": [path for path in expected if path not in actual],
        "left over": [path for path in actual if path not in expected],
        "wrong": [
            path for path, entry in expected.items() if path in actual and actual[path] != entry
        ],
    }
    parts = [f"{len(paths)} {word}{_examples(paths)}" for word, paths in groups.items() if paths]
    return ", ".join(parts) or None


def _examples(paths: Iterable[bytes]) -> str:
    # The last component tells the reader which edit it was; a path of six generated names does not.
    names = [os.fsdecode(os.path.basename(path)) for path in sorted(paths)]
    shown = ", ".join(names[:NAMED_IN_A_MESSAGE])
    return f" ({shown}{', …' if len(names) > NAMED_IN_A_MESSAGE else ''})"


def changed_paths(
    before: Mapping[bytes, Entry], after: Mapping[bytes, Entry]
) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """The files, and the directories, in which two trees differ."""
    paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    directories = {path for path in paths if (before.get(path) or after[path]).kind == "directory"}
    return frozenset(paths - directories), frozenset(directories)


def mend(root: Path, base: Path, expected: Mapping[bytes, Entry], actual: Fingerprint) -> None:
    """Bring `root` back to `base` by plain copying, after a tool failed to."""
    top, source = os.fsencode(root), os.fsencode(base)
    wrong = {path for path, entry in actual.items() if expected.get(path) != entry}
    for path in sorted(wrong, reverse=True):
        target = os.path.join(top, path)
        if actual[path].kind != "directory":
            os.unlink(target)
        elif path in expected and expected[path].kind == "directory":
            os.chmod(target, expected[path].mode)
        else:
            os.rmdir(target)
    for path, entry in sorted(expected.items()):
        if actual.get(path) == entry or (path in wrong and entry.kind == "directory"):
            continue
        target = os.path.join(top, path)
        if entry.kind == "directory":
            os.mkdir(target, entry.mode)
        else:
            shutil.copy2(os.path.join(source, path), target, follow_symlinks=False)

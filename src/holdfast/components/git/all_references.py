"""Every branch and tag of a repository, read as files in one go; and lists of them as bytes.

    packed references, one search through the file → loose ones, which count instead of them

A list is a line for each: what the reference stands for, a blank, its name. That is a commit, the
tag object of an annotated tag, `ref:NAME` for a branch that is a link to another, or `-` for one
that does not exist. A reference that git would not have written is left out, as git ignores it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from holdfast.components.git.finding import Repository
from holdfast.components.git.plain_files import TooLarge, read_small, read_whole
from holdfast.components.git.references import OID, is_branch_name, is_tag_name
from holdfast.values.tuples import NamedTuple

HEADS, TAGS, STASH_REF = b"refs/heads/", b"refs/tags/", b"refs/stash"
LINK = "ref:"
_PACKED = re.compile(rb"^([0-9a-f]{40,64}) (refs/(?:heads|tags)/[^\n]+)$", re.MULTILINE)
_REF_BYTES = 8192
_FEW = 200
_MOST_LISTED = 1_000_000


class AllReferences(NamedTuple):
    """Full name to what it stands for."""

    branches: dict[bytes, str]
    tags: dict[bytes, str]


def read_all(repository: Repository) -> AllReferences:
    """No process is started."""
    packed = _PACKED.findall(read_whole(repository.shared(b"packed-refs")))
    found = {ref: oid.decode() for oid, ref in packed if OID.match(oid)}
    for directory, names in _loose(repository):
        for name in names:
            value = _value(repository.shared(directory + name))
            if value is not None:
                found[directory + name] = value
    rows = sorted((ref, oid) for ref, oid in found.items() if ref not in repository.ours)
    return AllReferences(
        {ref: oid for ref, oid in rows if is_branch_name(ref)},
        {ref: oid for ref, oid in rows if is_tag_name(ref)},
    )


def loose_stamps(repository: Repository) -> Iterator[tuple[bytes, tuple[os.stat_result, ...]]]:
    """What changes whenever a branch or tag does that is a file of its own, in an order that is the
    same for the same references. Git replaces such a file and never edits it; so where there are
    many, their names and the times of their directory have to do."""
    for directory, names in _loose(repository):
        looked_at = names if len(names) <= _FEW else [b""]
        for name in looked_at:
            try:
                yield directory + name, (os.lstat(repository.shared(directory + name)),)
            except OSError:
                yield directory + name, ()  # git has just removed it
        if looked_at is not names:
            yield b"\n".join(names), ()


def _loose(repository: Repository) -> Iterator[tuple[bytes, list[bytes]]]:
    """Each directory of loose references, with a slash, and the names of the files there."""
    pending = [HEADS, TAGS]
    while pending:
        directory = pending.pop()
        names = []
        try:
            with os.scandir(repository.shared(directory)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(directory + entry.name + b"/")
                    elif directory + entry.name not in repository.ours:
                        names.append(entry.name)
        except OSError:
            continue
        pending.sort()
        yield directory, sorted(names)


def _value(path: bytes) -> str | None:
    try:
        text = (read_small(path, _REF_BYTES) or b"").strip()
    except TooLarge:
        return None
    if text.startswith(b"ref:"):
        target = text[4:].strip()
        return LINK + target.decode() if is_branch_name(target) and target.isascii() else None
    return text.decode() if OID.match(text) else None


def encode_list(references: Mapping[bytes, str | None]) -> bytes:
    rows = sorted(references.items())
    return b"".join(b"%b %b\n" % ((value or "-").encode(), ref) for ref, value in rows)


def decode_list(data: bytes) -> dict[bytes, str | None]:
    """`ValueError` for anything that a capture would not have made."""
    lines = data.split(b"\n")
    if lines.pop() or len(lines) > _MOST_LISTED:
        raise ValueError("a list of references is cut short")
    return dict(map(_row, lines))


def _row(line: bytes) -> tuple[bytes, str | None]:
    value, _, ref = line.partition(b" ")
    if not (is_branch_name(ref) or is_tag_name(ref) or ref == STASH_REF):
        raise ValueError(f"{ref!r:.80} is neither a branch nor a tag")
    if value == b"-":
        return ref, None
    link = value.removeprefix(LINK.encode())
    if not OID.match(value) and not (link != value and is_branch_name(link)):
        raise ValueError(f"{value!r:.80} is no object")
    return ref, value.decode("ascii")

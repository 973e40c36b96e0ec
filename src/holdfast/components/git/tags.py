"""The objects behind tags: commits, usually through a tag object.

    each object: from its file, else from git → the objects that tag objects name, until none is new

Only a reference keeps a tag object alive, and a checkpoint does not create one for each tag. So a
checkpoint holds the few bytes of every tag object itself, and keeps alive only their targets. A
restore recreates missing tag objects.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from holdfast.components.git.commands import Git
from holdfast.components.git.keep_alive import object_types
from holdfast.components.git.loose_objects import NewObject, add_objects, name_of, read_loose
from holdfast.components.git.references import OID
from holdfast.values.classes import NamedTuple

_TARGET = re.compile(rb"\Aobject ([0-9a-f]{40,64})\n")
_HEADER = re.compile(rb"([0-9a-f]{40,64}) (\d{1,9})\n")
_DEEPEST = 10


class Tagged(NamedTuple):
    """Tag objects with their content, and the final targets with their kinds."""

    objects: dict[str, bytes]
    targets: dict[str, str]


def read_tagged(git: Git, oids: Collection[str]) -> Tagged:
    """Missing objects are skipped. Two processes at most for plain tags; none if all objects are
    loose."""
    tagged, pending = Tagged({}, {}), set(oids)
    for _ in range(_DEEPEST):
        if not pending:
            break
        kinds, contents = _read(git, pending)
        tagged.objects.update(contents)
        tagged.targets.update((oid, kind) for oid, kind in kinds.items() if kind != "tag")
        named = (_TARGET.match(content) for content in contents.values())
        pending = {found[1].decode() for found in named if found is not None}
        pending -= tagged.objects.keys() | tagged.targets.keys()
    return tagged


def _read(git: Git, oids: Iterable[str]) -> tuple[dict[str, str], dict[str, bytes]]:
    kinds: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    unknown = []
    for oid in oids:
        loose = read_loose(git.repository, oid, b"tag")
        if loose is None:
            unknown.append(oid)
            continue
        kinds[oid] = loose.kind
        if loose.kind == "tag":
            contents[oid] = loose.content
    kinds |= object_types(git, unknown)
    packed = [oid for oid in unknown if kinds.get(oid) == "tag"]
    if packed:
        contents.update(
            _parse_batch(git.run("cat-file", "--batch", given="\n".join(packed).encode()))
        )
    return kinds, contents


def _parse_batch(output: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        oid, _, size = output[at:end].decode().split(" ")
        at = end + 1 + int(size)
        yield oid, output[end + 1 : at]
        at += 1


def encode_tags(objects: Mapping[str, bytes]) -> bytes:
    return b"".join(
        b"%b %d\n%b" % (oid.encode(), len(content), content)
        for oid, content in sorted(objects.items())
    )


def decode_tags(data: bytes) -> dict[str, bytes]:
    """`ValueError` unless each matches its name."""
    objects, at = {}, 0
    while at < len(data):
        found = _HEADER.match(data, at)
        if found is None or not OID.match(found[1]):
            raise ValueError("a tag object is damaged")
        oid, at = found[1].decode(), found.end() + int(found[2])
        content = data[found.end() : at]
        if name_of(b"tag", content, like=oid) != oid:
            raise ValueError(f"tag object {oid[:10]} is damaged")
        objects[oid] = content
    return objects


def write_missing(git: Git, objects: Mapping[str, bytes], wanted: Iterable[str]) -> None:
    """Recreate these tag objects, with those that they name."""
    needed: dict[str, bytes] = {}
    pending = [oid for oid in wanted if oid in objects]
    while pending:
        oid = pending.pop()
        needed[oid] = objects[oid]
        named = _TARGET.match(objects[oid])
        if named is not None and (inner := named[1].decode()) in objects and inner not in needed:
            pending.append(inner)
    there = object_types(git, needed)
    missing = [NewObject(oid, b"tag", needed[oid]) for oid in sorted(needed) if oid not in there]
    add_objects(git.repository, missing)


def final_target(oid: str, objects: Mapping[str, bytes]) -> str:
    """The final target of a tag, which must be in the repository."""
    for _ in range(_DEEPEST):
        named = _TARGET.match(objects.get(oid, b""))
        if named is None:
            break
        oid = named[1].decode()
    return oid

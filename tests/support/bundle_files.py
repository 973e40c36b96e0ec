"""Bundles taken apart and put together again by hand, without any code that reads or writes them.

A test changes one part and gives the whole a digest that fits, so that what refuses it is not the
digest but the rule that it breaks.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from blake3 import blake3

from holdfast import SessionCheckpointer
from holdfast.domain.bundles.inventory import Role
from holdfast.domain.trees.tree import Tree, encode_tree
from tests.support.hostile_trees import fill

HEADER = b"HFBUNDLE\x01\x00\x00\x00"
Frames = list[tuple[bytes, bytes]]


def small_bundle(directory: Path) -> Path:
    """A workspace with a little of everything, two checkpoints of it, and its bundle."""
    workspace = directory / "origin"
    fill(workspace / "sub/file", b"content that is long enough to be compressed " * 3)
    (workspace / "link").symlink_to("sub/file")
    bundle = directory / "small.holdfast"
    with SessionCheckpointer(workspace, "travelling") as session:
        session.checkpoint("one", name="first")
        fill(workspace / "sub/file", b"content that is long enough to be compressed " * 3 + b"!")
        session.checkpoint("two", tags=["t"])
        session.export(bundle)
    return bundle


def take_apart(path: Path) -> Frames:
    data = path.read_bytes()
    assert data[: len(HEADER)] == HEADER
    frames: Frames = []
    position = len(HEADER)
    while position < len(data):
        tag, length = struct.unpack_from("<4sI", data, position)
        position += 8
        frames.append((tag, data[position : position + length]))
        position += length
    assert frames[-1][0] == b"DONE"
    return frames[:-1]


def put_together(path: Path, frames: Iterable[tuple[bytes, bytes]]) -> Path:
    data = HEADER + b"".join(struct.pack("<4sI", tag, len(body)) + body for tag, body in frames)
    path.write_bytes(data + struct.pack("<4sI", b"DONE", 32) + blake3(data).digest())
    return path


def edited(frames: Frames, tag: bytes, change: Callable[[dict[str, Any]], None]) -> Frames:
    """The frames with every JSON body of one tag changed."""
    result: Frames = []
    for found, body in frames:
        if found == tag:
            fields = json.loads(body)
            change(fields)
            body = json.dumps(fields).encode()
        result.append((found, body))
    return result


def record(digest: bytes, data: bytes, *, codec: int = 0, size: int | None = None) -> bytes:
    """One record as a pack has it."""
    size = len(data) if size is None else size
    fields = (b"HF", codec, 0, size, len(data))
    checksum = zlib.crc32(data, zlib.crc32(struct.pack("<2sBBIII32s", *fields, 0, digest)))
    return struct.pack("<2sBBIII32s", *fields, checksum, digest) + data


def object_frame(role: Role, data: bytes) -> tuple[bytes, bytes]:
    return b"OBJT", bytes((role,)) + record(blake3(data).digest(), data)


def crafted(
    path: Path,
    trees: list[bytes],
    blobs: Iterable[bytes] = (),
    *,
    workspace_id: str = "0" * 20,
    report: bytes | None = None,
) -> Path:
    """A bundle of one checkpoint of the last of `trees`, which come in this order."""
    objects = [object_frame(Role.BLOB, blob) for blob in blobs]
    objects += [object_frame(Role.TREE, tree) for tree in trees]
    contents = [*blobs, *trees]
    if report is not None:
        objects.append(object_frame(Role.REPORT, report))
        contents.append(report)
    identifier = "c" * 20
    origin: dict[str, Any] = {
        "workspace_id": workspace_id,
        "workspace": "/somewhere/else",
        "made_at_ns": 1,
        "latest": identifier,
        "sessions": 1,
        "checkpoints": 1,
        "objects": len(objects),
        "content_bytes": sum(map(len, contents)),
    }
    session: dict[str, Any] = {
        "id": "crafted",
        "created_at_ns": 1,
        "status": "active",
        "title": None,
    }
    session |= {"agent": None, "head": identifier, "approved": None}
    intent: dict[str, Any] = {
        "reasoning": "why",
        "goal_id": None,
        "task_id": None,
        "tool_calls": [],
    }
    intent |= {"confidence": 0.5, "checkpoint_name": None, "tags": []}
    row: dict[str, Any] = {
        "id": identifier,
        "session_id": "crafted",
        "parent": None,
        "kind": "manual",
    }
    row |= {"created_at_ns": 1, "tree": blake3(trees[-1]).hexdigest(), "intent": intent}
    row |= {"files": 0, "size_bytes": 0, "changed": {"added": 0, "modified": 0, "removed": 0}}
    row |= {"report": None if report is None else blake3(report).hexdigest()}
    row |= {"restores_from": None, "partial": False}
    manifest = [(b"BNDL", origin), (b"SESS", session), (b"CKPT", row)]
    frames = [(tag, json.dumps(fields).encode()) for tag, fields in manifest]
    return put_together(path, frames + objects)


def tree_naming(name: bytes, content: bytes) -> bytes:
    """A tree of one file whose name need not be allowed: put in the place of a sound one."""
    from holdfast.domain.trees.entries import FileEntry
    from holdfast.domain.trees.objects import digest_of

    stand_in = b"x" * len(name)
    entry = FileEntry(stand_in, 0o644, len(content), 0, digest_of(content))
    return encode_tree(Tree(files=(entry,))).replace(stand_in, name, 1)

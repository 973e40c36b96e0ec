"""Bundles with anything changed and every checksum made to fit: refused, or harmless.

Bytes of trees, lists, reports and rows are changed at random; records, frames and the file get
checksums that match, and names of objects follow their bytes all the way up to the checkpoint. So
an imported bundle is one that an attacker who knows the format could make. Restoring it must not
touch anything outside the workspace.
"""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path

import pytest
from blake3 import blake3

from holdfast import SessionCheckpointer
from holdfast.bootstrap.workspace import open_workspace
from holdfast.domain.bundles.inventory import Role
from holdfast.domain.errors import HoldfastError
from holdfast.ports.catalog import all_checkpoints
from tests.support.bundle_files import Frames, object_frame, put_together, take_apart
from tests.support.hostile_trees import fill
from tests.support.raw_search import unpack
from tests.support.tree_hash import describe

pytestmark = [pytest.mark.requirement("ST-7", "RL-7"), pytest.mark.in_memory]

BAD = [b"..", b"/", b"\0", b".git", b"../../x", b"", b"\xff" * 8, b".holdfast", b"~", b"a/b"]


def _plain(frames: Frames) -> Frames:
    """The same bundle with every object unpacked, so that its bytes can be changed."""
    contents: dict[bytes, bytes] = {}
    result: Frames = []
    for tag, body in frames:
        if tag == b"OBJT":
            role, codec, digest, stored = body[0], body[3], body[17:49], body[49:]
            stored = unpack(codec, stored, contents[stored[:32]] if codec == 2 else b"")
            contents[digest] = stored
            result.append(object_frame(Role(role), stored))
        else:
            result.append((tag, body))
    return result


def _mutated(frames: Frames, rng: random.Random) -> Frames:
    """One part changed, and every name that depends on it made to follow."""
    frames = list(frames)
    number = rng.randrange(len(frames))
    tag, body = frames[number]
    prefix = 49 if tag == b"OBJT" else 0
    data = bytearray(body[prefix:])
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(3)
        if how == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif how == 1:
            data[at : at + rng.randrange(3)] = rng.choice(BAD)
        else:
            del data[at : at + rng.randrange(1, 5)]
    if tag != b"OBJT":
        frames[number] = (tag, bytes(data))
        return frames
    return _renamed(frames, number, bytes(data))


def _renamed(frames: Frames, number: int, data: bytes) -> Frames:
    """Put an object in, and replace its old name everywhere, up to the rows."""
    old = frames[number][1][17:49]
    new = blake3(data).digest()
    frames[number] = object_frame(Role(frames[number][1][0]), data)
    for at, (tag, body) in enumerate(frames):
        if tag == b"OBJT" and at != number and old in body[49:]:
            frames = _renamed(frames, at, body[49:].replace(old, new))
        elif tag == b"CKPT":
            frames[at] = (tag, body.replace(old.hex().encode(), new.hex().encode()))
    return frames


def _counted(frames: Frames) -> Frames:
    """The totals in front made to fit, so that they are not what refuses it."""
    tag, body = frames[0]
    objects = [body[49:] for found, body in frames if found == b"OBJT"]
    with contextlib.suppress(ValueError, TypeError):
        fields = json.loads(body)
        fields |= {"objects": len(objects), "content_bytes": sum(map(len, objects))}
        body = json.dumps(fields).encode()
    return [(tag, body), *frames[1:]]


def _try(bundle: Path, place: Path) -> bool:
    """Take it in and restore everything in it; whether it was imported at all."""
    workspace = place / "around/workspace"
    fill(workspace / ".git/hooks/pre-commit", b"mine")
    fill(place / "around/victim", b"precious")
    fill(place / "victim", b"precious")
    try:
        said = SessionCheckpointer.import_bundle(workspace, bundle, foreign=True)
    except HoldfastError:
        with open_workspace(workspace, create=False) as opened:
            assert list(all_checkpoints(opened.engine.vault.catalog)) == []
        return False
    with open_workspace(workspace, create=False) as opened:
        engine = opened.engine
        for row in list(all_checkpoints(engine.vault.catalog)):
            with contextlib.suppress(HoldfastError):
                engine.restore(engine.restore_request(row.session_id, row.id))
    assert said.added
    outside = {p: n for p, n in describe(place).items() if not p.startswith(b"around/workspace")}
    assert set(outside) == {b"around", b"around/victim", b"victim"}
    assert (place / "around/victim").read_bytes() == b"precious"
    assert (workspace / ".git/hooks/pre-commit").read_bytes() == b"mine"
    assert sorted(p.name for p in (workspace / ".git/hooks").iterdir()) == ["pre-commit"]
    return True


def _campaign(tmp_path: Path, rng: random.Random, cases: int) -> int:
    workspace = tmp_path / "origin"
    fill(workspace / "sub/deep/file", b"content " * 40)
    fill(workspace / "large", random.Random(1).randbytes(1_200_000))
    (workspace / "link").symlink_to("sub/deep")
    with SessionCheckpointer(workspace, "s") as session:
        session.checkpoint("one", name="first")
        fill(workspace / "sub/deep/file", b"content " * 40 + b"edited")
        session.checkpoint("two")
        session.export(tmp_path / "sound")
    sound = _plain(take_apart(tmp_path / "sound"))
    taken = 0
    for number in range(cases):
        bundle = put_together(tmp_path / "mutated", _counted(_mutated(sound, rng)))
        taken += _try(bundle, tmp_path / str(number))
        shutil.rmtree(tmp_path / str(number))
    assert _try(put_together(tmp_path / "mutated", _counted(sound)), tmp_path / "sound-case")
    return taken


def test_changed_bundles_with_checksums_that_fit_do_no_harm(
    tmp_path: Path, rng: random.Random
) -> None:
    taken = _campaign(tmp_path, rng, 150)
    assert 0 < taken < 150, "some changes are harmless, such as another word in a reason"


@pytest.mark.torture
def test_many_changed_bundles_with_checksums_that_fit_do_no_harm(
    tmp_path: Path, rng: random.Random, torture_seconds: float
) -> None:
    _campaign(tmp_path, rng, max(100, int(torture_seconds * 15)))

"""Verification of an untrusted bundle: everything is verified before it is used.

    frames and digest → rows (ids, names, parents come first) → objects (each one's bytes, each
    tree's names and totals) → large files assembled once and compared

Guarantee: every checkpoint of a bundle that passes can be imported and restored. Nothing is written
here. Declared sizes are limits, never allocation requests. Memory depends on the number of objects.
Unpacking stops at `most_bytes`, even if the same content is unpacked repeatedly.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from blake3 import blake3

from holdfast.domain.bundles.inventory import Inventory, Role
from holdfast.domain.bundles.rows import (
    Origin,
    decode_checkpoint,
    decode_origin,
    decode_session,
    decoded_object,
)
from holdfast.domain.bundles.story import BundledStory, decode_rounds, decode_story
from holdfast.domain.checkpoints import NewCheckpoint
from holdfast.domain.errors import BundleRefused, NotFound, StoreDamaged
from holdfast.domain.ids import CheckpointId, Digest, SessionId
from holdfast.domain.sessions import Round, Session
from holdfast.domain.trees.objects import decode_chunk_list
from holdfast.engine.bundles.frames import CHECKPOINT, OBJECT, SESSION, STORY, FrameReader, refused
from holdfast.engine.bundles.objects import ObjectDecoder, require_bounded
from holdfast.engine.stored_objects import Item
from holdfast.ports.filesystem import Filesystem
from holdfast.ports.progress import Progress

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VerifiedBundle:
    """A verified bundle with its open file."""

    _reader: FrameReader
    _most_bytes: int
    _rows: tuple[bytes, ...]
    _inventory: Inventory
    origin: Origin
    sessions: tuple[Session, ...]
    rounds: Mapping[SessionId, tuple[Round, ...]]
    story_bytes: int

    @property
    def file_bytes(self) -> int:
        return self._reader.size_bytes

    def checkpoints(self) -> Iterator[NewCheckpoint]:
        """Oldest first; decoded again each time, because all together can be large."""
        return map(decode_checkpoint, self._rows)

    def story(self) -> Iterator[BundledStory]:
        """Messages and annotations, part by part."""
        if self.story_bytes:
            for frame in self._reader.frames():
                if frame.tag == STORY:
                    yield decode_story(frame.body)

    def digests(self) -> Iterator[Digest]:
        """The digest of every object, in no order."""
        return self._inventory.digests()

    def objects(self) -> Iterator[Item]:
        """Every object again, with an earlier one that it resembles. Refused if the file changed
        since it was verified."""
        place_of = self._inventory.place_of
        decoder = ObjectDecoder(self._reader, place_of, most_bytes=self._most_bytes)
        found = 0
        for frame in self._reader.frames():
            if frame.tag != OBJECT:
                continue
            role, record, data = decoder.decode(frame.body)
            if place_of(role, record.digest) != frame.offset:
                raise refused("it changed while it was being read")
            found += 1
            yield record.digest, data, record.base
        if found != len(self._inventory):
            raise refused("it changed while it was being read")


@contextmanager
def verified_bundle(
    fs: Filesystem,
    path: Path,
    *,
    accept: Callable[[Origin], None],
    most_bytes: int,
    progress: Progress,
) -> Iterator[VerifiedBundle]:
    """Open and verify. `accept` may refuse early, by what the bundle declares."""
    try:
        fd = fs.open(os.fsencode(path), _FLAGS)
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}", hint="usage: holdfast import FILE") from None
    except OSError as error:
        raise BundleRefused(f"cannot read {path}: {error.strerror}") from None
    try:
        if not stat.S_ISREG(fs.fstat(fd).st_mode):
            raise BundleRefused(
                f"{path} is not a regular file", hint="save it to a file first, then import that"
            )
        yield _verify(FrameReader(fs, fd), accept, most_bytes, progress)
    except BundleRefused as error:
        if type(error) is not BundleRefused or str(path) in error.message:
            raise
        raise BundleRefused(f"{path}: {error.message}", hint=error.hint) from error
    except OSError as error:
        raise BundleRefused(f"cannot read {path}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):  # only read
            fs.close(fd)


def _verify(
    reader: FrameReader, accept: Callable[[Origin], None], most_bytes: int, progress: Progress
) -> VerifiedBundle:
    require_bounded(reader.size_bytes, most_bytes)
    frames = reader.frames()
    origin = _decoded(decode_origin, next(frames).body)
    accept(origin)
    require_bounded(origin.content_bytes, most_bytes)
    manifest = _Manifest(origin)
    inventory = Inventory()
    decoder = ObjectDecoder(reader, inventory.place_of, most_bytes=most_bytes)
    content_bytes = story_bytes = 0
    for frame in frames:
        if frame.tag == SESSION:
            session = _decoded(decode_session, frame.body)
            manifest.add_session(session, _decoded(_rounds, frame.body))
        elif frame.tag == CHECKPOINT:
            manifest.add_row(frame.body)
        elif frame.tag == OBJECT:
            progress.advance("verifying", len(inventory), origin.objects)
            role, record, data = decoder.decode(frame.body)
            content_bytes += len(data)
            if content_bytes > origin.content_bytes or len(inventory) >= origin.objects:
                raise refused("it contains more than it declares")
            with _as_refusal():
                inventory.add(role, record.digest, data, place=frame.offset)
        elif frame.tag == STORY:
            story_bytes += len(frame.body)
            manifest.require_fitting(_decoded(decode_story, frame.body))
    if (len(inventory), content_bytes) != (origin.objects, origin.content_bytes):
        raise refused("it contains less than it declares")
    manifest.require_whole()
    with _as_refusal():
        for tree, report, components in manifest.trees:
            inventory.require_checkpoint(tree, report, components)
        inventory.require_all_used()
    # A small bundle can name one piece a million times, which makes a large file.
    require_bounded(sum(inventory.whole_files.values()), most_bytes)
    for whole, pieces in inventory.whole_files:
        _verify_whole(decoder, whole, pieces)
    return VerifiedBundle(
        reader,
        most_bytes,
        tuple(manifest.rows),
        inventory,
        origin,
        tuple(manifest.sessions.values()),
        manifest.rounds,
        story_bytes,
    )


class _Manifest:
    """Sessions and rows as they are read, and checks that they form a history."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.sessions: dict[SessionId, Session] = {}
        self.rounds: dict[SessionId, tuple[Round, ...]] = {}
        self.rows: list[bytes] = []
        self.trees: dict[tuple[Digest, Digest | None, Digest | None], None] = {}
        self._session_of: dict[CheckpointId, SessionId] = {}
        self._names: set[tuple[SessionId, str]] = set()
        self._said: dict[SessionId, int] = {}

    def add_session(self, session: Session, rounds: tuple[Round, ...]) -> None:
        if session.id in self.sessions:
            raise refused(f"session {session.id!r} is listed twice")
        self.sessions[session.id] = session
        self.rounds[session.id] = rounds
        if len(self.sessions) > self._origin.sessions:
            raise refused("it contains more than it declares")

    def add_row(self, body: bytes) -> None:
        row = _decoded(decode_checkpoint, body)
        if row.session_id not in self.sessions or row.id in self._session_of:
            raise refused(f"checkpoint {row.id} has no session, or is listed twice")
        for named in (row.parent, row.restores_from):
            if named is not None and self._session_of.get(named) != row.session_id:
                raise refused(f"checkpoint {row.id} follows one that does not precede it")
        name = row.intent.checkpoint_name
        if name is not None and (row.session_id, name) in self._names:
            raise refused(f"the name {name!r} is listed twice")
        if name is not None:
            self._names.add((row.session_id, name))
        self._session_of[row.id] = row.session_id
        self.rows.append(body)
        self.trees[row.tree, row.report, row.components] = None
        if len(self.rows) > self._origin.checkpoints:
            raise refused("it contains more than it declares")

    def require_fitting(self, story: BundledStory) -> None:
        """Messages must be consecutive, and annotations must refer to bundled checkpoints."""
        for message in story.messages:
            expected = self._said.get(message.session_id, 0)
            if message.session_id not in self.sessions or message.index != expected:
                raise refused("a message belongs to no session, or one before it is missing")
            self._said[message.session_id] = expected + 1
        for annotation in story.annotations:
            if self._session_of.get(annotation.checkpoint_id) != annotation.session_id:
                raise refused("an annotation refers to a checkpoint that does not exist")

    def require_whole(self) -> None:
        counts = (len(self.sessions), len(self.rows))
        if counts != (self._origin.sessions, self._origin.checkpoints) or not self.rows:
            raise refused("it contains less than it declares")
        for session in self.sessions.values():
            ends = (one.head for one in self.rounds[session.id])
            for named in (session.head, session.approved, *ends):
                if named is not None and self._session_of.get(named) != session.id:
                    raise refused(
                        f"the HEAD of session {session.id!r} is a checkpoint it does not have"
                    )
            if session.id not in self._session_of.values():
                raise refused(f"session {session.id!r} has no checkpoint")
        if self._origin.latest not in self._session_of:
            raise refused("its latest checkpoint is not in it")


def _verify_whole(decoder: ObjectDecoder, whole: Digest, pieces: Digest) -> None:
    """Assemble a large file from its verified pieces."""
    digest = blake3()
    for piece in decode_chunk_list(decoder.read(Role.PIECES, pieces)):
        digest.update(decoder.read(Role.BLOB, piece.digest))
    if digest.digest() != whole:
        raise refused("the chunks of a large file do not match its content")


def _rounds(body: bytes) -> tuple[Round, ...]:
    return decode_rounds(decoded_object(body))


def _decoded(decode: Callable[[bytes], T], body: bytes) -> T:
    try:
        return decode(body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise refused(f"a row cannot be read: {error}") from None


@contextmanager
def _as_refusal() -> Iterator[None]:
    try:
        yield
    except (ValueError, StoreDamaged) as error:
        # Decoders usually decode store content, so their messages name the store.
        raise refused(str(error).replace(" in the store", "")) from None

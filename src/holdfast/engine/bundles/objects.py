"""Objects inside a bundle: a byte for the role, then a record as in a pack.

An edited file or directory is stored as a delta against an earlier object of the same bundle and
role, as in a pack, so that a long history stays small. Chains are short, and every read verifies
the object's digest.

Guarantee of the decoder: it never unpacks more bytes than allowed, whatever the deltas are based
on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from holdfast.domain.bundles.inventory import Role
from holdfast.domain.errors import BudgetReached
from holdfast.domain.ids import Digest
from holdfast.domain.object_records import (
    DEEPEST_CHAIN,
    HEADER_BYTES,
    BadRecord,
    Record,
    decode_record,
    encode_record,
    stored_size_of,
)
from holdfast.domain.trees.objects import digest_of
from holdfast.engine.bundles.frames import LARGEST_OBJECT_BYTES, FrameReader, refused
from holdfast.values.compression import Codec, compress, compress_against, decompress

MOST_TIMES_THE_BUDGET = 64
"""A bundle may unpack to this many times the store's budget. That is far more than compression
saves, and far less than a file made to keep a machine busy for days."""

LARGEST_DELTA_BYTES = 2 << 20
"""The maximum size of a delta's object and of its base, so that both fit into the cache. Otherwise,
each read of a small object could unpack a huge one."""

_SHORT_CHAIN = 6
_CACHE_BYTES = 16 << 20


class ObjectEncoder:
    """Turns objects into frame bodies, as deltas against earlier objects if that is smaller."""

    def __init__(self, read: Callable[[Digest], bytes]) -> None:
        self._read = read
        # For each delta object: the depth of its chain, and the chain's first object.
        self._chains: dict[Digest, tuple[int, Digest]] = {}

    def encode(self, role: Role, digest: Digest, data: bytes, similar_to: Digest | None) -> bytes:
        """`similar_to` is an object of the same role that is already in the bundle."""
        return bytes((role,)) + encode_record(self._record(digest, data, similar_to))

    def _record(self, digest: Digest, data: bytes, similar_to: Digest | None) -> Record:
        if similar_to is not None and len(data) <= LARGEST_DELTA_BYTES:
            depth, beginning = self._chains.get(similar_to, (0, similar_to))
            base = similar_to if depth < _SHORT_CHAIN else beginning
            base_data = self._read(base)
            if len(base_data) <= LARGEST_DELTA_BYTES:
                codec, stored = compress_against(data, base_data)
                if codec is Codec.ZSTD_AGAINST_BASE:
                    deeper = depth + 1 if depth < _SHORT_CHAIN else 1
                    self._chains[digest] = (deeper, beginning)
                    return Record(digest, codec, deeper, len(data), base, stored)
                return Record(digest, codec, 0, len(data), None, stored)
        codec, stored = compress(data)
        return Record(digest, codec, 0, len(data), None, stored)


class ObjectDecoder:
    """Objects from frame bodies; `place_of` gives the position of an earlier frame in the file."""

    def __init__(
        self,
        reader: FrameReader,
        place_of: Callable[[Role, Digest], int | None],
        *,
        most_bytes: int,
    ) -> None:
        self._reader = reader
        self._place_of = place_of
        self._most_bytes = most_bytes
        self._unpacked_bytes = 0
        self._recent: OrderedDict[tuple[Role, Digest], bytes] = OrderedDict()
        self._recent_bytes = 0

    def decode(self, body: bytes) -> tuple[Role, Record, bytes]:
        """The role, the record and the verified content of one frame."""
        try:
            role, record = Role(body[0]), decode_record(body[1:])
        except (IndexError, ValueError) as error:
            raise refused(f"an object is damaged: {error}") from None
        if len(body) != 1 + record.length:
            raise refused("there is data after an object")
        data = self._open(role, record, DEEPEST_CHAIN)
        self._remember(role, record.digest, data)
        return role, record, data

    def read(self, role: Role, digest: Digest) -> bytes:
        """An object that was already read, from its position."""
        return self._read(role, digest, DEEPEST_CHAIN)

    def _read(self, role: Role, digest: Digest, depth_left: int) -> bytes:
        if (known := self._recent.get((role, digest))) is not None:
            self._recent.move_to_end((role, digest))
            return known
        place = self._place_of(role, digest)
        if place is None:
            raise refused("an object depends on one that does not precede it")
        if depth_left == 0:
            raise refused("its delta chains are too long")
        try:
            header = self._reader.read(place + 1, HEADER_BYTES)
            stored = self._reader.read(place + 1 + HEADER_BYTES, stored_size_of(header))
            record = decode_record(header + stored)
        except BadRecord as error:
            raise refused(f"an object is damaged: {error}") from None
        if record.digest != digest:
            raise refused("it changed while it was being read")
        data = self._open(role, record, depth_left - 1)
        self._remember(role, digest, data)
        return data

    def _open(self, role: Role, record: Record, depth_left: int) -> bytes:
        if record.size > LARGEST_OBJECT_BYTES:
            raise refused(f"an object claims {record.size} bytes")
        self._unpacked_bytes += record.size
        require_bounded(self._unpacked_bytes, self._most_bytes)
        base = None
        if record.base is not None:
            base = self._read(role, record.base, depth_left)
            if max(record.size, len(base)) > LARGEST_DELTA_BYTES:
                raise refused("an object is too large to be stored as a delta")
        try:
            data = decompress(record.codec, record.stored, record.size, base)
        except ValueError as error:
            raise refused(f"an object cannot be unpacked: {error}") from None
        if digest_of(data) != record.digest:
            raise refused("the bytes of an object do not match its name")
        return data

    def _remember(self, role: Role, digest: Digest, data: bytes) -> None:
        if len(data) > _CACHE_BYTES // 8 or (role, digest) in self._recent:
            return
        self._recent[role, digest] = data
        self._recent_bytes += len(data)
        while self._recent_bytes > _CACHE_BYTES:
            self._recent_bytes -= len(self._recent.popitem(last=False)[1])


def require_bounded(unpacked_bytes: int, most_bytes: int) -> None:
    if unpacked_bytes > most_bytes:
        raise BudgetReached(
            f"the file unpacks to {unpacked_bytes} bytes; the limit is {most_bytes}, "
            f"{MOST_TIMES_THE_BUDGET} times the store's budget",
            hint="if you trust the file, raise the budget: holdfast config set budget 50GB",
        )

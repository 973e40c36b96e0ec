"""Authenticated encryption: only holders of the key can read the bytes, and every change is
detected.

    sealed = salt 12 | nonce 12 | AES-256-GCM(message key, nonce, data, context) | tag 16
    message key = HKDF-Expand(the role's key, salt)
    role's key = HKDF-Expand(the store's key, role)

Every opened store draws its own salt, and a new one after a million messages; every message draws
its own nonce. Both would have to repeat together for two messages to share a key stream, so a store
never needs a new key, however much is written. Nonces are random, not counted, because a forked
process would continue from the same count.

A record in an encrypted pack seals everything about an object, including its name:

    2 B  magic "HE"     to find the next record after a damaged one
    4 B  stored size    of the bytes that follow
    sealed, with the six bytes above as context:
      1 B  codec, 1 B  depth, 4 B  size, 32 B  digest, 32 B  base digest with codec 2, stored bytes

Names are digests of content, so an unencrypted name would let any reader of the pack confirm a
guess about its content.

Not hidden: the length of the sealed bytes. Not detected: older sealed bytes with the same context
that were put back in their place.
"""

from __future__ import annotations

import hmac
import struct
from typing import TYPE_CHECKING

from holdfast.adapters.local.system import random_bytes
from holdfast.domain.errors import EncryptionUnavailable
from holdfast.domain.ids import DIGEST_BYTES, Digest
from holdfast.domain.object_records import HEADER_BYTES, LARGEST_OBJECT, BadRecord, Record
from holdfast.values.compression import Codec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
SALT_BYTES = 12
NONCE_BYTES = 12
TAG_BYTES = 16
OVERHEAD_BYTES = SALT_BYTES + NONCE_BYTES + TAG_BYTES
_HEAD_BYTES = SALT_BYTES + NONCE_BYTES
_MESSAGES_PER_SALT = 1 << 20
_KEYS_AT_HAND = 4096


class NotAuthentic(ValueError):
    """These bytes were not sealed with this key for this context, or were changed since."""


class Cipher:
    """Seals and opens with the key of one role; thread-safe."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise EncryptionUnavailable(
                "encryption needs the package cryptography, which is not installed",
                hint="install it: pip install cryptography",
            ) from None
        self._key = key
        self._aead = AESGCM
        self._invalid = InvalidTag
        self._at_hand: dict[bytes, AESGCM] = {}
        self._salt = b""
        self._left = 0

    def seal(self, data: bytes | bytearray | memoryview, context: bytes) -> bytes:
        if self._left <= 0:
            self._salt, self._left = random_bytes(SALT_BYTES), _MESSAGES_PER_SALT
        self._left -= 1
        salt, nonce = self._salt, random_bytes(NONCE_BYTES)
        return salt + nonce + self._under(salt).encrypt(nonce, data, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """The original data, or `NotAuthentic`."""
        if len(sealed) < OVERHEAD_BYTES:
            raise NotAuthentic("too short to be encrypted")
        message_key = self._under(sealed[:SALT_BYTES])
        nonce = sealed[SALT_BYTES:_HEAD_BYTES]
        try:
            return message_key.decrypt(nonce, memoryview(sealed)[_HEAD_BYTES:], context)
        except self._invalid:
            raise NotAuthentic("not encrypted with this key, or changed since") from None

    def _under(self, salt: bytes) -> AESGCM:
        found = self._at_hand.get(salt)
        if found is None:
            if len(self._at_hand) >= _KEYS_AT_HAND:
                self._at_hand.clear()
            found = self._at_hand[salt] = self._aead(expand(self._key, b"message" + salt))
        return found


class StoreKeys:
    """The store's own key, from which each part of the store has a derived key that does not reveal
    it."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError("a store's key has 32 bytes")
        self._key = key

    @classmethod
    def new(cls) -> StoreKeys:
        return cls(random_bytes(KEY_BYTES))

    def cipher(self, role: str) -> Cipher:
        return Cipher(expand(self._key, b"holdfast " + role.encode()))

    def sealed_under(self, wrapping: Cipher, context: bytes) -> bytes:
        return wrapping.seal(self._key, context)


def expand(key: bytes, purpose: bytes) -> bytes:
    """One block of HKDF-Expand (RFC 5869) with SHA-256, for a key that is already random."""
    return hmac.digest(key, purpose + b"\x01", "sha256")


def extract(secret: bytes, salt: bytes) -> bytes:
    """HKDF-Extract: a uniform key from a secret of any form."""
    return hmac.digest(salt, secret, "sha256")


_HEADER = struct.Struct("<2sI")
_INNER = struct.Struct("<BBI32s")
_LONGER_BY = _HEADER.size + _INNER.size + OVERHEAD_BYTES - HEADER_BYTES


class SealedRecords:
    """See `holdfast.domain.object_records.RecordFormat`."""

    pack_magic = b"HFPACKE\n"
    magic = b"HE"
    header_bytes = _HEADER.size

    def __init__(self, cipher: Cipher) -> None:
        self._cipher = cipher

    def encode(self, record: Record) -> bytes:
        inner = _INNER.pack(record.codec, record.depth, record.size, record.digest)
        body = b"".join((inner, record.base or b"", record.stored))
        header = _HEADER.pack(self.magic, len(body) + OVERHEAD_BYTES)
        return header + self._cipher.seal(body, header)

    def stored_size_of(self, header: bytes) -> int:
        if len(header) < self.header_bytes or header[:2] != self.magic:
            raise BadRecord("no record starts here")
        stored_size: int = _HEADER.unpack_from(header)[1]
        if not OVERHEAD_BYTES + _INNER.size <= stored_size <= LARGEST_OBJECT:
            raise BadRecord("the record claims an impossible size")
        return stored_size

    def decode(self, data: bytes) -> Record:
        end = self.header_bytes + self.stored_size_of(data)
        if len(data) < end:
            raise BadRecord("the record is truncated")
        header = data[: self.header_bytes]
        try:
            body = self._cipher.open(data[self.header_bytes : end], header)
        except NotAuthentic as error:
            raise BadRecord(f"it is {error}") from None
        codec, depth, size, digest = _INNER.unpack_from(body)
        base: Digest | None = None
        stored = body[_INNER.size :]
        if codec == Codec.ZSTD_AGAINST_BASE:
            if len(stored) < DIGEST_BYTES:
                raise BadRecord("its base is missing")
            base, stored = Digest(stored[:DIGEST_BYTES]), stored[DIGEST_BYTES:]
        try:
            return Record(Digest(digest), Codec(codec), depth, size, base, stored, _LONGER_BY)
        except ValueError:
            raise BadRecord("its codec is unknown") from None

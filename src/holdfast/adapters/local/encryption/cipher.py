"""Sealing bytes so that only holders of the key can read them and no change to them goes unnoticed.

    sealed = salt 12 | nonce 12 | AES-256-GCM(message key, nonce, data, context) | tag 16
    message key = HKDF-Expand(the role's key, salt)
    role's key = HKDF-Expand(the store's key, role)

Every opened store draws its own salt, and a new one after a million messages; every message draws
its own nonce. Both would have to repeat together for two messages to share a key stream, so there
is no number of writes after which a store would need a new key. Nonces are random and not counted,
because a forked process would go on counting from the same number.

Not hidden: how long the sealed bytes are. Not noticed: that older sealed bytes with the same
context were put back in their place.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from holdfast.adapters.local.system import random_bytes
from holdfast.domain.errors import EncryptionUnavailable

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
    """Seals and opens under the key of one role; safe to share between threads."""

    def __init__(self, key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise EncryptionUnavailable(
                "encryption needs the package cryptography, which is not installed",
                hint="install it: pip install 'holdfast[encryption]'",
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
        """What was sealed, or `NotAuthentic`."""
        if len(sealed) < OVERHEAD_BYTES:
            raise NotAuthentic("too short to be sealed")
        message_key = self._under(sealed[:SALT_BYTES])
        nonce = sealed[SALT_BYTES:_HEAD_BYTES]
        try:
            return message_key.decrypt(nonce, memoryview(sealed)[_HEAD_BYTES:], context)
        except self._invalid:
            raise NotAuthentic("not sealed with this key, or changed since") from None

    def _under(self, salt: bytes) -> AESGCM:
        found = self._at_hand.get(salt)
        if found is None:
            if len(self._at_hand) >= _KEYS_AT_HAND:
                self._at_hand.clear()
            found = self._at_hand[salt] = self._aead(expand(self._key, b"message" + salt))
        return found


class StoreKeys:
    """The store's own key, from which every part of the store has a key that says nothing of it."""

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
    """One block of HKDF-Expand (RFC 5869) with SHA-256, from a key that is random already."""
    return hmac.digest(key, purpose + b"\x01", "sha256")


def extract(secret: bytes, salt: bytes) -> bytes:
    """HKDF-Extract: an even key from a secret of any shape."""
    return hmac.digest(salt, secret, "sha256")

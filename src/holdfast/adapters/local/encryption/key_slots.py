"""The store's key, wrapped once for each key file or passphrase that opens the store.

    a slot = id, kind, salt, scrypt's parameters for a passphrase, and the store's key, sealed
             under a key derived from the secret, with the slot's other fields as context

Guarantees: without one of the secrets, nothing here helps to read the store. A change to any byte
is detected. Adding, replacing and removing slots rewraps one key: content does not change.

Limit: a copy of a slot, made while its secret was valid, can always be opened with that secret.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from holdfast.adapters.local.encryption.cipher import (
    Cipher,
    NotAuthentic,
    StoreKeys,
    expand,
    extract,
)
from holdfast.adapters.local.system import random_bytes
from holdfast.domain.errors import NotFound, Refused, StoreDamaged, WrongKey
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.store import KEY_FILE, PASSPHRASE, Secret

MOST_SLOTS = 16
_VERSION = 1
_CIPHER = "AES-256-GCM"
_SALT_BYTES = 16
_ID_BYTES = 4
_SCRYPT = {"n": 1 << 17, "r": 8, "p": 1}
_SCRYPT_LIMITS = {"n": 1 << 20, "r": 8, "p": 16}
"""A file with larger values was not written by Holdfast, and would exhaust memory."""


@dataclass(frozen=True, slots=True)
class KeySlot:
    id: str
    kind: str
    salt: bytes
    scrypt: dict[str, int]
    wrapped: bytes

    def fields(self) -> dict[str, Any]:
        """Everything except the wrapped key itself."""
        return {"id": self.id, "kind": self.kind, "salt": self.salt.hex(), "scrypt": self.scrypt}

    def context(self) -> bytes:
        return b"holdfast store key " + json.dumps(self.fields(), sort_keys=True).encode()

    def wrapping(self, secret: Secret) -> Cipher:
        if self.kind == PASSPHRASE:
            n, r, p = (self.scrypt[name] for name in ("n", "r", "p"))
            room = 128 * r * (n + p) + (1 << 20)  # scrypt's working memory, and a little more
            key = hashlib.scrypt(secret.data, salt=self.salt, n=n, r=r, p=p, maxmem=room, dklen=32)
        else:
            key = extract(secret.data, self.salt)
        return Cipher(expand(key, b"holdfast wrapping"))

    def open(self, secret: Secret) -> StoreKeys:
        """The store's keys, or `NotAuthentic`."""
        return StoreKeys(self.wrapping(secret).open(self.wrapped, self.context()))


@dataclass(frozen=True, slots=True)
class KeySlots:
    """All slots of one store; at least one."""

    slots: tuple[KeySlot, ...]

    def open(self, secret: Secret) -> tuple[StoreKeys, KeySlot]:
        for slot in self.slots:
            if slot.kind != secret.kind:
                continue
            try:
                return slot.open(secret), slot
            except NotAuthentic:
                continue
        raise WrongKey(f"this {secret.kind} does not open the store")

    def kinds(self) -> frozenset[str]:
        return frozenset(slot.kind for slot in self.slots)

    def adding(self, keys: StoreKeys, secret: Secret) -> KeySlots:
        if len(self.slots) >= MOST_SLOTS:
            raise Refused(
                f"the store already has {MOST_SLOTS} keys",
                hint="remove one: holdfast key remove ID",
            )
        return KeySlots((*self.slots, _wrap(keys, secret, _new_id())))

    def replacing(self, slot_id: str, keys: StoreKeys, secret: Secret) -> KeySlots:
        old = self._find(slot_id)
        new = _wrap(keys, secret, old.id)
        return KeySlots(tuple(new if slot is old else slot for slot in self.slots))

    def without(self, slot_id: str) -> KeySlots:
        gone = self._find(slot_id)
        if len(self.slots) == 1:
            raise Refused(
                f"{slot_id} is the only key of the store; without it, the store cannot be read",
                hint="add another first: holdfast key add",
            )
        return KeySlots(tuple(slot for slot in self.slots if slot is not gone))

    def _find(self, slot_id: str) -> KeySlot:
        for slot in self.slots:
            if slot.id == slot_id:
                return slot
        raise NotFound(
            f"the store has no key {slot_id!r}",
            hint=f"its keys are: {', '.join(slot.id for slot in self.slots)}",
        )


def first_slots(keys: StoreKeys, secret: Secret) -> KeySlots:
    return KeySlots((_wrap(keys, secret, _new_id()),))


def _new_id() -> str:
    return random_bytes(_ID_BYTES).hex()


def _wrap(keys: StoreKeys, secret: Secret, slot_id: str) -> KeySlot:
    scrypt = dict(_SCRYPT) if secret.kind == PASSPHRASE else {}
    slot = KeySlot(slot_id, secret.kind, random_bytes(_SALT_BYTES), scrypt, b"")
    return replace(slot, wrapped=keys.sealed_under(slot.wrapping(secret), slot.context()))


def encode_key_slots(slots: KeySlots) -> bytes:
    """A line with the checksum of the rest, and the rest as JSON."""
    listed = [{**slot.fields(), "wrapped": slot.wrapped.hex()} for slot in slots.slots]
    body = json.dumps({"version": _VERSION, "cipher": _CIPHER, "keys": listed}, indent=1).encode()
    return digest_of(body).hex().encode() + b"\n" + body + b"\n"


def decode_key_slots(data: bytes) -> KeySlots:
    """`StoreDamaged` for anything that `encode_key_slots` would not produce."""
    checksum, _, rest = data.partition(b"\n")
    body = rest.removesuffix(b"\n")
    try:
        if checksum != digest_of(body).hex().encode():
            raise ValueError("its checksum does not match")
        fields = json.loads(body)
        if (fields["version"], fields["cipher"]) != (_VERSION, _CIPHER):
            raise ValueError("a later version of Holdfast wrote it")
        slots = tuple(_slot(entry) for entry in fields["keys"])
        if not 0 < len(slots) <= MOST_SLOTS:
            raise ValueError(f"it has {len(slots)} keys")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreDamaged(f"the list of the store's keys cannot be read: {error}") from None
    return KeySlots(slots)


def _slot(entry: dict[str, Any]) -> KeySlot:
    kind, scrypt = entry["kind"], entry["scrypt"]
    if kind not in (KEY_FILE, PASSPHRASE) or not isinstance(entry["id"], str):
        raise ValueError(f"{kind!r} is not a kind of key")
    if kind == PASSPHRASE:
        for name, limit in _SCRYPT_LIMITS.items():
            if type(scrypt[name]) is not int or not 0 < scrypt[name] <= limit:
                raise ValueError(f"{name} cannot be {scrypt[name]!r}")
        if scrypt["n"] < 2 or scrypt["n"] & (scrypt["n"] - 1):
            raise ValueError("n is not a power of two")
    salt, wrapped = bytes.fromhex(entry["salt"]), bytes.fromhex(entry["wrapped"])
    return KeySlot(entry["id"], kind, salt, scrypt, wrapped)

"""The wrapped key of a store: who opens it, who does not, and how keys come and go."""

from __future__ import annotations

import json

import pytest

from holdfast.adapters.local.encryption import key_slots as module
from holdfast.adapters.local.encryption.cipher import StoreKeys
from holdfast.adapters.local.encryption.key_slots import (
    MOST_SLOTS,
    KeySlots,
    decode_key_slots,
    encode_key_slots,
    first_slots,
)
from holdfast.domain.errors import NotFound, Refused, StoreDamaged, WrongKey
from holdfast.domain.trees.objects import digest_of
from holdfast.ports.store import Secret

pytestmark = pytest.mark.requirement("ST-6")

FILE = Secret.key_file(b"k" * 32)
OTHER_FILE = Secret.key_file(b"o" * 32)
IN_EARNEST = dict(module._SCRYPT)
WORDS = Secret.passphrase("correct horse")


@pytest.fixture(autouse=True)
def quick_scrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are stored with each slot, so that weaker ones only make tests quicker."""
    monkeypatch.setattr(module, "_SCRYPT", {"n": 1 << 4, "r": 8, "p": 1})


def opens(slots: KeySlots, secret: Secret, keys: StoreKeys) -> bool:
    sealed = keys.cipher("x").seal(b"proof", b"")
    try:
        return slots.open(secret)[0].cipher("x").open(sealed, b"") == b"proof"
    except WrongKey:
        return False


@pytest.mark.parametrize("secret", [FILE, WORDS], ids=["key file", "passphrase"])
def test_a_store_opens_with_its_secret_and_with_no_other(secret: Secret) -> None:
    keys = StoreKeys.new()
    slots = decode_key_slots(encode_key_slots(first_slots(keys, secret)))
    assert opens(slots, secret, keys)
    for wrong in (OTHER_FILE, Secret.passphrase("Correct horse"), Secret.key_file(WORDS.data)):
        assert not opens(slots, wrong, keys)


def test_a_passphrase_is_the_same_however_its_letters_are_composed() -> None:
    keys = StoreKeys.new()
    slots = first_slots(keys, Secret.passphrase("schl\u00fcssel"))
    assert opens(slots, Secret.passphrase("schlu\u0308ssel"), keys)


def test_a_passphrase_is_made_expensive_to_guess() -> None:
    memory_bytes = 128 * IN_EARNEST["n"] * IN_EARNEST["r"]
    assert memory_bytes >= 128 << 20


def test_any_of_several_keys_opens_and_a_removed_one_does_not() -> None:
    keys = StoreKeys.new()
    slots = first_slots(keys, FILE).adding(keys, WORDS).adding(keys, OTHER_FILE)
    assert all(opens(slots, secret, keys) for secret in (FILE, WORDS, OTHER_FILE))
    removed = slots.without(slots.slots[1].id)
    assert opens(removed, FILE, keys)
    assert not opens(removed, WORDS, keys)
    with pytest.raises(NotFound, match="no key"):
        removed.without("ffffffff")


def test_a_key_is_replaced_in_its_place() -> None:
    keys = StoreKeys.new()
    slots = first_slots(keys, WORDS).adding(keys, FILE)
    changed = slots.replacing(slots.slots[0].id, keys, OTHER_FILE)
    assert [slot.id for slot in changed.slots] == [slot.id for slot in slots.slots]
    assert opens(changed, OTHER_FILE, keys)
    assert opens(changed, FILE, keys)
    assert not opens(changed, WORDS, keys)


def test_the_last_key_stays_and_there_is_a_most() -> None:
    keys = StoreKeys.new()
    slots = first_slots(keys, FILE)
    with pytest.raises(Refused, match="only key"):
        slots.without(slots.slots[0].id)
    while len(slots.slots) < MOST_SLOTS:
        slots = slots.adding(keys, FILE)
    with pytest.raises(Refused, match="already has"):
        slots.adding(keys, FILE)
    assert len(decode_key_slots(encode_key_slots(slots)).slots) == MOST_SLOTS


def test_damage_to_any_byte_of_the_list_is_noticed() -> None:
    encoded = encode_key_slots(first_slots(StoreKeys.new(), WORDS))
    for position in range(len(encoded)):
        changed = bytearray(encoded)
        changed[position] ^= 1
        with pytest.raises(StoreDamaged):
            decode_key_slots(bytes(changed))
    with pytest.raises(StoreDamaged):
        decode_key_slots(b"")


def _forged(**fields: object) -> bytes:
    """A list with a right checksum and other fields in its first slot."""
    body = json.loads(encode_key_slots(first_slots(StoreKeys.new(), WORDS)).split(b"\n", 1)[1])
    body["keys"][0] |= fields
    encoded = json.dumps(body).encode()
    return digest_of(encoded).hex().encode() + b"\n" + encoded + b"\n"


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "retina"},
        {"id": 5},
        {"salt": "xyz"},
        {"scrypt": {"n": 1 << 30, "r": 8, "p": 1}},
        {"scrypt": {"n": 1 << 14, "r": 1 << 20, "p": 1}},
        {"scrypt": {"n": 1000, "r": 8, "p": 1}},
        {"scrypt": {"n": 1, "r": 8, "p": 1}},
        {"scrypt": {"n": True, "r": 8, "p": 1}},
        {"scrypt": {}},
        {"scrypt": None},
        {"wrapped": 5},
    ],
)
def test_a_forged_list_neither_takes_memory_nor_ends_in_a_crash(fields: dict[str, object]) -> None:
    with pytest.raises(StoreDamaged):
        decode_key_slots(_forged(**fields))


def test_a_slot_that_was_weakened_or_renamed_does_not_open() -> None:
    keys = StoreKeys.new()
    for fields in ({"id": "00000000"}, {"scrypt": {"n": 2, "r": 8, "p": 1}}):
        assert not opens(decode_key_slots(_forged(**fields)), WORDS, keys)
    moved = first_slots(keys, FILE).slots[0]
    elsewhere = first_slots(StoreKeys.new(), OTHER_FILE).slots[0]
    mixed = KeySlots((module.KeySlot(moved.id, moved.kind, moved.salt, {}, elsewhere.wrapped),))
    assert not opens(mixed, FILE, keys)


def test_no_secret_is_written_or_shown() -> None:
    encoded = encode_key_slots(first_slots(StoreKeys.new(), WORDS))
    for shown in (encoded.decode(), repr(WORDS), str(WORDS)):
        assert "correct horse" not in shown
        assert WORDS.data.hex() not in shown

"""Sealing: what comes back is what went in, or nothing; and no key is used for two things."""

from __future__ import annotations

import sys

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.local.encryption import cipher as module
from holdfast.adapters.local.encryption.cipher import (
    OVERHEAD_BYTES,
    Cipher,
    NotAuthentic,
    StoreKeys,
    expand,
    extract,
)
from holdfast.domain.errors import EncryptionUnavailable

pytestmark = pytest.mark.requirement("ST-6")

KEY = bytes(range(32))


@given(st.binary(max_size=5000), st.binary(max_size=50))
def test_what_was_sealed_opens_for_its_own_context_only(data: bytes, context: bytes) -> None:
    cipher = Cipher(KEY)
    sealed = cipher.seal(data, context)
    assert len(sealed) == len(data) + OVERHEAD_BYTES
    assert Cipher(KEY).open(sealed, context) == data
    with pytest.raises(NotAuthentic):
        cipher.open(sealed, context + b"x")
    with pytest.raises(NotAuthentic):
        Cipher(KEY[::-1]).open(sealed, context)


def test_a_change_to_any_bit_and_any_cut_is_noticed() -> None:
    cipher = Cipher(KEY)
    sealed = cipher.seal(b"content", b"context")
    for position in range(len(sealed)):
        for bit in range(8):
            changed = bytearray(sealed)
            changed[position] ^= 1 << bit
            with pytest.raises(NotAuthentic):
                cipher.open(bytes(changed), b"context")
        with pytest.raises(NotAuthentic):
            cipher.open(sealed[:position], b"context")


def test_sealed_bytes_are_what_the_formats_say() -> None:
    sealed = Cipher(KEY).seal(b"content", b"context")
    salt, nonce, rest = sealed[:12], sealed[12:24], sealed[24:]
    message_key = HKDFExpand(hashes.SHA256(), 32, b"message" + salt).derive(KEY)
    assert AESGCM(message_key).decrypt(nonce, rest, b"context") == b"content"


def test_keys_are_derived_as_rfc_5869_says() -> None:
    info = b"holdfast wrapping"
    assert expand(KEY, info) == HKDFExpand(hashes.SHA256(), 32, info).derive(KEY)
    secret, salt = b"any secret", b"s" * 16
    both = HKDF(hashes.SHA256(), 32, salt, info).derive(secret)
    assert expand(extract(secret, salt), info) == both


def test_no_two_messages_share_salt_and_nonce_and_every_opening_has_its_salt() -> None:
    one, other = Cipher(KEY), Cipher(KEY)
    heads = {cipher.seal(b"same", b"")[:24] for cipher in (one, other) for _ in range(500)}
    assert len(heads) == 1000
    assert len({head[:12] for head in heads}) == 2


def test_a_salt_is_given_up_before_its_nonces_could_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MESSAGES_PER_SALT", 10)
    monkeypatch.setattr(module, "_KEYS_AT_HAND", 2)
    cipher = Cipher(KEY)
    sealed = [cipher.seal(b"%d" % number, b"") for number in range(45)]
    assert len({message[:12] for message in sealed}) == 5
    assert [cipher.open(message, b"") for message in sealed] == [b"%d" % n for n in range(45)]


def test_the_key_of_one_role_opens_nothing_of_another() -> None:
    keys = StoreKeys(KEY)
    sealed = keys.cipher("packs").seal(b"content", b"")
    assert StoreKeys(KEY).cipher("packs").open(sealed, b"") == b"content"
    for role in ("catalog", "index", "journal", "stat cache"):
        with pytest.raises(NotAuthentic):
            keys.cipher(role).open(sealed, b"")


def test_new_keys_are_never_the_same_and_never_shown() -> None:
    one, other = StoreKeys.new(), StoreKeys.new()
    with pytest.raises(NotAuthentic):
        other.cipher("x").open(one.cipher("x").seal(b"", b""), b"")
    key = bytes(32)
    shown = repr(StoreKeys(key)) + repr(StoreKeys(key).cipher("x"))
    assert repr(key) not in shown
    assert key.hex() not in shown
    with pytest.raises(ValueError, match="32 bytes"):
        StoreKeys(b"short")


def test_without_the_optional_package_the_way_out_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(EncryptionUnavailable) as error:
        Cipher(KEY)
    assert error.value.exit_status == 5
    assert "pip install cryptography" in str(error.value.hint)

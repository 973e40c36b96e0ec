"""The record: self-describing, and never taken for whole when it is not."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ids import Digest
from holdfast.domain.object_records import (
    HEADER_BYTES,
    LARGEST_OBJECT,
    MAGIC,
    BadRecord,
    Record,
    decode_record,
    encode_record,
)
from holdfast.domain.trees.objects import digest_of
from holdfast.values.compression import Codec

digests = st.binary(min_size=32, max_size=32).map(Digest)


@st.composite
def records(draw: st.DrawFn) -> Record:
    codec = draw(st.sampled_from(Codec))
    return Record(
        digest=draw(digests),
        codec=codec,
        depth=draw(st.integers(0, 255)),
        size=draw(st.integers(0, 2**32 - 1)),
        base=draw(digests) if codec is Codec.ZSTD_AGAINST_BASE else None,
        stored=draw(st.binary(max_size=200)),
    )


@given(record=records(), behind=st.binary(max_size=50))
def test_a_record_decodes_to_what_was_encoded_whatever_follows_it(
    record: Record, behind: bytes
) -> None:
    encoded = encode_record(record)
    assert len(encoded) == record.length
    assert decode_record(encoded + behind) == record


@given(record=records())
def test_a_record_that_is_cut_short_anywhere_is_refused(record: Record) -> None:
    encoded = encode_record(record)
    for length in range(len(encoded)):
        with pytest.raises(BadRecord):
            decode_record(encoded[:length])


@given(record=records(), bit=st.integers(0, 7))
def test_a_record_with_any_flipped_bit_is_refused(record: Record, bit: int) -> None:
    encoded = bytearray(encode_record(record))
    for position in range(len(encoded)):
        encoded[position] ^= 1 << bit
        with pytest.raises(BadRecord):
            decode_record(bytes(encoded))
        encoded[position] ^= 1 << bit


@given(garbage=st.binary(max_size=300))
def test_bytes_that_are_no_record_are_refused(garbage: bytes) -> None:
    with pytest.raises(BadRecord):
        decode_record(MAGIC + garbage)


@pytest.mark.parametrize("codec", [max(Codec) + 1, 255])
def test_an_unknown_codec_is_refused_even_with_a_right_checksum(codec: int) -> None:
    with pytest.raises(BadRecord):
        decode_record(_forged(codec=codec, body=b"x" * 40))


@pytest.mark.parametrize("body_bytes", [0, 1, 31])
def test_a_base_that_is_cut_short_is_refused_even_with_a_right_checksum(body_bytes: int) -> None:
    with pytest.raises(BadRecord):
        decode_record(_forged(codec=Codec.ZSTD_AGAINST_BASE, body=b"x" * body_bytes))


def test_an_impossible_size_is_refused_before_anything_is_read() -> None:
    forged = bytearray(_forged(codec=Codec.RAW, body=b""))
    struct.pack_into("<I", forged, 8, LARGEST_OBJECT + 1)
    with pytest.raises(BadRecord, match="impossible"):
        decode_record(bytes(forged))


def _forged(*, codec: int, body: bytes) -> bytes:
    """A record as only a hostile hand would write it."""
    header = struct.Struct("<2sBBIII32s")
    digest = digest_of(body)
    assert header.size == HEADER_BYTES
    fields = (MAGIC, codec, 0, len(body), len(body))
    checksum = zlib.crc32(body, zlib.crc32(header.pack(*fields, 0, digest)))
    return header.pack(*fields, checksum, digest) + body

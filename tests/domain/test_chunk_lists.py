"""The list of pieces of a large file: exact, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import ObjectDamaged
from holdfast.domain.ids import Digest
from holdfast.domain.trees.objects import Piece, decode_chunk_list, encode_chunk_list

pieces = st.builds(
    Piece, st.integers(0, 2**32 - 1), st.binary(min_size=32, max_size=32).map(Digest)
)
lists = st.lists(pieces, max_size=8)


@given(listed=lists)
def test_a_list_decodes_to_what_was_encoded(listed: list[Piece]) -> None:
    assert decode_chunk_list(encode_chunk_list(listed)) == listed


@given(listed=lists, behind=st.binary(min_size=1, max_size=80))
def test_a_list_that_is_cut_short_or_followed_by_more_is_refused(
    listed: list[Piece], behind: bytes
) -> None:
    data = encode_chunk_list(listed)
    for length in range(len(data)):
        with pytest.raises(ObjectDamaged):
            decode_chunk_list(data[:length])
    with pytest.raises(ObjectDamaged):
        decode_chunk_list(data + behind)


@given(listed=lists, bit=st.integers(0, 7))
def test_any_flipped_bit_is_refused_or_makes_another_list(listed: list[Piece], bit: int) -> None:
    data = bytearray(encode_chunk_list(listed))
    for position in range(len(data)):
        data[position] ^= 1 << bit
        try:
            assert decode_chunk_list(bytes(data)) != listed
        except ObjectDamaged:
            assert position < 8, "only the header can be wrong in itself"
        data[position] ^= 1 << bit


@given(data=st.binary(max_size=100))
def test_bytes_that_are_no_list_are_refused(data: bytes) -> None:
    with pytest.raises(ObjectDamaged):
        decode_chunk_list(b"HFC2" + data)

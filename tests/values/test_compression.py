"""How content is stored: as small as pays, and inflated to its promised size or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.testing.samples import compressible, incompressible
from holdfast.values.compression import (
    Codec,
    compress,
    compress_against,
    decompress,
)

contents = st.one_of(
    st.binary(max_size=300),
    st.binary(max_size=20).flatmap(lambda b: st.integers(0, 500).map(lambda n: b * n)),
)


@given(data=contents)
def test_any_content_comes_back(data: bytes) -> None:
    codec, stored = compress(data)
    assert decompress(codec, stored, len(data), None) == data
    assert len(stored) <= len(data)


@given(data=contents, base=st.binary(min_size=1, max_size=400))
def test_any_content_comes_back_from_its_difference_to_any_other(data: bytes, base: bytes) -> None:
    codec, stored = compress_against(data, base)
    assert decompress(codec, stored, len(data), base) == data


@pytest.mark.requirement("ST-1")
def test_text_is_compressed_and_noise_is_stored_as_it_is() -> None:
    text, noise = compressible("text", 50_000), incompressible("noise", 50_000)
    codec, stored = compress(text)
    assert codec is Codec.ZSTD
    assert len(stored) < len(text) / 5
    assert compress(noise) == (Codec.RAW, noise)


@pytest.mark.requirement("ST-1")
def test_an_edited_text_is_stored_as_its_difference() -> None:
    base = incompressible("base", 50_000)
    data = base[:20_000] + b"edited here" + base[20_000:]
    codec, stored = compress_against(data, base)
    assert codec is Codec.ZSTD_AGAINST_BASE
    assert len(stored) < len(data) / 100


def test_unlike_content_is_not_tied_to_a_base_it_gains_nothing_from() -> None:
    data, base = incompressible("data", 5000), incompressible("base", 5000)
    assert compress_against(data, base) == (Codec.RAW, data)


@given(data=contents, claimed=st.integers(0, 1000))
def test_content_with_a_false_size_is_refused(data: bytes, claimed: int) -> None:
    codec, stored = compress(data)
    if claimed != len(data):
        with pytest.raises(ValueError, match=r"bytes|end"):
            decompress(codec, stored, claimed, None)


def test_a_decompression_bomb_is_stopped_at_the_promised_size() -> None:
    codec, stored = compress(bytes(64 << 20))
    assert codec is Codec.ZSTD
    with pytest.raises(ValueError, match=r"bytes|end"):
        decompress(codec, stored, 10, None)


def test_a_missing_or_wrong_base_is_refused_or_gives_other_bytes_but_never_crashes() -> None:
    base = incompressible("base", 5000)
    data = base[:-1] + b"x"
    codec, stored = compress_against(data, base)
    assert codec is Codec.ZSTD_AGAINST_BASE
    with pytest.raises(ValueError, match="base is missing"):
        decompress(codec, stored, len(data), None)
    assert decompress(codec, stored, len(data), incompressible("wrong", 5000)) != data


@given(data=st.binary(min_size=60, max_size=300), cut=st.integers(1, 20))
def test_compressed_bytes_that_are_cut_or_followed_by_others_are_refused(
    data: bytes, cut: int
) -> None:
    repeated = data * 20
    codec, stored = compress(repeated)
    assert codec is Codec.ZSTD
    for wrong in (stored[:-cut], stored + b"x"):
        with pytest.raises(ValueError, match=r".+"):
            decompress(codec, wrong, len(repeated), None)

"""Row checksums keep the encoding that `docs/design/formats.md` defines, since rows travel."""

from __future__ import annotations

from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.local.catalog.rows import checksum_of, settings_checksum

pytestmark = pytest.mark.requirement("RL-4")

VECTORS: list[tuple[str, tuple[Any, ...], str, str]] = [
    (
        "sessions",
        ("s1", 1_700_000_000_000_000_000, "active", None, "claude", "", -1, 0.5),
        "sessions('s1', 1700000000000000000, 'active', None, 'claude', '', -1, 0.5)",
        "18e8b093e0a5883607f7b53b193b2965",
    ),
    (
        "checkpoints",
        (1, "it's", 'a "word"', "both ' and \"", bytes(range(0, 256, 15)), 1.0, 1e-05, 1e16),
        (
            "checkpoints(1, \"it's\", 'a \"word\"', 'both \\' and \"', "
            "b'\\x00\\x0f\\x1e-<KZix\\x87\\x96\\xa5\\xb4\\xc3\\xd2\\xe1\\xf0\\xff', "
            "1.0, 1e-05, 1e+16)"
        ),
        "a678bb0746bcac9519d146b04ee862e8",
    ),
    (
        "operations",
        (2, "\t\n\r\\\0\x7f", "\u00e4\u20ac\U0001f600\udc80", b"'", b"'\""),
        (
            "operations(2, '\\t\\n\\r\\\\\\x00\\x7f', '\\xe4\\u20ac\\U0001f600\\udc80', "
            "b\"'\", b'\\'\"')"
        ),
        "ff7d6365c9906e158ef8776c64bbe65f",
    ),
]


@pytest.mark.parametrize(("table", "values", "text", "checksum"), VECTORS)
def test_a_row_has_the_checksum_that_it_always_had(
    table: str, values: tuple[Any, ...], text: str, checksum: str
) -> None:
    assert checksum_of(table, values).hex() == checksum
    assert blake3(text.encode("ascii")).digest()[:16].hex() == checksum


def test_settings_and_facts_have_the_checksum_that_they_always_had() -> None:
    text = "7[('a', '1'), ('b', '\"x\"')][('fact', 'value')]"
    found = settings_checksum(7, {"b": '"x"', "a": "1"}, {"fact": "value"})
    assert found.hex() == "a2f39e43ae001ff933ee2eaf7537dff3"
    assert blake3(text.encode("ascii")).digest()[:16] == found


_VALUES = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(0, 1),
    st.text(st.characters(), max_size=20),
    st.binary(max_size=40),
)


@given(st.lists(_VALUES, min_size=2, max_size=8))
def test_the_documented_encoding_is_the_one_in_use(values: list[Any]) -> None:
    text = "table(" + ", ".join(map(_documented, values)) + ")"
    assert checksum_of("table", tuple(values)) == blake3(text.encode("ascii")).digest()[:16]


def _documented(value: Any) -> str:
    """Without Python's own way of writing texts and blobs."""
    if isinstance(value, bytes):
        return "b" + _quoted(list(value))
    if isinstance(value, str):
        return _quoted([ord(character) for character in value])
    return str(value)


def _quoted(codes: list[int]) -> str:
    quote = '"' if ord("'") in codes and ord('"') not in codes else "'"
    return quote + "".join(_character(code, quote) for code in codes) + quote


def _character(code: int, quote: str) -> str:
    escaped = {9: r"\t", 10: r"\n", 13: r"\r", 92: r"\\", ord(quote): "\\" + quote}
    if code in escaped:
        return escaped[code]
    if 0x20 <= code < 0x7F:
        return chr(code)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

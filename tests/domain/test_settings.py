"""Settings: what each takes, what it refuses, and sizes as people write them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidSetting
from holdfast.domain.settings.schema import (
    DEFAULTS,
    HELP,
    KEYS,
    Settings,
    check_setting,
    make_settings,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        ("1", 1),
        ("100 B", 100),
        ("1kB", 1000),
        ("100 MB", 100_000_000),
        ("5GB", 5_000_000_000),
        ("5 gb", 5_000_000_000),
        ("1 TB", 10**12),
        ("1 KiB", 1024),
        ("2k", 2048),
        ("1.5 MiB", 1_572_864),
        ("5GiB", 5 << 30),
        ("1_000_000", 1_000_000),
        ("1e3", 1000),
    ],
)
def test_sizes_are_read_as_people_write_them(text: object, size: int) -> None:
    assert parse_size(text) == size


NO_SIZES: list[object] = [0, -1, True, 1.5, None, []]
NO_SIZES_IN_WORDS = "0|-5 MB|| |MB|5 XB|five|1e400|nan|inf|1..5|5 MB MB|0x10".split("|")


@pytest.mark.parametrize("value", [*NO_SIZES, *NO_SIZES_IN_WORDS])
def test_what_is_no_size_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_size(value)


@given(text=st.text(max_size=10))
def test_any_text_is_a_size_or_refused(text: str) -> None:
    try:
        assert parse_size(text) > 0
    except ValueError:
        return


def test_every_setting_has_a_default_that_it_takes_and_an_explanation() -> None:
    for key in KEYS:
        assert check_setting(key, DEFAULTS[key]) == DEFAULTS[key]
        assert HELP[key]
    assert make_settings({}) == Settings()


REFUSED: list[tuple[str, Any]] = [
    ("include", ".env"),
    ("include", [""]),
    ("include", [5]),
    ("include", ["a\0b"]),
    ("ignore", {"a": 1}),
    ("max_file_size", "big"),
    ("max_file_size", 0),
    ("budget", -1),
    ("budget", True),
    ("lock_timeout", -1),
    ("lock_timeout", 86_401),
    ("lock_timeout", math.nan),
    ("lock_timeout", "5"),
    ("lock_timeout", True),
    ("setuid", "maybe"),
    ("setuid", ["restore"]),
    ("defaults", True),
]


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_a_value_that_a_setting_cannot_take_is_refused_by_name(key: str, value: Any) -> None:
    with pytest.raises(InvalidSetting, match=key):
        check_setting(key, value)
    with pytest.raises(InvalidSetting, match=key):
        make_settings({key: value})


def test_an_unknown_setting_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(InvalidSetting) as refusal:
        make_settings({"budgte": 5})
    assert refusal.value.hint is not None
    assert "budget" in refusal.value.hint


def test_values_are_brought_into_one_form() -> None:
    settings = make_settings(
        {"include": [".env", "*.db"], "max_file_size": "1 MB", "lock_timeout": 5, "setuid": "drop"}
    )
    assert settings.include == (".env", "*.db")
    assert settings.max_file_size == 1_000_000
    assert settings.lock_timeout == 5.0
    assert settings.setuid == "drop"
    assert settings.budget == DEFAULTS["budget"]


@pytest.mark.requirement("CP-12")
@pytest.mark.parametrize("pattern", ["../x", "!x", "./x", "#x", "a\nb", ""])
def test_a_pattern_that_could_never_include_anything_is_refused_when_it_is_set(
    pattern: str,
) -> None:
    with pytest.raises(InvalidSetting, match="include"):
        check_setting("include", [pattern])

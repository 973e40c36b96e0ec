"""A setting that cannot be read: what protects stays, and what would reveal or delete does not."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import pytest

from holdfast.domain.checkpoints import Kind
from holdfast.domain.errors import InvalidSetting
from holdfast.domain.retention import ALWAYS_KEPT, rules_with
from holdfast.domain.settings.fallback import readable_settings
from holdfast.domain.settings.schema import Settings, make_settings

pytestmark = pytest.mark.requirement("CP-12", "HK-7")


def test_every_cautious_value_is_a_value_of_its_setting() -> None:
    cautious = {
        one.name: one.metadata["cautious"].make(["*.pem"], "a problem")
        for one in fields(Settings)
        if one.metadata["cautious"] is not None
    }
    assert {"budget", "total_budget", "ignore", "retention", "setuid"} <= set(cautious)
    retention = dict(cautious.pop("retention"))
    assert set(retention) == set(Kind).difference(ALWAYS_KEPT)
    assert asdict(make_settings(cautious)) == asdict(Settings()) | cautious


def _settings(found: dict[str, Any], broken: dict[str, str] | None = None) -> Settings:
    readable = readable_settings(found, broken or {})
    assert readable.problems
    return make_settings(readable.values)


def test_a_bad_value_gives_the_default_and_leaves_the_others() -> None:
    settings = _settings({"auto_edit": "maybe", "lock_timeout": 7, "nonsense": 1})
    assert (settings.auto_edit, settings.lock_timeout) == ("on", 7)


@pytest.mark.parametrize("key", ["budget", "total_budget", "budgett"])
def test_a_budget_that_cannot_be_read_deletes_nothing(key: str) -> None:
    settings = _settings({key: "50 gigs"})
    assert max(settings.budget, settings.total_budget) > 10**15


@pytest.mark.parametrize("found", [{"retention": "a week"}, {"retentoin": {"tool": "forever"}}])
def test_retention_that_cannot_be_read_lets_nothing_expire(found: dict[str, Any]) -> None:
    rules = rules_with(_settings(found).retention)
    for kind in Kind:
        if kind not in ALWAYS_KEPT:
            assert rules[kind].to_plain() == "forever"


def test_what_would_capture_or_restore_more_is_cautious() -> None:
    settings = _settings({"capture_named_ignored": "of", "setuid": "dropped"})
    assert (settings.capture_named_ignored, settings.setuid) == ("off", "drop")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"ignore": "*.pem"}, ("*.pem",)),
        ({"ignore": ["*.pem", 5, ""]}, ("*.pem",)),
        ({"ignored": ["*.pem"]}, ("*.pem",)),
        ({"ignores": ["*.pem"], "ignore": [".env"]}, (".env",)),
        ({"ignores": 5}, ()),
    ],
)
def test_patterns_that_can_be_read_are_left_out(
    found: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert _settings(found).ignore == expected


@pytest.mark.parametrize("found", [{"ignore": 5}, {"ignore": [""]}, {"ignore": {"a": 1}}])
def test_without_one_nothing_is_saved(found: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match="Nothing is saved"):
        readable_settings(found, {})


def test_a_line_that_cannot_be_read_is_as_much_in_doubt_as_a_value() -> None:
    with pytest.raises(InvalidSetting, match="Nothing is saved"):
        readable_settings({}, {"ignore": "line 1 is not valid TOML"})
    assert _settings({}, {"setuid": "line 1 is not valid TOML"}).setuid == "drop"

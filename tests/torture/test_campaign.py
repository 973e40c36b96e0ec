"""The instrument itself: cases repeat, failures are counted and named, bounds are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.torture.campaign import Campaign, Case, Scenario, read_rows
from tests.torture.reliability import DOCUMENT, failure_bound, main, render

SCENARIO = Scenario(0, "sample", "A sample")


def test_a_case_is_repeated_by_its_number() -> None:
    def drawn(campaign: Campaign) -> list[float]:
        found: list[float] = []
        campaign.run(SCENARIO, lambda case: found.append(case.rng().random()), slice_cases=5)
        return found

    first = drawn(Campaign(7, "sample"))
    assert drawn(Campaign(7, "sample")) == first
    assert len(set(first)) == 5
    assert drawn(Campaign(7, "sample", 60.0, only=3)) == [first[3]]


def test_failures_are_counted_named_and_do_not_end_a_campaign(tmp_path: Path) -> None:
    def fails_on_odd(case: Case) -> None:
        assert case.number % 2 == 0, "odd"

    campaign = Campaign(7, "test_sample", 60.0, results=tmp_path)
    with pytest.raises(AssertionError, match="5 of 10 cases") as failed:
        campaign.run(SCENARIO, fails_on_odd, slice_cases=1, most_cases=10)
    assert 'make torture TORTURE_SEED=7 TORTURE_CASE=3 ARGS="-k test_sample"' in str(failed.value)
    (row,) = read_rows(tmp_path)
    assert (row.cases, row.failures, row.covered) == (10, 5, "")


def test_a_space_counts_as_covered_only_when_all_of_it_was_run(tmp_path: Path) -> None:
    def run(most: int) -> str:
        campaign = Campaign(7, "sample", 60.0, results=tmp_path)
        options = {"slice_cases": 1, "space": 10, "covered": "every call", "most_cases": most}
        return campaign.run(SCENARIO, lambda case: None, **options).covered  # type: ignore[arg-type]

    assert run(9) == ""
    assert run(10) == "every call"


def test_a_campaign_that_is_cut_off_has_seen_all_parts_of_a_space() -> None:
    def seen(**options: int) -> list[int]:
        found: list[int] = []
        campaign = Campaign(7, "sample", 60.0, **options)  # type: ignore[arg-type]
        bounds = {"slice_cases": 1, "space": 1000, "most_cases": 1000}
        campaign.run(SCENARIO, lambda case: found.append(case.number), **bounds)  # type: ignore[arg-type]
        return found

    assert sorted(seen()) == list(range(1000))
    some = seen(enough=20)
    assert some == seen()[:20]
    assert min(some) < 250
    assert max(some) > 750


def test_what_a_scenario_counted_is_part_of_its_row() -> None:
    campaign = Campaign(7, "sample", 60.0)
    campaign.note = "12 swaps"
    options = {"slice_cases": 1, "space": 10, "covered": "every call"}
    row = campaign.run(SCENARIO, lambda case: None, most_cases=10, **options)  # type: ignore[arg-type]
    assert row.covered == "every call; 12 swaps"
    row = campaign.run(SCENARIO, lambda case: None, most_cases=9, **options)  # type: ignore[arg-type]
    assert row.covered == "12 swaps"


def test_a_slice_is_spread_over_the_space_and_records_nothing(tmp_path: Path) -> None:
    numbers: list[int] = []
    campaign = Campaign(7, "sample")
    campaign.run(SCENARIO, lambda case: numbers.append(case.number), slice_cases=4, space=100)
    assert numbers == [0, 25, 50, 75]
    assert campaign.results is None


@pytest.mark.parametrize(
    ("cases", "failures", "bound"),
    # One-sided limits of Clopper and Pearson, from published tables of the binomial distribution.
    [(10_000, 0, 0.0003), (10, 1, 0.3942), (20, 2, 0.2826), (100, 5, 0.1023), (5, 5, 1.0)],
)
def test_the_bound_is_the_one_of_the_textbook(cases: int, failures: int, bound: float) -> None:
    assert failure_bound(cases, failures) == pytest.approx(bound, abs=5e-5)


def test_the_document_says_what_the_rows_say(tmp_path: Path) -> None:
    campaign = Campaign(7, "test_sample", 60.0, results=tmp_path)
    row = campaign.run(SCENARIO, lambda case: None, slice_cases=1, most_cases=3_000)
    page = render([row])
    line = next(line for line in page.splitlines() if "(`sample`)" in line)
    assert "| 3,000 | 0 | 0.001 |" in line
    assert f"| `sample` | `{row.command}` |" in page.splitlines()
    assert "**3,000 cases, 0 failures.**" in page


def test_anything_but_write_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 2
    assert "--write" in capsys.readouterr().err


def test_every_line_of_the_published_table_is_a_campaign_that_exists() -> None:
    tests = Path(__file__).parents[1]
    paths = [path for part in ("torture", "damage") for path in (tests / part).glob("test_*.py")]
    sources = "".join(path.read_text("utf-8") for path in paths)
    published = re.findall(r"-k (\w+)", DOCUMENT.read_text("utf-8"))
    assert published
    assert [name for name in published if f"def {name}(" not in sources] == []

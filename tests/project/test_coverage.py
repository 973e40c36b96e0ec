"""The coverage figure at the end of `make test`: what it counts, and when it fails the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.project.coverage import main
from tests.project.repository import ROOT


@pytest.mark.linux
@pytest.mark.parametrize(("executed", "status"), [(900, 0), (899, 1)])
def test_too_few_executed_lines_fail_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], executed: int, status: int
) -> None:
    recorded = {"covered_lines": executed, "missing_lines": 1000 - executed}
    file = tmp_path / "coverage.json"
    file.write_text(json.dumps({"summary": recorded}))
    assert main(str(file)) == status
    printed = capsys.readouterr()
    assert f"{executed / 1000:.1%} of 1,000 lines" in printed.out
    assert ("must execute 90% of the lines" in printed.err) == bool(status)


def test_make_test_ends_with_the_figure() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8").split("\ntest:")[1].split(".PHONY")[0]
    assert recipe.rstrip().endswith("-m tests.project.coverage $(COVERED)")
